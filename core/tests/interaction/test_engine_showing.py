"""When what a turn says is shown: at once if it is alone, with what follows closely, and before its consequences."""

from __future__ import annotations

from contextlib import asynccontextmanager
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
    texts,
    watch,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from core.tests.support.sessions import Recorder
    from holdfast.engine import Engine, LiveSession, LiveTurn

SLOW = "say a", "tick", "say b", "tick", "say c", "tick 2", "wait gate", "say d"


@asynccontextmanager
async def at_the_gate(
    place: Path, agent: ScriptedAgent
) -> AsyncGenerator[tuple[Engine, LiveSession, Recorder, LiveTurn]]:
    """Have a turn that has said three things, and somebody who watches it."""
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, *SLOW)
        await agent.at("gate")
        yield engine, session, recorder, turn


def slowly(monkeypatch: pytest.MonkeyPatch, seconds: float = 3600) -> None:
    monkeypatch.setattr("holdfast.engine.log.PACE", seconds)


@pytest.mark.requirement("P1")
async def test_what_is_said_in_quick_succession_is_stored_and_shown_together(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly(monkeypatch)
    agent = ScriptedAgent()
    async with at_the_gate(place, agent) as (engine, session, recorder, turn):
        assert recorder.said() == "a"  # what follows waits for a moment
        left = disk_as_of_now(place, tmp_path / "left")
        agent.gates["gate"].set()
        await ended(turn)
        assert recorder.said() == "abcd"
        assert recorder.states()[-1] == "end_turn"
    async with engine_at(left) as engine:
        assert texts(await history(engine, await engine.restore(session.id, CWD))) == ["a"]


@pytest.mark.requirement("P1", "P3")
async def test_what_an_agent_does_is_stored_at_the_end_of_its_tick_with_all_that_was_said_before(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly(monkeypatch)
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "say a", "tick", "say b", "tick", "call t Delete", "tick", "say c", "wait gate")
        await agent.at("gate")
        assert recorder.said() == "a"
        left = disk_as_of_now(place, tmp_path / "left")
        agent.gates["gate"].set()
        await ended(turn)
    async with engine_at(left) as engine:
        entries = await history(engine, await engine.restore(session.id, CWD))
        assert texts(entries) == ["ab"]
        assert [entry["title"] for entry in entries if entry["sessionUpdate"] == "tool_call_update"] == ["Delete"]


async def test_it_is_shown_in_a_moment_even_if_nothing_else_happens(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly(monkeypatch, 0.05)
    agent = ScriptedAgent()
    async with at_the_gate(place, agent) as (_, _, recorder, turn):
        await recorder.until(lambda: recorder.said() == "abc")
        agent.gates["gate"].set()
        await ended(turn)


@pytest.mark.requirement("C8")
async def test_what_was_said_before_a_question_is_shown_before_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slowly(monkeypatch)
    async with engine_at(place, ScriptedAgent()) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "say a", "tick", "say b", "ask fly")
        put = await recorder.question()
        assert recorder.said() == "ab"
        assert recorder.states() == ["running", "requires_action"]
        put.answer(None)
        await ended(turn)


async def test_whoever_comes_later_sees_it_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slowly(monkeypatch)
    agent = ScriptedAgent()
    async with at_the_gate(place, agent) as (engine, session, early, turn):
        late = await watch(engine, session)
        assert early.said() == "abc"
        agent.gates["gate"].set()
        await ended(turn)
        assert texts(early.history()) == texts(late.history()) == ["abcd"]
