"""What happens between turns is stored and shown like what happens in them (P1, P3)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.support.sessions import (
    CWD,
    Recorder,
    ScriptedAgent,
    begin,
    disk_as_of_now,
    ended,
    engine_at,
    eventually,
    history,
    run,
    texts,
    watch,
)
from holdfast.model import text_event

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import LiveSession
    from holdfast.model import Update

pytestmark = pytest.mark.requirement("P1")


def news(session: LiveSession, n: int) -> Update:
    update: Update = {"sessionUpdate": "_news", "n": n}
    session.emit_update(update)
    return update


async def test_it_is_shown_live_and_replayed_and_survives_a_kill(place: Path, tmp_path: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say a")
        first = news(session, 1)
        session.emit(text_event("agent_message_chunk", "m", "later"))
        await recorder.until(lambda: "later" in recorder.said())
        left = disk_as_of_now(place, tmp_path / "left")
        seen = recorder.history()
        assert first in seen
        second = await watch(engine, session)
        assert second.history() == seen
    async with engine_at(left) as engine:
        found = await history(engine, await engine.restore(session.id, CWD))
        assert found == seen  # and no turn is said to have been interrupted


async def test_a_turn_that_begins_meanwhile_comes_after_it(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        news(session, 1)
        turn = begin(engine, session, "say a")
        news(session, 2)
        await ended(turn)
        news(session, 3)
        await recorder.until(lambda: len(recorder.updates("_news")) == 3)
        assert [update["n"] for update in recorder.updates("_news")] == [1, 2, 3]
        assert recorder.history() == await history(engine, session)
    async with engine_at(place) as engine:
        assert await history(engine, await engine.restore(session.id, CWD)) == recorder.history()


async def test_what_is_said_while_a_turn_is_sealed_is_not_lost(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        for n in range(20):
            turn = begin(engine, session, f"say {n}")
            await turn.accepted
            for _ in range(n % 7):
                await asyncio.sleep(0)
            news(session, n)
            await ended(turn)
        await recorder.until(lambda: len(recorder.updates("_news")) == 20)
        assert recorder.history() == await history(engine, session)
        assert texts(recorder.history()) == [str(n) for n in range(20)]


async def test_it_is_sealed_when_it_is_quiet_and_is_no_activity(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.engine.journal.QUIET", 0.02)
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say a")
        before = (await engine.store.get(session.id)).info.updated_at
        lines = session.journal.lines
        news(session, 1)
        await eventually(lambda: session.journal.lines > lines)
        assert recorder.updates("_news")
        assert (await engine.store.get(session.id)).info.updated_at == before
        session.emit(text_event("agent_message_chunk", "m", "hello"))  # a message is activity
        await eventually(lambda: session.journal.lines > lines + 1)
        assert (await engine.store.get(session.id)).info.updated_at > before


async def test_state_that_is_no_news_is_not_written_again(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "usage 5")
        usage: Update = {"sessionUpdate": "usage_update", "used": 5, "size": 100}
        session.emit_update(usage)
        session.emit_update({**usage, "used": 6})
        await recorder.until(lambda: len(recorder.updates("usage_update")) == 2)
        assert [update["used"] for update in recorder.updates("usage_update")] == [5, 6]
    async with engine_at(place) as engine:
        restored = await engine.restore(session.id, CWD)
        assert restored.state.latest["usage_update"]["used"] == 6


async def test_it_may_add_to_an_entry_of_an_earlier_turn(place: Path, tmp_path: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "call c Build", "output c one", "done c")
        block = {"type": "content", "content": {"type": "text", "text": "two"}}
        session.emit_update({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": block})
        await session.journal.shown()
        left = disk_as_of_now(place, tmp_path / "left")
        await recorder.until(lambda: len(recorder.updates("tool_call_content_chunk")) == 2)
    for store in (place, left):
        async with engine_at(store) as engine:
            found = await history(engine, await engine.restore(session.id, CWD))
            (call,) = [update for update in found if update["sessionUpdate"] == "tool_call_update"]
            assert [item["content"]["text"] for item in call["content"]] == ["one", "two"]
            assert call["status"] == "completed"


async def test_a_fork_made_between_turns_has_it(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say a")
        news(session, 1)
        fork = await engine.fork(session.id, CWD)
        assert await history(engine, fork) == await history(engine, session)


async def test_a_session_that_never_got_a_prompt_is_not_listed_for_it(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        news(session, 1)
        await session.journal.shown()
        await session.journal.settle()
        assert not (await engine.list()).sessions
        recorder = await watch(engine, session, Recorder())
        assert [update["n"] for update in recorder.history()] == [1]
