"""Races between nodes on one database, each played so that the dangerous order is the one that happens (P4).

What a node is about to write and what a taker does are held apart by transactions of the test: it holds a lock that the
one needs, until the other has done its part.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from core.tests.support.postgres import OURS, SHORT_LEASE, empty_database
from core.tests.support.stores import (
    NOTHING,
    Place,
    bodies,
    history,
    info,
    keep,
    logged,
    message,
    new,
    prompt,
    talked,
    turn,
)
from holdfast.errors import SessionBusy, SessionMoved, StoreError
from holdfast.model import SessionState
from holdfast.store import Changes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable

    from holdfast.store import Claim, SessionStore

pytestmark = pytest.mark.requirement("P4")

PATIENCE = 30.0


@pytest.fixture
def place() -> Place:
    return Place(empty_database())


@pytest.fixture
def beating() -> Place:
    """Where a node asks the database several times a second whether it is still one."""
    return Place(empty_database(SHORT_LEASE))


class Rival:
    """A connection of the test's own, in a transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def do(self, statement: str, *arguments: Any) -> list[Any]:
        return await self._connection.fetch(statement, *arguments)

    async def commit(self) -> None:
        await self._connection.execute("COMMIT")

    async def blocks(self, work: Awaitable[Any]) -> asyncio.Future[Any]:
        """Start something that has to wait for this transaction; return it when it does."""
        waiting = asyncio.ensure_future(work)
        mine = await self._connection.fetchval("SELECT pg_backend_pid()")
        async with asyncio.timeout(PATIENCE):
            while not await self._connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))", mine
            ):
                assert not waiting.done(), waiting
                await asyncio.sleep(0.01)
                # Whoever has connected meanwhile is not in what this transaction has seen.
                await self._connection.execute("SELECT pg_stat_clear_snapshot()")
        return waiting


@asynccontextmanager
async def rival(place: Place) -> AsyncGenerator[Rival]:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    connect = cast("Any", asyncpg.connect)  # pyright: ignore[reportUnknownMemberType]
    connection = await connect(OURS.sub("", place.path))
    try:
        await connection.execute("BEGIN")
        yield Rival(connection)
    finally:
        await connection.close()


async def ask(place: Place, statement: str, *arguments: Any) -> Any:
    async with rival(place) as one:
        rows = await one.do(statement, *arguments)
        await one.commit()
        return rows[0][0] if rows else None


async def let_lease_end(place: Place) -> None:
    """Let it look as if no node had given a sign of life for long. Its next heartbeat is seconds away."""
    await ask(place, "UPDATE holdfast.node SET expires_at = clock_timestamp() - interval '1 hour'")


async def node_of(place: Place, claim: Claim) -> int:
    return await ask(place, "SELECT node FROM holdfast.session WHERE id = $1", claim.session)


async def flush(one: Rival, claim: Claim, turn_number: int, seq: int, said: bytes) -> bool:
    """Do what a flush does, in the transaction of the test; return whether anything was written."""
    from holdfast.store.postgres.database import queries

    ((n, node),) = await one.do("SELECT n, node FROM holdfast.session WHERE id = $1", claim.session)
    ((is_mine, lost),) = await one.do(queries()["flush"], node, [n], [claim.epoch], [turn_number], [seq], [said])
    return is_mine and not lost


def said_in(broken: Any) -> list[bytes]:
    return [] if broken is None else broken.lines


async def test_what_a_node_has_begun_to_write_is_waited_for_and_read_by_whoever_takes_over(place: Place) -> None:
    async with place.open() as old, place.open() as taker:
        claim = await new(old)
        await old.begin(claim, asked := prompt("q"), NOTHING)
        async with rival(place) as writing:
            assert await flush(writing, claim, 1, 1, b'{"late":1}\n')
            await let_lease_end(place)
            taking = await writing.blocks(taker.claim(claim.session))
            await writing.commit()
        claimed = await asyncio.wait_for(taking, PATIENCE)
        assert said_in(claimed.broken) == [*asked, b'{"late":1}']


async def test_a_node_that_was_about_to_write_when_it_was_fenced_writes_nothing(place: Place) -> None:
    async with place.open() as old:
        claim, idle = await new(old), await talked(old)
        log = await old.begin(claim, asked := prompt("q"), NOTHING)
        await keep(log, first := message("first"))
        node = await node_of(place, claim)
        async with rival(place) as taker:
            await taker.do("DELETE FROM holdfast.node WHERE id = $1", node)
            flushing = await taker.blocks(keep(log, message("stale")))
            sealing = asyncio.ensure_future(old.seal(claim, [message("stale")], Changes(title="stale"), messages=1))
            beginning = asyncio.ensure_future(old.begin(idle, prompt("stale"), Changes(title="stale")))
            saving = asyncio.ensure_future(old.save(idle, Changes(title="stale")))
            forking = asyncio.ensure_future(old.fork(idle, info(title="stale"), SessionState(), up_to=None, lines=[]))
            await asyncio.sleep(0.1)
            await taker.commit()
        with pytest.raises(StoreError, match="taken this session over"):
            await asyncio.wait_for(flushing, PATIENCE)
        waiting: list[asyncio.Future[Any]] = [sealing, beginning, saving, forking]
        for refused in waiting:
            with pytest.raises(SessionMoved):
                await asyncio.wait_for(refused, PATIENCE)
        async with place.open() as taker:
            claimed = await taker.claim(claim.session)
            assert said_in(claimed.broken) == [*asked, logged(first)]
            assert claimed.record.info.title is None
            assert await taker.search("stale", scope=_all(), cwd=None, limit=9) == []


def _all() -> Any:
    from core.tests.support.stores import ALL

    return ALL


async def test_a_node_that_was_fenced_is_another_node_from_then_on_and_its_old_claims_are_void(place: Place) -> None:
    async with place.open() as store:
        claims = [await new(store) for _ in range(3)]
        log = await store.begin(claims[0], prompt("q"), NOTHING)
        before = await node_of(place, claims[0])
        await ask(place, "DELETE FROM holdfast.node")
        with pytest.raises(StoreError):
            await keep(log, message("stale"))
        for claim in claims:
            with pytest.raises(SessionMoved):
                await store.save(claim, Changes(title="stale"))
        again = await store.claim(claims[0].session)
        assert again.broken is not None
        await store.seal(again.claim, [message("recovered")], NOTHING, messages=1)
        await turn(store, (await store.claim(claims[1].session)).claim, message("goes on"))
        assert await node_of(place, claims[0]) not in (before, None)
        with pytest.raises(SessionMoved):
            await store.save(claims[2], Changes(title="stale"))


async def test_a_node_that_is_fenced_while_more_waits_to_be_written_goes_on_as_another(place: Place) -> None:
    async with place.open() as store:
        claims = [await new(store) for _ in range(2)]
        logs = [await store.begin(claim, prompt("q"), NOTHING) for claim in claims]
        async with rival(place) as taker:
            await taker.do("DELETE FROM holdfast.node")
            flying = await taker.blocks(keep(logs[0], message("stale")))
            waiting = asyncio.ensure_future(keep(logs[1], message("stale too")))
            await asyncio.sleep(0.05)
            await taker.commit()
        for refused in (flying, waiting):
            with pytest.raises(StoreError):
                await asyncio.wait_for(refused, PATIENCE)
        again = (await store.claim(claims[0].session)).claim
        await store.seal(again, [], NOTHING, messages=0)
        log = await store.begin(again, prompt("q"), NOTHING)
        await asyncio.wait_for(keep(log, message("kept")), PATIENCE)


async def test_a_node_fenced_while_a_turn_says_more_than_is_on_its_way_stores_what_its_other_sessions_say(
    beating: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with beating.open() as store:
        claim, other = await new(store), await new(store)
        log = await store.begin(claim, prompt("q"), NOTHING)
        async with rival(beating) as taker:
            await taker.do("LOCK TABLE holdfast.turn_log IN EXCLUSIVE MODE")
            flying = await taker.blocks(keep(log, message("stale")))
            await ask(beating, "DELETE FROM holdfast.node")
            async with asyncio.timeout(PATIENCE):
                while "lease of this node was over" not in caplog.text:  # noqa: ASYNC110  (the heartbeat finds out first)
                    await asyncio.sleep(0.01)
            more = asyncio.ensure_future(keep(log, message("stale too")))
            await asyncio.sleep(0)
            await taker.commit()
        for refused in (flying, more, log.sync()):
            with pytest.raises(StoreError, match="taken this session over"):
                await asyncio.wait_for(refused, PATIENCE)
        await stores_what_is_said(store, (await store.claim(other.session)).claim)


async def test_a_session_lost_while_its_turn_says_more_leaves_the_node_to_its_others(place: Place) -> None:
    async with place.open() as store:
        claim, other = await new(store), await new(store)
        log = await store.begin(claim, prompt("q"), NOTHING)
        await ask(place, "UPDATE holdfast.session SET epoch = epoch + 1 WHERE id = $1", claim.session)
        async with rival(place) as taker:
            await taker.do("LOCK TABLE holdfast.turn_log IN EXCLUSIVE MODE")
            flying = await taker.blocks(keep(log, message("stale")))
            more = asyncio.ensure_future(keep(log, message("stale too")))
            await asyncio.sleep(0)
            await taker.commit()
        for refused in (flying, more, log.sync()):
            with pytest.raises(StoreError, match="taken this session over"):
                await asyncio.wait_for(refused, PATIENCE)
        await stores_what_is_said(store, other)


async def test_a_flusher_that_is_cancelled_tells_all_who_wait_and_another_takes_its_place(place: Place) -> None:
    async with place.open() as store:
        claims = [await new(store) for _ in range(3)]
        logs = [await store.begin(claim, prompt("q"), NOTHING) for claim in claims[:2]]
        async with rival(place) as taker:
            await taker.do("LOCK TABLE holdfast.turn_log IN EXCLUSIVE MODE")
            flying = await taker.blocks(keep(logs[0], message("flying")))
            waiting = asyncio.ensure_future(keep(logs[1], message("waiting")))
            await asyncio.sleep(0)
            (flusher,) = [task for task in asyncio.all_tasks() if task.get_name() == "flush turn logs"]
            flusher.cancel()
            for refused in (flying, waiting):
                with pytest.raises(StoreError, match="could not be stored"):
                    await asyncio.wait_for(refused, PATIENCE)
        await stores_what_is_said(store, claims[2])


async def test_an_error_in_the_flusher_that_nobody_expected_is_told_and_nothing_else_is_held_up(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from holdfast.store.postgres.flushing import TurnRows

    def broken(_: TurnRows) -> None:
        raise ZeroDivisionError

    async with place.open() as store:
        claims = [await new(store) for _ in range(2)]
        log = await store.begin(claims[0], prompt("q"), NOTHING)
        with monkeypatch.context() as patched:
            patched.setattr(TurnRows, "take", broken)
            with pytest.raises(StoreError, match="the log of this process says why"):
                await asyncio.wait_for(keep(log, message("lost")), PATIENCE)
        assert "ZeroDivisionError" in caplog.text
        await stores_what_is_said(store, claims[1])


async def test_a_claim_is_let_go_only_when_what_is_on_its_way_has_arrived_though_nobody_waits_for_it(
    place: Place,
) -> None:
    async with place.open() as store, place.open() as other:
        claim = await new(store)
        log = await store.begin(claim, asked := prompt("q"), NOTHING)
        async with rival(place) as slow:
            await slow.do("LOCK TABLE holdfast.turn_log IN EXCLUSIVE MODE")
            keeping = await slow.blocks(keep(log, said := message("said")))
            keeping.cancel()
            await asyncio.wait({keeping})
            releasing = asyncio.ensure_future(store.release(claim))
            await asyncio.sleep(0.1)
            assert not releasing.done()
            await slow.commit()
        await asyncio.wait_for(releasing, PATIENCE)
        assert said_in((await other.claim(claim.session)).broken) == [*asked, logged(said)]


async def stores_what_is_said(store: SessionStore, claim: Claim) -> None:
    """Make sure that a turn of a session can be stored."""
    log = await store.begin(claim, asked := prompt("q"), NOTHING)
    await asyncio.wait_for(keep(log, said := message("kept")), PATIENCE)
    await asyncio.wait_for(log.sync(), PATIENCE)
    assert said_in((await store.snapshot(claim.session)).unsealed) == [*asked, logged(said)]
    await store.seal(claim, [said], NOTHING, messages=1)


async def test_whoever_waits_no_longer_for_what_was_said_holds_up_nobody(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        log = await store.begin(claim, asked := prompt("q"), NOTHING)
        said = [message(f"said {n}") for n in range(6)]
        for number, line in enumerate(said):
            waiting = asyncio.ensure_future(keep(log, line))
            for _ in range(number + 1):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting})
        await asyncio.wait_for(keep(log, last := message("last")), PATIENCE)
        unsealed = (await store.snapshot(claim.session)).unsealed
        assert said_in(unsealed) == [*asked, *map(logged, said), logged(last)]
        await asyncio.wait_for(store.release(claim), PATIENCE)


async def test_a_taker_may_die_between_fencing_and_claiming(place: Place) -> None:
    async with place.open() as old:
        claim = await new(old)
        log = await old.begin(claim, asked := prompt("q"), NOTHING)
        await keep(log, said := message("said"))
        await ask(place, "DELETE FROM holdfast.node")
        async with place.open() as other:
            claimed = await other.claim(claim.session)
            assert said_in(claimed.broken) == [*asked, logged(said)]


async def test_a_turn_that_begins_while_its_session_is_taken_is_refused(place: Place) -> None:
    async with place.open() as old, place.open() as taker:
        claim = await talked(old)
        async with rival(place) as taking:
            await taking.do("UPDATE holdfast.session SET epoch = epoch + 1, node = 7 WHERE id = $1", claim.session)
            beginning = await taking.blocks(old.begin(claim, prompt("stale"), Changes(title="stale")))
            await taking.commit()
        with pytest.raises(SessionMoved):
            await asyncio.wait_for(beginning, PATIENCE)
        claimed = await taker.claim(claim.session)
        assert claimed.broken is None and claimed.record.info.title is None


async def test_a_session_is_not_taken_from_under_a_turn_that_begins_at_that_moment(place: Place) -> None:
    async with place.open() as old, place.open() as taker:
        claim = await talked(old)
        async with rival(place) as begins:
            await begins.do("UPDATE holdfast.session SET turn = turn + 1, unsealed = true WHERE id = $1", claim.session)
            taking = await begins.blocks(taker.claim(claim.session))
            await begins.commit()
        with pytest.raises(SessionBusy):
            await asyncio.wait_for(taking, PATIENCE)


async def test_rows_of_a_connection_that_was_cut_may_come_after_the_seal_and_are_in_no_turn(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        log = await store.begin(claim, prompt("q"), NOTHING)
        await keep(log, message("said"))
        async with rival(place) as cut:
            assert await flush(cut, claim, 1, 2, b'{"late":1}\n')
            await store.seal(claim, [sealed := message("sealed")], NOTHING, messages=1)
            await cut.commit()
        assert await history(store, claim.session) == bodies([sealed])
        assert await store.read_events(claim.session) == []
        await store.begin(claim, asked := prompt("next"), NOTHING)
        unsealed = (await store.snapshot(claim.session)).unsealed
        assert unsealed is not None and unsealed.lines == asked
        findings = {found.about: found async for found in store.examine()}
        assert findings["turn logs"].repair == "logs"
        await store.repair(findings["turn logs"])
        assert {found.level async for found in store.examine()} == {"ok"}


async def test_what_is_written_twice_because_an_answer_was_lost_is_there_once(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await store.begin(claim, asked := prompt("q"), NOTHING)
        async with rival(place) as cut:
            assert await flush(cut, claim, 1, 1, b'{"n":1}\n')
            await cut.commit()
        async with rival(place) as again:
            assert await flush(again, claim, 1, 1, b'{"n":1}\n')
            await again.commit()
        unsealed = (await store.snapshot(claim.session)).unsealed
        assert unsealed is not None and unsealed.lines == [*asked, b'{"n":1}']


async def test_a_claim_that_was_renewed_here_ends_what_ran_under_the_old_one(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        log = await store.begin(claim, prompt("q"), NOTHING)
        await store.release(claim)
        again = await store.claim(claim.session)
        assert again.broken is not None
        with pytest.raises(StoreError, match="taken this session over"):
            await keep(log, message("stale"))
        assert said_in((await store.snapshot(claim.session)).unsealed) == said_in(again.broken)


async def test_a_session_forked_while_it_is_deleted_leaves_its_history_to_the_fork(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, "/w", "one", "two")
        expected = await history(store, claim.session)
        fork = (await store.fork(claim, info(messages=1), SessionState(), up_to=None, lines=[])).claim
        await ask(place, "DELETE FROM holdfast.history_segment WHERE session = 2")
        async with rival(place) as forking:  # what a fork does last, once more
            await forking.do("SELECT FROM holdfast.session WHERE n = 1 FOR UPDATE")
            deleting = await forking.blocks(store.delete(claim.session))
            await forking.do("INSERT INTO holdfast.history_segment SELECT 2, position, segment "
                             "FROM holdfast.history_segment WHERE session = 1")  # fmt: skip
            await forking.commit()
        await asyncio.wait_for(deleting, PATIENCE)
        assert await history(store, fork.session) == expected


async def test_two_that_share_a_history_deleted_at_once_leave_nothing(place: Place) -> None:
    async with place.open() as store, place.open() as other:
        for _ in range(10):
            claim = await talked(store, "/w", "one", "two")
            fork = (await store.fork(claim, info(messages=1), SessionState(), up_to=None, lines=[])).claim
            await asyncio.gather(store.delete(claim.session), other.delete(fork.session))
        assert (await store.stats()).entries == 0
        assert {found.level async for found in store.examine()} == {"ok"}


async def test_of_many_nodes_that_want_the_session_of_a_dead_one_exactly_one_gets_it(place: Place) -> None:
    async with place.open() as dead:
        claims = [await new(dead) for _ in range(5)]
        for claim in claims:
            await dead.begin(claim, prompt("q"), NOTHING)
        others = [place.open() for _ in range(4)]
        stores = [await other.__aenter__() for other in others]
        await ask(place, "DELETE FROM holdfast.node")
        try:
            for claim in claims:
                won = await asyncio.gather(*(_recovers(store, claim.session) for store in stores))
                assert won.count(True) == 1
                assert await history(stores[0], claim.session) == bodies([message("recovered", key="r")])
        finally:
            for other in others:
                await other.__aexit__(None, None, None)


async def _recovers(store: SessionStore, session: str) -> bool:
    """Claim a session and seal its broken turn; return whether it was this one that did."""
    try:
        claimed = await store.claim(session)
        if claimed.broken is None:
            return False
        await store.seal(claimed.claim, [message("recovered", key="r")], NOTHING, messages=1)
    except (SessionMoved, SessionBusy):
        return False
    return True
