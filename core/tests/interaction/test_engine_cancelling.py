"""C5: a cancelled turn ends as cancelled, whatever its agent makes of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.support.sessions import (
    CWD,
    PATIENCE,
    Recorder,
    ScriptedAgent,
    begin,
    ended,
    engine_at,
    history,
    run,
    texts,
    watch,
)
from holdfast.engine import EngineLimits
from holdfast.model import TurnEnd

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C5")

IMPATIENT = EngineLimits(cancel_grace=0.02)


async def test_an_agent_is_stopped_at_its_next_await_and_what_it_left_open_is_closed(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "say a", "call c Read", "call d Done", "done d", "terminal t", "wait g", "say b")
        await agent.at("g")
        session.cancel()
        assert await ended(turn) == TurnEnd("cancelled")
        stored = await history(engine, session)
        assert texts(stored) == ["a"]
        assert {it["toolCallId"]: it["status"] for it in stored if "toolCallId" in it} == {
            "c": "cancelled",
            "d": "completed",
        }
        assert [it["exitStatus"] for it in stored if "terminalId" in it] == [{}]
        assert stored[-1] == {"sessionUpdate": "_holdfast/turn_end", "reason": "cancelled"}
        assert recorder.states() == ["running", "cancelled"]
        assert "error" not in recorder.updates()[-1]
        assert recorder.history() == stored
        assert not session.state.interrupted
    async with engine_at(place) as engine:
        assert await history(engine, await engine.restore(session.id, CWD)) == stored


@pytest.mark.parametrize("reaction", ["swallow", "convert"])
async def test_a_cancellation_that_the_agent_swallows_or_converts_is_still_one(reaction: str) -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, f"{reaction} gate", "say and on", "stop refusal")
        await agent.at("gate")
        session.cancel()
        assert await ended(turn) == TurnEnd("cancelled")
        assert recorder.states() == ["running", "cancelled"]
        assert recorder.said() == ("swallowedand on" if reaction == "swallow" else "")
        assert recorder.history() == await history(engine, session)


async def test_an_agent_that_ignores_it_is_given_up_on_and_can_say_nothing_more() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent, IMPATIENT) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "say a", "call c Read", "ignore gate", "say b")
        await agent.at("gate")
        session.cancel()
        assert await ended(turn) == TurnEnd("cancelled")
        assert recorder.states() == ["running", "cancelled"]
        assert (await run(engine, session, "say after")).reason == "end_turn"  # the next turn does not wait for it
        agent.gates["gate"].set()
        await asyncio.sleep(0)
        await run(engine, session, "tick 3")
        assert recorder.said() == "aafter"
        assert recorder.history() == await history(engine, session)


async def test_an_agent_that_was_given_up_on_gets_no_permission_any_more() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent, IMPATIENT) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session, Recorder(always="allow_always"))
        await run(engine, session, "ask write")
        assert agent.told[-1] == ("may", "write")
        turn = begin(engine, session, "ignore gate", "ask write")
        other = begin(engine, session, "say never")
        await agent.at("gate")
        session.cancel()
        await ended(turn)
        await ended(other)
        agent.gates["gate"].set()
        await run(engine, session, "tick 5")
        assert agent.told.count(("may", "write")) == 1
        assert recorder.said() == "yes"


async def test_a_question_that_is_still_open_when_the_turn_ends_has_no_answer() -> None:
    """The agent asked in a task of its own, and did not wait for it."""
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "ask_aside write", "wait gate")
        put = await recorder.question()
        agent.gates["gate"].set()
        assert (await ended(turn)).reason == "end_turn"
        await recorder.until(lambda: put.withdrawn)
        assert await agent.aside[0] is None
        assert session.state.permissions == {}


@pytest.mark.parametrize("remembered", [True, False])
async def test_whoever_asks_after_the_turn_was_cancelled_gets_no_permission(*, remembered: bool) -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        if remembered:
            recorder.always = "allow_always"
            await run(engine, session, "ask write")
            recorder.always = None
        turn = begin(engine, session, "swallow gate", "ask write")
        await agent.at("gate")
        session.cancel()
        assert await ended(turn) == TurnEnd("cancelled")
        assert recorder.puts == []
        assert texts(await history(engine, session))[-1] == "none"


async def test_questions_that_are_open_have_no_answer_and_are_withdrawn() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "ask write", "say never")
        put = await recorder.question()
        session.cancel()
        assert await ended(turn) == TurnEnd("cancelled")
        assert put.withdrawn
        assert recorder.said() == ""
        assert recorder.states() == ["running", "requires_action", "running", "cancelled"]


async def test_an_approval_that_comes_with_the_cancellation_is_none() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "ask write", "say acted")
        put = await recorder.question()
        put.answer("allow_always")
        session.cancel()
        assert await ended(turn) == TurnEnd("cancelled")
        assert "acted" not in recorder.said()
        assert session.state.permissions == {}


async def test_an_approval_is_none_even_for_what_the_cancellation_does_not_reach() -> None:
    """The agent asked in a task of its own, which goes on."""
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        for answer in ("allow_once", "allow_always"):
            turn = begin(engine, session, "ask_aside write", "wait gate")
            put = await recorder.question(len(agent.aside) + 1)
            await agent.at("gate")
            put.answer(answer)
            session.cancel()
            assert await ended(turn) == TurnEnd("cancelled")
            assert await agent.aside[-1] is None
        assert session.state.permissions == {}


async def test_cancelling_an_idle_session_does_nothing(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        session.cancel()
        await run(engine, session, "say a")
        before = await history(engine, session)
        for _ in range(3):
            session.cancel()
        assert recorder.states() == ["running", "end_turn"]
        assert await history(engine, session) == before
        assert (await run(engine, session, "say b")).reason == "end_turn"


async def test_a_prompt_that_is_cancelled_while_it_is_being_stored_is_stored_and_never_performed(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "say a")
        while session.turn is None:  # noqa: ASYNC110  (a tick: it has left the queue and is on its way to the disk)
            await asyncio.sleep(0)
        assert not turn.accepted.done()
        session.cancel()
        assert await ended(turn) == TurnEnd("cancelled")
        assert await turn.accepted == turn.message_id
        assert agent.performed == []
        assert texts(await history(engine, session), "user_message") == ["say a"]
        assert recorder.states() == ["running", "cancelled"]


async def test_cancelling_again_and_again_is_cancelling_once() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        turn = begin(engine, session, "swallow a", "swallow b", "say end")
        await agent.at("a")
        session.cancel()
        await agent.at("b")
        session.cancel()
        agent.gates["b"].set()
        assert await ended(turn) == TurnEnd("cancelled")
        assert texts(await history(engine, session)) == ["swallowedend"]


async def test_a_turn_that_ends_by_itself_as_it_is_cancelled_is_sealed_once() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        for ticks in range(24):
            turn = begin(engine, session, f"say {ticks} ", "tick 2")
            if ticks % 2:
                await turn.accepted
            for _ in range(ticks // 2):
                await asyncio.sleep(0)
            session.cancel()
            async with asyncio.timeout(PATIENCE):
                await turn.ended
        await run(engine, session, "say end")
        assert recorder.history() == await history(engine, session)
        assert recorder.states().count("running") == len(recorder.states()) / 2
