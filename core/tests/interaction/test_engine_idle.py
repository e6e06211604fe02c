"""Sessions that nobody uses: they leave memory, come back when asked for, and may be deleted in the end."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
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
from holdfast import Agent, Turn
from holdfast.agent.port import AuthorAgent
from holdfast.engine import EngineLimits
from holdfast.errors import SessionNotFound
from holdfast.server import Host

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import Engine, LiveSession

pytestmark = pytest.mark.requirement("B18")

QUICK = EngineLimits(idle=0.04)


async def test_an_idle_session_leaves_memory_and_comes_back_when_asked_for(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent, QUICK) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say hi", "remember n 1")
        await agent.heard("closed", session.id)
        with pytest.raises(SessionNotFound):
            engine.get(session.id)
        revived = await engine.restore(session.id, CWD)
        assert revived is not session
        assert revived.state.memory == {"n": 1}
        assert texts(await history(engine, revived)) == ["hi"]
        assert agent.told.count(("opened", session.id)) == 2


async def test_a_session_that_is_watched_or_works_stays_in_memory() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent, QUICK) as engine:
        # Each is used as soon as it is there: to make the next may take longer than one may be idle.
        watched = await engine.create(CWD)
        attachment = await watched.attach(Recorder())
        working = await engine.create(CWD)
        turn = begin(engine, working, "wait gate")
        idle = await engine.create(CWD)
        await agent.heard("closed", idle.id)
        again = await engine.create(CWD)
        await agent.heard("closed", again.id)
        assert engine.get(watched.id) is watched
        assert engine.get(working.id) is working
        agent.gates["gate"].set()
        assert (await ended(turn)).reason == "end_turn"
        watched.detach(attachment)
        await agent.heard("closed", watched.id)
        await agent.heard("closed", working.id)


async def test_old_sessions_that_nobody_uses_are_deleted_where_that_is_wanted(place: Path) -> None:
    async with engine_at(place) as engine:
        old = [await engine.create(CWD) for _ in range(2)]
        for session in old:
            await run(engine, session, "say hi")
    # The first sweep comes after five seconds: by then the one that is used has been opened.
    async with engine_at(place, limits=EngineLimits(idle=20.0, keep=0.0)) as engine:
        used = await engine.restore(old[0].id, CWD)
        await watch(engine, used)
        await _until_gone(engine, old[1].id)
        assert [it.id for it in (await engine.list()).sessions] == [used.id]


async def test_sessions_are_kept_for_ever_unless_said_otherwise(place: Path) -> None:
    async with engine_at(place) as engine:
        kept = await engine.create(CWD)
        await run(engine, kept, "say hi")
    agent = ScriptedAgent()
    async with engine_at(place, agent, EngineLimits(idle=0.04)) as engine:
        swept = await engine.create(CWD)
        await agent.heard("closed", swept.id)
        assert [it.id for it in (await engine.list()).sessions] == [kept.id]


async def _until_gone(engine: Engine, session_id: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while session_id in [it.id for it in (await engine.list()).sessions]:  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.005)


async def test_a_session_is_not_taken_from_whoever_has_just_restored_it(place: Path) -> None:
    """Opening takes longer than a session may be idle: whoever sweeps comes to close it while it is being opened."""
    async with engine_at(place) as engine:
        created = await engine.create(CWD)

    class Slow(ScriptedAgent):
        async def opened(self, session: LiveSession) -> None:
            await asyncio.sleep(5 * QUICK.idle)

    agent = Slow()
    async with engine_at(place, agent, QUICK) as engine:
        session = await engine.restore(created.id, CWD)
        recorder = await watch(engine, session)
        assert (await run(engine, session, "say hi")).reason == "end_turn"
        assert engine.get(session.id) is session
        assert recorder.said() == "hi"


async def test_a_hook_that_fails_when_a_session_is_let_go_does_not_keep_the_others_in_memory() -> None:
    agent = ScriptedAgent()
    agent.refuse.add("closed")
    async with engine_at(":memory:", agent, QUICK) as engine:
        sessions = [await engine.create(CWD) for _ in range(3)]
        for session in sessions:
            await agent.heard("closed", session.id)
        another = await engine.create(CWD)
        await agent.heard("closed", another.id)


async def test_shutting_down_while_a_session_is_let_go_lets_its_agent_finish() -> None:
    agent = ScriptedAgent()
    finished: list[str] = []

    async def slowly(session: LiveSession) -> None:
        agent.arrived["closing"].set()
        await agent.gates["closing"].wait()
        finished.append(session.id)

    agent.closed = slowly
    async with engine_at(":memory:", agent, QUICK) as engine:
        session = await engine.create(CWD)
        await agent.at("closing")
        asyncio.get_running_loop().call_later(0.02, agent.gates["closing"].set)
    assert finished == [session.id]


async def test_a_session_that_does_nothing_takes_little_memory() -> None:
    """A server may hold many. Counted is what Python keeps for each; what a store keeps in C is its own."""
    agent = Agent("idle")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.say("hello")

    engine = await Host(AuthorAgent(agent), store=":memory:").engine()
    for n in range(50):
        await engine.create(f"/home/somebody/project-{n}")
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for n in range(200):
            await engine.create(f"/home/somebody/project-{n}")
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    await engine.shut_down()
    assert (after - before) / 200 < 2_100
