"""Turns that nobody is told of before they end: their prompt is stored with the first thing said, or with the seal.

That such a turn runs is stored before its agent is asked for anything; what a crash of the database forgets of that,
nobody has seen.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from core.tests.support import postgres
from core.tests.support.sessions import (
    CWD,
    ScriptedAgent,
    block,
    ended,
    engine_at,
    eventually,
    history,
    run,
    texts,
    watch,
)
from core.tests.support.stores import NOTHING, Place, keep, logged, message, new, prompt, talked, turn, walk
from holdfast.engine import EngineLimits
from holdfast.engine.journal import claim_session
from holdfast.errors import SessionBusy, SessionMoved, StoreError
from holdfast.model import SessionState
from holdfast.store import Changes, EventWindow

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from holdfast.engine import LiveSession, LiveTurn
    from holdfast.store import Claim, SessionStore

pytestmark = [pytest.mark.requirement("P1", "P2", "P4"), pytest.mark.timeout(180)]

KEEPING = EngineLimits(keep_events=EventWindow())
FORGET = "UPDATE holdfast.session SET turn = turn - 1, unsealed = false WHERE unsealed"
"""What a crash does to a turn of which nothing but that it runs was stored."""

STATE = Changes(state=SessionState())
"""What the seal of most turns changes."""


@pytest.fixture
def place() -> Place:
    return Place(postgres.empty_database())


@pytest.fixture
def cluster() -> Iterator[postgres.Cluster]:
    """A server that a test may stop, and that writes what nobody waits for to its disk very late."""
    if postgres.GIVEN in os.environ:
        pytest.skip(f"{postgres.GIVEN} names a server that is not ours to stop")
    postgres.server()  # or why there is none
    cluster = postgres.Cluster(postgres.new_directory())
    try:
        cluster.create(wal_writer_delay="10s")
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


@asynccontextmanager
async def nothing_is_logged(place: Place) -> AsyncGenerator[None]:
    """Let whatever would write into the log of turns wait."""
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    connect = cast("Any", asyncpg.connect)  # pyright: ignore[reportUnknownMemberType]
    connection = await connect(postgres.OURS.sub("", place.path))
    try:
        await connection.execute("BEGIN")
        await connection.execute("LOCK TABLE holdfast.turn_log IN SHARE MODE")
        yield
    finally:
        await connection.close()


def begin(session: LiveSession, *script: str) -> LiveTurn:
    """Prompt as version 1 does: nobody is told that the prompt was accepted."""
    return session.prompt([block("\n".join(script))], acknowledged=False)


async def begun(store: SessionStore, claim: Claim) -> Any:
    return await store.begin(claim, prompt("q"), NOTHING, durable=False)


async def unsealed(store: SessionStore, claim: Claim) -> list[bytes]:
    snapshot = await store.snapshot(claim.session)
    assert snapshot.unsealed is not None
    return snapshot.unsealed.lines


async def test_a_prompt_is_shown_when_it_is_stored_and_not_before(place: Place) -> None:
    agent = ScriptedAgent()
    async with engine_at(place.path, agent) as engine, place.open() as other:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say one")
        shown = len(recorder.events)
        async with nothing_is_logged(place):
            ends = begin(session, "say two", "wait gate")
            await agent.at("gate")
            await asyncio.sleep(0.2)
            assert len(recorder.events) == shown and recorder.said() == "one"
            assert await unsealed(other, session.journal.claim) == []
            with pytest.raises(SessionBusy):
                await other.claim(session.id)
        await eventually(lambda: recorder.said() == "onetwo")
        assert len(await unsealed(other, session.journal.claim)) == 2
        agent.gates["gate"].set()
        assert (await ended(ends)).reason == "end_turn"
        assert texts(recorder.history()) == texts(await history(engine, session)) == ["one", "two"]


async def test_an_agent_with_a_memory_of_its_own_is_asked_when_the_prompt_is_stored(place: Place) -> None:
    agent = ScriptedAgent(begins_entries=False)
    async with engine_at(place.path, agent) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say one")
        async with nothing_is_logged(place):
            ends = begin(session, "say two")
            await asyncio.sleep(0.3)
            assert agent.performed == ["say one"]
        await ended(ends)
        assert agent.performed == ["say one", "say two"]


@pytest.mark.parametrize("limits", [None, KEEPING])
async def test_the_agent_of_a_session_that_others_have_taken_is_not_asked_at_all(
    place: Place, limits: EngineLimits | None
) -> None:
    agent = ScriptedAgent()
    async with engine_at(place.path, agent, limits) as engine, place.open() as other:
        session = await engine.create(CWD)
        await run(engine, session, "say one")
        await other.claim(session.id)
        ends = begin(session, "say stale")
        assert (await ended(ends)).reason == "error" and isinstance(ends.refusal, SessionMoved)
        assert agent.performed == ["say one"]


async def test_a_turn_whose_node_is_fenced_before_its_prompt_is_stored_stores_nothing(place: Place) -> None:
    async with place.open() as store, place.open() as other:
        claims = [await talked(store, CWD, "a"), await talked(store, CWD, "b")]
        logs = [await begun(store, claim) for claim in claims]
        await postgres.run_sql(place.path, "DELETE FROM holdfast.node")
        broken = [(await other.claim(claim.session)).broken for claim in claims]
        assert [turn and turn.lines for turn in broken] == [[], []]
        with pytest.raises(StoreError, match="taken this session over"):
            await keep(logs[0], message("stale"))
        for claim in claims:
            with pytest.raises(SessionMoved):
                await store.seal(claim, [message("stale")], STATE, messages=1)
            assert await unsealed(other, claim) == [] and (await other.get(claim.session)).lines == 1


@pytest.mark.parametrize("changes", [NOTHING, STATE])
@pytest.mark.parametrize("says", [True, False])
async def test_what_a_crash_of_the_database_has_forgotten_of_a_turn_is_stored_once_more(
    place: Place, says: bool, changes: Changes
) -> None:
    async with place.open() as store:
        claim = await talked(store, CWD, "a")
        log = await begun(store, claim)
        await postgres.run_sql(place.path, FORGET)
        if says:
            await keep(log, said := message("said"))
            assert (await unsealed(store, claim))[1:] == [logged(said)]
        await store.seal(claim, [message("sealed")], changes, messages=1)
        await turn(store, claim, message("next"))
        record = await store.get(claim.session)
        assert record.turn == 3 and record.lines == 3
        assert {found.level async for found in store.examine()} <= {"ok"}


async def test_a_session_that_was_taken_after_such_a_crash_is_not_taken_back(place: Place) -> None:
    async with place.open() as store, place.open() as other:
        claims = [await talked(store, CWD, "a"), await talked(store, CWD, "a")]
        logs = [await begun(store, claim) for claim in claims]
        await postgres.run_sql(place.path, FORGET)
        for claim in claims:
            await other.claim(claim.session)
        with pytest.raises(StoreError, match="taken this session over"):
            await keep(logs[0], message("stale"))
        for claim in claims:
            with pytest.raises(SessionMoved):
                await store.seal(claim, [message("stale")], NOTHING, messages=1)
            assert (await other.get(claim.session)).lines == 1


async def test_a_turn_goes_on_though_the_database_crashes_before_its_prompt_is_stored(
    cluster: postgres.Cluster,
) -> None:
    place = Place(cluster.address)
    async with place.open() as store:
        said, unsaid = await talked(store, CWD, "a"), await talked(store, CWD, "a")
        log, _ = await begun(store, said), await begun(store, unsaid)
        await asyncio.to_thread(cluster.restart, "immediate")
        await keep(log, line := message("said"))
        assert (await unsealed(store, said))[1:] == [logged(line)]
        for claim in (said, unsaid):
            await store.seal(claim, [message("sealed")], NOTHING, messages=1)
            await turn(store, claim, message("next"))
            assert (await store.get(claim.session)).lines == 3


async def test_what_is_committed_after_a_turn_has_begun_is_waited_for_as_ever(place: Place) -> None:
    from holdfast.store.postgres import PostgresStore

    async with place.open() as store:
        assert isinstance(store, PostgresStore)
        claim = await talked(store, CWD, "a")
        await begun(store, claim)
        found = await store._database.first("server_version")  # pyright: ignore[reportPrivateUsage]
        assert found["synchronous_commit"] == "on"


@pytest.mark.requirement("P3")
async def test_a_node_that_dies_before_the_prompt_is_stored_leaves_nothing_behind(place: Place) -> None:
    async with place.open() as dead, place.open() as store:
        for one in (dead, store):
            one.keep_events(EventWindow())
        claim = await talked(dead, CWD, "a")
        await begun(dead, claim)
        await postgres.run_sql(place.path, "DELETE FROM holdfast.node")
        made = await claim_session(store, claim.session, begins_entries=True, keeps_events=True)
        assert made.record.lines == 1
        await turn(store, made.claim, message("next"))
        assert {found.level async for found in store.examine()} <= {"ok"}


async def test_a_prompt_is_activity_of_its_session_and_waits_for_no_other(place: Place) -> None:
    async with place.open() as store:
        locked, free, idle = [await talked(store, CWD, "a") for _ in range(3)]
        logs = [await begun(store, claim) for claim in (locked, free)]
        assert (await walk(store))[0] == idle.session
        import asyncpg  # pyright: ignore[reportMissingTypeStubs]

        connection = await cast("Any", asyncpg.connect)(postgres.OURS.sub("", place.path))  # pyright: ignore[reportUnknownMemberType]
        try:
            await connection.execute("BEGIN")
            await connection.execute("SELECT FROM holdfast.session WHERE id = $1 FOR UPDATE", locked.session)
            async with asyncio.timeout(60):
                await asyncio.gather(*(keep(log, message("said")) for log in logs))
        finally:
            await connection.close()
        assert (await walk(store))[0] == free.session
        await store.seal(locked, [message("sealed")], NOTHING, messages=1)
        assert (await walk(store))[0] == locked.session


async def test_a_session_whose_first_prompt_makes_no_title_is_listed(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        assert await walk(store) == []
        await begun(store, claim)
        await store.seal(claim, [message("sealed")], NOTHING, messages=1)
        assert await walk(store) == [claim.session]
