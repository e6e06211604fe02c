"""What fails around a node: its process is stopped or killed, its connections are cut, the database restarts."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from core.tests.support import postgres
from core.tests.support.neighbours import neighbour
from core.tests.support.sessions import ScriptedAgent, begin, ended, engine_at, texts, watch
from core.tests.support.sessions import history as stored
from core.tests.support.stores import (
    CWD,
    NOTHING,
    Place,
    died,
    history,
    keep,
    logged,
    message,
    new,
    prompt,
    talked,
    turn,
)
from holdfast.errors import SessionMoved, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from holdfast.store import Claim, SessionStore, TurnLog

pytestmark = [pytest.mark.requirement("P1", "P3", "P4"), pytest.mark.timeout(180)]

PATIENCE = 60.0


@pytest.fixture
def place() -> Place:
    return Place(postgres.empty_database())


@pytest.fixture
def leased() -> Place:
    """Where the lease of a node that gives no sign of life is over soon."""
    return Place(postgres.empty_database(postgres.SHORT_LEASE))


@pytest.fixture
def cluster() -> Iterator[postgres.Cluster]:
    """A server that a test may stop."""
    if postgres.GIVEN in os.environ:
        pytest.skip(f"{postgres.GIVEN} names a server that is not ours to stop")
    postgres.server()  # or why there is none
    cluster = postgres.Cluster(postgres.new_directory())
    try:
        cluster.create()
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


@asynccontextmanager
async def cuts(address: str, pause: float = 0.4) -> AsyncGenerator[list[int]]:
    """Cut all connections of nodes again and again; give how many each time."""
    counted: list[int] = []

    async def cut() -> None:
        while True:
            await asyncio.sleep(pause)
            ((count,),) = await postgres.run_sql(
                address,
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE application_name = 'holdfast' AND datname = current_database()",
            )
            counted.append(count)

    cutting = asyncio.ensure_future(cut())
    try:
        yield counted
    finally:
        cutting.cancel()
        with suppress(asyncio.CancelledError):
            await cutting


async def say(log: TurnLog, first: int, count: int) -> list[bytes]:
    """Say so much, one after the other; give what was kept, as a reader would see it."""
    said = [message(f"said {n}", key=f"m{n}") for n in range(first, first + count)]
    for line in said:
        await asyncio.wait_for(keep(log, line), PATIENCE)
    return [logged(line) for line in said]


async def unsealed(store: SessionStore, claim: Claim) -> list[bytes]:
    found = (await store.snapshot(claim.session)).unsealed
    assert found is not None
    return found.lines


async def is_running(store: SessionStore, claim: Claim) -> bool:
    found = (await store.snapshot(claim.session)).unsealed
    return found is not None and found.running_in is not None


async def test_a_node_that_was_stopped_past_its_lease_is_refused_at_its_next_word(leased: Place) -> None:
    async with leased.open() as store, neighbour(leased.path) as other:
        session, idle = await other.do("create"), await other.do("create")
        await other.do("begin", session, "q")
        await other.do("append", session, "before")
        os.kill(other.pid, signal.SIGSTOP)
        try:
            await died(store, session)
            claimed = await store.claim(session)
            assert claimed.broken is not None and len(claimed.broken.lines) == 2
            await store.seal(claimed.claim, [message("recovered")], NOTHING, messages=1)
            await turn(store, claimed.claim, message("goes on"))
            expected = await history(store, session)
        finally:
            os.kill(other.pid, signal.SIGCONT)
        with pytest.raises(StoreError):
            await other.do("append", session, "stale")
        with pytest.raises(SessionMoved):
            await other.do("seal", session, "stale")
        with pytest.raises(SessionMoved):
            await other.do("save", idle, "stale")
        assert await history(store, session) == expected
        await other.do("claim", idle)  # as another node it may go on
        await other.do("begin", idle, "q")
        await other.do("seal", idle, "said")
        assert len(await history(store, idle)) == 1


async def test_a_stopped_node_that_nobody_took_anything_from_just_goes_on(leased: Place) -> None:
    async with leased.open() as store, neighbour(leased.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q")
        os.kill(other.pid, signal.SIGSTOP)
        try:
            await died(store, session)
        finally:
            os.kill(other.pid, signal.SIGCONT)
        await other.do("append", session, "after")
        await other.do("seal", session, "sealed")
        assert len(await history(store, session)) == 1


async def test_a_heartbeat_that_the_database_refuses_goes_on_when_it_does_not_any_more(
    leased: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with leased.open() as store, leased.open() as other:
        claim = await new(store)
        log = await store.begin(claim, prompt("q"), NOTHING)
        await postgres.run_sql(
            leased.path,
            "CREATE FUNCTION holdfast.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$",
            "CREATE TRIGGER refuse BEFORE UPDATE ON holdfast.node EXECUTE FUNCTION holdfast.refuse()",
        )
        try:
            await died(other, claim.session)
            assert "refuses the heartbeat" in caplog.text
        finally:
            await postgres.run_sql(leased.path, "DROP FUNCTION holdfast.refuse CASCADE")
        async with asyncio.timeout(PATIENCE):
            while not await is_running(other, claim):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await keep(log, message("goes on"))


async def test_a_node_that_was_killed_is_succeeded_with_all_that_it_had_kept(leased: Place) -> None:
    async with leased.open() as store, neighbour(leased.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q")
        for n in range(20):
            await other.do("append", session, f"said {n}")
        await other.kill()
        await died(store, session)
        claimed = await store.claim(session)
        assert claimed.broken is not None and len(claimed.broken.lines) == 21


async def test_while_connections_are_cut_nothing_is_lost_and_nothing_is_there_twice(place: Place) -> None:
    async with place.open() as store:
        claims = [await new(store) for _ in range(3)]
        asked = prompt("q")
        async with cuts(place.path) as counted:
            logs = [await store.begin(claim, asked, NOTHING) for claim in claims]
            said = await asyncio.gather(*(say(log, 0, 60) for log in logs))
            for claim, lines in zip(claims, said, strict=True):
                assert await unsealed(store, claim) == [*asked, *lines]
            for claim in claims:
                await store.seal(claim, [message("a"), message("b")], NOTHING, messages=2)
                await turn(store, claim, message("c"))
            claims += [await talked(store, CWD, "x") for _ in range(10)]
            while sum(counted) < 5:
                await turn(store, claims[0], message("more"))
        for claim in claims[1:3]:
            assert len(await history(store, claim.session)) == 3
        record = await store.get(claims[0].session)
        assert record.lines == record.info.messages == len(await history(store, claims[0].session))
        assert {found.level async for found in store.examine()} <= {"ok"}


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_database_that_restarts_is_a_pause(cluster: postgres.Cluster, mode: str) -> None:
    place = Place(cluster.address)
    async with place.open() as store:
        claim, other = await new(store), await talked(store, CWD, "before")
        log = await store.begin(claim, asked := prompt("q"), NOTHING)
        said = await say(log, 0, 20)
        restarting = asyncio.ensure_future(asyncio.to_thread(cluster.restart, mode))
        said += await say(log, 20, 20)
        await turn(store, other, message("meanwhile"))
        await restarting
        said += await say(log, 40, 5)
        assert await unsealed(store, claim) == [*asked, *said]
        await store.seal(claim, [message("sealed")], NOTHING, messages=1)
        assert len(await history(store, other.session)) == 2


async def test_a_database_that_does_not_come_back_is_an_error_that_says_so(
    cluster: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.store.postgres import database, flushing

    for module in (database, flushing):
        monkeypatch.setattr(module, "PATIENCE", 1.0)
    monkeypatch.setattr(database.Retries.__init__, "__defaults__", (1.0,))
    store = await postgres_store(cluster)
    claim = await new(store)
    log = await store.begin(claim, prompt("q"), NOTHING)
    await keep(log, message("kept"))
    await asyncio.to_thread(cluster.stop, "immediate")
    try:
        with pytest.raises(StoreError, match="cannot be reached"):
            await keep(log, message("lost"))
        with pytest.raises(StoreError, match="cannot be reached"):
            await store.get(claim.session)
    finally:
        await asyncio.wait_for(store.close(), PATIENCE)


async def postgres_store(cluster: postgres.Cluster) -> SessionStore:
    from holdfast.store import open_store

    return await open_store(cluster.address)


async def test_what_clients_have_seen_is_stored_while_connections_are_cut(place: Place) -> None:
    agent = ScriptedAgent()
    async with engine_at(place.path, agent) as engine, cuts(place.path):
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        for number in range(4):
            script = [line for n in range(40) for line in (f"say {number}.{n} ", "tick 2")]
            end = await ended(begin(engine, session, *script))
            assert end.reason == "end_turn", end
        expected = ["".join(f"{number}.{n} " for n in range(40)) for number in range(4)]
        assert texts(recorder.history()) == expected
        assert texts(await stored(engine, session)) == expected


async def test_a_turn_whose_node_was_fenced_ends_and_shows_nothing_more(place: Place) -> None:
    agent = ScriptedAgent()
    async with engine_at(place.path, agent) as engine, place.open() as other:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "say before", "wait gate", "say stale", "tick 3", "say stale too", "wait never")
        await agent.at("gate")
        await recorder.until(lambda: recorder.said() == "before")
        await postgres.run_sql(place.path, "DELETE FROM holdfast.node")
        claimed = await other.claim(session.id)
        agent.gates["gate"].set()
        end = await ended(turn)
        assert end.reason == "error"
        assert recorder.said() == "before"
        assert claimed.broken is not None and b"stale" not in b"".join(claimed.broken.lines[1:])
        assert recorder.dropped
