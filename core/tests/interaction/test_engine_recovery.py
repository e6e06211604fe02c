"""P3: after a crash the history is a gap-free prefix, the broken turn has an end, and nothing is run again.

A crash is simulated by a copy of the store's files as they are in the middle of things; `core/tests/faults` kills
processes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.support.sessions import (
    CWD,
    ScriptedAgent,
    begin,
    disk_as_of_now,
    ended,
    engine_at,
    history,
    run,
    texts,
    watch,
)
from holdfast.errors import StoreError
from holdfast.model import event_from

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import LiveTurn
    from holdfast.model import StopReason

INTERRUPTED = {"sessionUpdate": "_holdfast/turn_end", "reason": "interrupted"}


async def test_a_broken_turn_is_ended_its_open_calls_failed_and_nothing_is_run_again(
    place: Path, tmp_path: Path
) -> None:
    agent = ScriptedAgent()
    script = (
        "say a",
        "call c Read",
        "call d Run",
        "done d",
        "terminal t",
        "think h",
        "unknown x",
        "wait gate",
        "say b",
    )
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say before")
        turn = begin(engine, session, *script)
        waiting = begin(engine, session, "say waiting")
        await agent.at("gate")
        left = disk_as_of_now(place, tmp_path / "left")
        await turn.shown()  # all that is stored is to be seen, too
        seen = recorder.history()
        agent.gates["gate"].set()
        await ended(turn)
        await ended(waiting)
    again = ScriptedAgent()
    async with engine_at(left, again) as engine:
        session = await engine.restore(session.id, CWD)
        assert session.state.interrupted
        stored = await history(engine, session)
        closed = [{**it} for it in seen]
        for it in closed:
            if it.get("toolCallId") == "c":
                it["status"] = "failed"
            if it.get("terminalId") == "t":
                it["exitStatus"] = {}
        assert stored == [*closed, INTERRUPTED]
        assert again.performed == []
        assert (await engine.list()).sessions[0].messages == 4
        await run(engine, session, "say after")
        assert not session.state.interrupted
        assert texts(await history(engine, session)) == ["before", "a", "after"]
    async with engine_at(left, again) as engine:  # recovered once, and for good
        session = await engine.restore(session.id, CWD)
        assert not session.state.interrupted
        assert (await history(engine, session)).count(INTERRUPTED) == 1
    assert again.performed == ["say after"]


async def test_the_agent_sees_that_the_last_turn_was_interrupted_until_the_next_one_ends(
    place: Path, tmp_path: Path
) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        turn = begin(engine, session, "wait gate")
        await agent.at("gate")
        left = disk_as_of_now(place, tmp_path / "left")
        agent.gates["gate"].set()
        await ended(turn)
        assert not session.state.interrupted

    class Looking(ScriptedAgent):
        seen: list[bool]

        async def perform(self, turn: LiveTurn) -> StopReason | None:
            self.seen.append(turn.session.state.interrupted)
            return None

    looking = Looking()
    looking.seen = []
    async with engine_at(left, looking) as engine:
        assert (await engine.restore(session.id, CWD)).state.interrupted
    async with engine_at(left, looking) as engine:  # it is not forgotten by another restart
        session = await engine.restore(session.id, CWD)
        await run(engine, session, "x")
        await run(engine, session, "x")
    assert looking.seen == [True, False]


@pytest.mark.requirement("B10")
async def test_recovering_a_session_is_no_activity_in_it(place: Path, tmp_path: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        broken, other = await engine.create(CWD), await engine.create(CWD)
        turn = begin(engine, broken, "say a", "wait gate")
        await agent.at("gate")
        await run(engine, other, "say b")
        left = disk_as_of_now(place, tmp_path / "left")
        agent.gates["gate"].set()
        await ended(turn)
    async with engine_at(left) as engine:
        before = [(it.id, it.updated_at) for it in (await engine.list()).sessions]
        assert [it for it, _ in before] == [other.id, broken.id]
        await engine.restore(broken.id, CWD)
        assert [(it.id, it.updated_at) for it in (await engine.list()).sessions] == before


@pytest.mark.parametrize("how", ["restore", "fork", "archive", "rename", "delete"])
async def test_a_broken_session_is_recovered_by_whatever_touches_it_first(
    place: Path, tmp_path: Path, how: str
) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        turn = begin(engine, session, "say a", "wait gate")
        await agent.at("gate")
        left = disk_as_of_now(place, tmp_path / "left")
        agent.gates["gate"].set()
        await ended(turn)
    async with engine_at(left) as engine:
        match how:
            case "fork":
                fork = await engine.fork(session.id, CWD)
                assert (await history(engine, fork))[-1] == INTERRUPTED
            case "archive":
                await engine.archive(session.id, archived=True)
            case "rename":
                await engine.rename(session.id, "New")
            case "delete":
                await engine.delete(session.id)
                assert (await engine.list()).sessions == ()
                assert not list((left.parent / f"{left.name}.turns").iterdir())
                return
            case _:
                pass
        stored = await history(engine, await engine.restore(session.id, CWD))
        assert texts(stored) == ["a"]
        assert stored.count(INTERRUPTED) == 1
        logs = (left.parent / f"{left.name}.turns").iterdir()
        assert not any(log.read_bytes().strip(b"\0") for log in logs), "they are emptied"


async def test_a_crash_at_any_tick_leaves_a_prefix_that_has_all_that_was_shown(place: Path, tmp_path: Path) -> None:
    """Every event carries the next number; what is left must be numbers without a gap, and all that were shown."""
    script = [f"{'think' if n % 5 == 0 else 'say'} {n} " + ("\ntick" if n % 2 == 0 else "") for n in range(30)]
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, *script)
        copies: list[tuple[Path, str]] = []
        while not turn.ended.done():
            await asyncio.sleep(0)
            if turn.running:
                copies.append((disk_as_of_now(place, tmp_path / f"left-{len(copies)}"), recorder.said()))
    assert len(copies) > 10
    for left, shown in copies:
        async with engine_at(left) as engine:
            stored = await history(engine, await engine.restore(session.id, CWD))
            said = "".join(it["content"][0]["text"] for it in stored if it["sessionUpdate"].startswith("agent_"))
            assert said.startswith(shown)
            assert said.split() == [str(n) for n in range(len(said.split()))]


async def test_a_session_that_an_agent_cannot_open_is_recovered_all_the_same(place: Path, tmp_path: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        turn = begin(engine, session, "say a", "wait gate")
        await agent.at("gate")
        left = disk_as_of_now(place, tmp_path / "left")
        agent.gates["gate"].set()
        await ended(turn)
    agent = ScriptedAgent()
    agent.refuse.add("opened")
    async with engine_at(left, agent) as engine:
        for _ in range(2):
            with pytest.raises(RuntimeError):
                await engine.restore(session.id, CWD)
        agent.refuse.clear()
        assert (await history(engine, await engine.restore(session.id, CWD))).count(INTERRUPTED) == 1


async def test_an_agent_that_continues_what_earlier_turns_began_leaves_finished_calls_finished(
    place: Path, tmp_path: Path
) -> None:
    agent = ScriptedAgent(begins_entries=False)
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "call c Read", "done c", "call d Run", "say a")
        turn = begin(engine, session, "output c more", "output d more", "wait gate")
        await agent.at("gate")
        left = disk_as_of_now(place, tmp_path / "left")
        session.cancel()
        await ended(turn)
        assert recorder.history() == await history(engine, session)
        calls = {it["toolCallId"]: it for it in await history(engine, session) if "toolCallId" in it}
        assert calls["c"]["status"] == calls["d"]["status"] == "completed"
        assert len(calls["c"]["content"]) == 1
    async with engine_at(left, ScriptedAgent(begins_entries=False)) as engine:
        stored = await history(engine, await engine.restore(session.id, CWD))
        calls = {it["toolCallId"]: it for it in stored if "toolCallId" in it}
        assert calls["c"]["status"] == calls["d"]["status"] == "completed"


class Careless(ScriptedAgent):
    """Says something malformed in a way that is not checked."""

    async def perform(self, turn: LiveTurn) -> StopReason | None:
        turn.emit_update({"sessionUpdate": "agent_message", "messageId": "m", "content": []})
        turn.emit(event_from({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": ["odd"]}))
        return None


async def test_a_turn_that_we_cannot_seal_is_not_lost_and_the_watchers_are_told(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_at(place, Careless()) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn, waiting = begin(engine, session, "hello"), begin(engine, session, "waiting")
        assert (await ended(turn)).reason == (await ended(waiting)).reason == "error"
        await recorder.until(lambda: recorder.drops)
        assert "load it again" in recorder.drops[0]
        session = await engine.restore(session.id, CWD)
        stored = await history(engine, session)
        assert texts(stored, "user_message") == ["hello"]
        kinds = [it["sessionUpdate"] for it in stored]
        assert kinds == ["user_message", "agent_message", "_holdfast/damaged", "_holdfast/turn_end"]
        assert stored[-1] == INTERRUPTED
        assert "makes no sense" in caplog.text


async def test_a_session_whose_recovery_fails_is_refused_and_not_held(place: Path, tmp_path: Path) -> None:
    """A directory stands where the log of the broken turn was: nothing is lost, and it can be repaired."""
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        turn = begin(engine, session, "say a", "wait gate")
        await agent.at("gate")
        left = disk_as_of_now(place, tmp_path / "left")
        agent.gates["gate"].set()
        await ended(turn)
    (log,) = (left.parent / f"{left.name}.turns").iterdir()
    kept = log.rename(left.parent / "kept")
    log.mkdir()
    async with engine_at(left) as engine:
        with pytest.raises(StoreError):
            await engine.restore(session.id, CWD)
        assert (await engine.store.get(session.id)).epoch == 1  # it was not taken
        log.rmdir()
        kept.rename(log)
        assert texts(await history(engine, await engine.restore(session.id, CWD))) == ["a"]
