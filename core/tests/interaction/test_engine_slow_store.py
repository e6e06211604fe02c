"""A store that keeps things later: nothing is shown before it is kept, and everything that depends on it waits (P1)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
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
    texts,
    watch,
)
from core.tests.support.slow_stores import SlowStore, as_store
from holdfast.engine import Engine

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

pytestmark = pytest.mark.requirement("P1")


@asynccontextmanager
async def slow_engine(place: Path | str, agent: ScriptedAgent) -> AsyncGenerator[tuple[Engine, SlowStore]]:
    store = await SlowStore.open(str(place))
    engine = Engine(as_store(store), agent)
    try:
        yield engine, store
    finally:
        store.let.set()
        async with asyncio.timeout(PATIENCE):
            await engine.shut_down()


async def a_while() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_is_said_is_shown_when_it_is_kept_and_not_before(place: Path) -> None:
    agent = ScriptedAgent()
    async with slow_engine(place, agent) as (engine, store):
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "say a", "tick", "say b", "notice n", "wait gate")
        await agent.at("gate")
        await a_while()
        assert recorder.said() == "" and not recorder.updates("notice")
        store.let.set()
        await recorder.until(lambda: recorder.updates("notice"))
        assert recorder.said() == "ab"
        agent.gates["gate"].set()
        assert (await ended(turn)).reason == "end_turn"
        assert recorder.history() == await history(engine, session)


async def test_the_end_of_a_turn_waits_for_what_was_said_in_it(place: Path) -> None:
    async with slow_engine(place, ScriptedAgent()) as (engine, store):
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "say a", "tick 3", "say b")
        await turn.accepted
        await a_while()
        assert not turn.ended.done()
        store.let.set()
        await ended(turn)
        assert recorder.said() == "ab"
        assert recorder.states() == ["running", "end_turn"]


async def test_a_question_is_put_when_what_it_is_about_was_shown(place: Path) -> None:
    async with slow_engine(place, ScriptedAgent()) as (engine, store):
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "call c Write", "ask write")
        await turn.accepted
        await a_while()
        assert not recorder.puts
        store.let.set()
        put = await recorder.question()
        assert recorder.updates("tool_call_update")
        put.answer("allow_always")
        await ended(turn)
        assert recorder.said() == "yes"


async def test_a_client_that_attaches_sees_everything_once(place: Path) -> None:
    agent = ScriptedAgent()
    async with slow_engine(place, agent) as (engine, store):
        session = await engine.create(CWD)
        turn = begin(engine, session, "say a", "wait gate", "say b")
        await agent.at("gate")
        late = Recorder()
        attaching = asyncio.ensure_future(watch(engine, session, late))
        await a_while()
        assert not attaching.done()
        store.let.set()
        await attaching
        agent.gates["gate"].set()
        await ended(turn)
        assert texts(late.history()) == ["ab"]
        assert late.history() == await history(engine, session)


async def test_what_is_announced_stays_in_order(place: Path) -> None:
    agent = ScriptedAgent()
    async with slow_engine(place, agent) as (engine, store):
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "say a", "wait gate", "say b")
        await agent.at("gate")
        await session.set_option("units", "f")
        agent.gates["gate"].set()
        await a_while()
        assert not recorder.updates("config_option_update")
        store.let.set()
        await ended(turn)
        kinds = [event.kind for event in recorder.events]
        chunks = [n for n, kind in enumerate(kinds) if kind == "agent_message_chunk"]
        assert chunks[0] < kinds.index("config_option_update") < chunks[1]


async def test_what_cannot_be_kept_is_never_shown_and_ends_the_turn(place: Path) -> None:
    agent = ScriptedAgent()
    async with slow_engine(place, agent) as (engine, store):
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        store.break_at = 2
        turn = begin(engine, session, "say a", "tick 3", "say b", "tick 3", "say c", "wait gate")
        await agent.at("gate")
        store.let.set()
        end = await ended(turn)
        assert end.reason == "error" and end.error == "The network is gone"
        # The seal went well: what was held back is stored now, and shown.
        assert recorder.said() == "abc"
        assert recorder.history() == await history(engine, session)
    async with engine_at(place) as again:
        assert texts(await history(again, await again.restore(session.id, CWD))) == ["abc"]


async def test_what_happens_between_turns_is_kept_before_it_is_shown(place: Path) -> None:
    async with slow_engine(place, ScriptedAgent()) as (engine, store):
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        session.emit_update({"sessionUpdate": "_news", "n": 1})
        session.emit_update({"sessionUpdate": "_news", "n": 2})
        await a_while()
        assert not recorder.events
        store.let.set()
        await recorder.until(lambda: len(recorder.updates("_news")) == 2)
        assert [update["n"] for update in recorder.updates("_news")] == [1, 2]
        assert recorder.history() == await history(engine, session)
