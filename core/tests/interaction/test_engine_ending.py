"""Beginning and ending: agents that cannot open or close a session, and the end of an engine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.support.sessions import (
    CWD,
    PATIENCE,
    ScriptedAgent,
    begin,
    ended,
    engine_at,
    history,
    run,
    texts,
    watch,
)
from holdfast.engine import Engine, EngineLimits
from holdfast.errors import SessionNotFound
from holdfast.model import TurnEnd
from holdfast.store import open_store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("how", ["create", "restore", "fork"])
async def test_a_session_the_agent_cannot_open_is_not_open_and_can_be_opened_later(place: Path, how: str) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine, engine_at(place) as other:
        session = await engine.create(CWD)
        await run(engine, session, "say hi")
        if how == "restore":
            await engine.close(session.id)
        agent.refuse.add("opened")
        opening = {
            "create": lambda: engine.create(CWD),
            "restore": lambda: engine.restore(session.id, CWD),
            "fork": lambda: engine.fork(session.id, CWD),
        }[how]
        with pytest.raises(RuntimeError):
            await opening()
        _, refused = agent.told[-1]
        with pytest.raises(SessionNotFound):
            engine.get(refused)
        if how == "create":  # nobody has ever heard of it
            with pytest.raises(SessionNotFound):
                await other.restore(refused, CWD)
            return
        elsewhere = await other.restore(refused, CWD)  # nobody holds it
        assert texts(await history(other, elsewhere)) == ["hi"]
        agent.refuse.clear()
        assert (await run(engine, await engine.restore(refused, CWD), "say on")).reason == "end_turn"


async def test_a_session_the_agent_cannot_close_is_closed_all_the_same(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = ScriptedAgent()
    agent.refuse.add("closed")
    async with engine_at(place, agent) as engine:
        session, other = await engine.create(CWD), await engine.create(CWD)
        await engine.close(session.id)
        with pytest.raises(SessionNotFound):
            engine.get(session.id)
        await engine.delete(other.id)
        with pytest.raises(SessionNotFound):
            await engine.restore(other.id, CWD)
        await engine.restore(session.id, CWD)
    assert "secret" in caplog.text
    assert agent.told.count(("closed", session.id)) == 2


async def test_the_end_of_an_engine_ends_its_turns_and_lets_go_of_its_sessions(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place) as other:
        async with engine_at(place, agent) as engine:
            running, idle = await engine.create(CWD), await engine.create(CWD)
            recorder = await watch(engine, running)
            turn = begin(engine, running, "say a", "call c Run", "wait gate")
            waiting = begin(engine, running, "say never")
            await agent.at("gate")
        assert await ended(turn) == await ended(waiting) == TurnEnd("cancelled")
        assert recorder.states() == ["running", "cancelled"]
        assert {it for it in agent.told if it[0] == "closed"} == {("closed", running.id), ("closed", idle.id)}
        stored = await history(other, await other.restore(running.id, CWD))  # at once
        assert stored == recorder.history()
        assert stored[-1]["reason"] == "cancelled"
        assert not (await other.restore(running.id, CWD)).state.interrupted


@pytest.mark.parametrize("closing", [True, False])
async def test_an_engine_that_ends_waits_for_a_stubborn_agent_no_longer_than_it_is_told(
    place: Path, *, closing: bool
) -> None:
    agent = ScriptedAgent()
    engine = Engine(await open_store(str(place)), agent, limits=EngineLimits(cancel_grace=60))
    session = await engine.create(CWD)
    turn = begin(engine, session, "say a", "ignore gate", "say b")
    await agent.at("gate")
    leaving = asyncio.ensure_future(engine.close(session.id)) if closing else None
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        await engine.shut_down(grace=0.02)
    assert await ended(turn) == TurnEnd("cancelled")
    assert leaving is None or leaving.done()
    agent.gates["gate"].set()
    async with engine_at(place) as after:
        assert texts(await history(after, await after.restore(session.id, CWD))) == ["a"]


async def test_an_engine_ends_even_if_an_agent_fails_to_close_its_sessions(place: Path) -> None:
    agent = ScriptedAgent()
    agent.refuse.add("closed")
    async with engine_at(place, agent) as engine:
        sessions = [await engine.create(CWD) for _ in range(3)]
        await run(engine, sessions[0], "say a")
    assert len([it for it in agent.told if it[0] == "closed"]) == 3
    async with engine_at(place) as engine:
        for session in sessions:
            await engine.restore(session.id, CWD)


@pytest.mark.parametrize("how", ["close", "delete"])
async def test_whoever_gives_up_waiting_for_a_session_to_close_does_not_leave_it_half_closed(
    place: Path, how: str
) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        turn = begin(engine, session, "say a", "swallow gate", "wait second", "say b")
        await agent.at("gate")
        closing = asyncio.ensure_future(getattr(engine, how)(session.id))
        await agent.at("second")  # it closes, and the agent takes its time
        closing.cancel()
        await asyncio.wait({closing})
        restoring = asyncio.ensure_future(engine.restore(session.id, CWD))
        await asyncio.sleep(0)
        assert ("closed", session.id) not in agent.told
        agent.gates["second"].set()
        assert await ended(turn) == TurnEnd("cancelled")
        if how == "close":
            assert texts(await history(engine, await restoring)) == ["aswallowedb"]
        else:
            with pytest.raises(SessionNotFound):
                await restoring
        assert agent.told.count(("closed", session.id)) == 1


async def test_an_engine_that_ends_waits_for_a_session_that_is_closing(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        begin(engine, session, "swallow gate", "wait second", "say b")
        await agent.at("gate")
        closing = asyncio.ensure_future(engine.close(session.id))
        await agent.at("second")
        closing.cancel()
        asyncio.get_running_loop().call_later(0.02, agent.gates["second"].set)
    assert agent.told[-1] == ("closed", session.id)
    async with engine_at(place) as engine:
        assert texts(await history(engine, await engine.restore(session.id, CWD))) == ["swallowedb"]


async def test_whoever_gives_up_waiting_for_a_change_leaves_memory_and_store_the_same(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        for change in (session.set_option("units", "f"), session.rename("T")):
            changing = asyncio.ensure_future(change)
            await asyncio.sleep(0)
            changing.cancel()
            await asyncio.wait({changing})
            assert changing.cancelled()
        await recorder.until(lambda: len(recorder.events) == 2)
        stored = await engine.store.get(session.id)
        assert stored.state.options == session.state.options == {"units": "f"}
        assert stored.info.title == session.title == "T"
