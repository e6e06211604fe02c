"""Writes that wait are committed together, and every caller gets its own answer all the same."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from core.tests.support.disks import FailingDisk
from core.tests.support.scratch import scratch
from core.tests.support.stores import (
    NOTHING,
    Place,
    bodies,
    history,
    hits,
    info,
    logged,
    message,
    new,
    prompt,
    talked,
    turn,
    walk,
)
from holdfast.errors import (
    HoldfastError,
    InvalidParams,
    SessionMoved,
    SessionNotFound,
    StoreError,
)
from holdfast.model import SessionState
from holdfast.store import Changes
from holdfast.store.sqlite import SqliteStore, database

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine
    from pathlib import Path

    from core.tests.support.disks import Fault, Operation
    from holdfast.store import SessionStore

pytestmark = pytest.mark.requirement("P2")

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "sessions.db"))


@asynccontextmanager
async def gathering(store: SessionStore, place: Place) -> AsyncGenerator[None]:
    """Keep the store from writing, so that all that is asked for meanwhile gathers."""
    first = await new(store)
    other = apsw.Connection(place.path)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(store.save(first, NOTHING))
    await asyncio.sleep(0.05)
    try:
        yield
        await asyncio.sleep(0)
    finally:
        other.execute("ROLLBACK")
        other.close()
    await waiting


async def answers(*asked: Coroutine[Any, Any, object]) -> list[asyncio.Task[object]]:
    """Ask for several things at once."""
    tasks = [asyncio.create_task(coroutine) for coroutine in asked]
    await asyncio.sleep(0)
    return tasks


async def test_what_waits_is_written_with_few_syncs_and_told_with_few_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = FailingDisk("sync")
    with scratch() as directory, disk.mounted() as vfs:
        store = await SqliteStore.open(str(directory / "s.db"), vfs=vfs)
        claims = [await new(store) for _ in range(64)]
        told: list[object] = []
        loop = asyncio.get_running_loop()
        call = loop.call_soon_threadsafe

        def counted(callback: Any, *args: Any) -> object:
            told.append(callback)
            return call(callback, *args)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        before = disk.done
        async with gathering(store, Place(str(directory / "s.db"))):
            begun = await answers(*(store.begin(claim, prompt("x"), NOTHING) for claim in claims))
        await asyncio.gather(*begun)
        async with gathering(store, Place(str(directory / "s.db"))):
            sealed = await answers(*(store.seal(claim, [message("a")], NOTHING, messages=1) for claim in claims))
        await asyncio.gather(*sealed)
        assert disk.done - before <= 16, "64 turns begun and sealed"
        assert len(told) <= 16
        assert [len(await history(store, claim.session)) for claim in claims] == [1] * 64
        await store.close()


async def test_words_that_are_indexed_in_a_group_do_not_let_a_turn_be_stored_that_is_not_counted(place: Place) -> None:
    """The index writes what it has gathered as the next statement begins, and SQL's `changes()` tells of that too."""
    async with place.open() as store:
        titled, claim = await talked(store, "/work", "a"), await talked(store, "/work", "first")
        await store.begin(claim, prompt("q"), NOTHING, durable=False)
        async with gathering(store, place):
            asked = await answers(
                walk(store),  # has the turn noted
                store.edit(titled.session, archived=True),
                store.edit(titled.session, title="one"),  # the next group: a session has one part in each
                store.seal(claim, [message("second"), message("third")], NOTHING, messages=2),
            )
        await asyncio.gather(*asked)
        snapshot = await store.snapshot(claim.session)
        assert snapshot.unsealed is None and snapshot.record.lines == 3
        assert len(await history(store, claim.session)) == 3
        await turn(store, claim, message("fourth"))
        assert not [finding.about async for finding in store.examine() if finding.level != "ok"]


async def test_a_turn_that_is_sealed_behind_words_that_are_indexed_has_its_own_lines(place: Place) -> None:
    async with place.open() as store:
        titled, claim = await talked(store, "/work", "a"), await talked(store, "/work", "first")
        await store.begin(claim, prompt("q"), NOTHING, durable=False)
        async with gathering(store, place):
            asked = await answers(
                store.edit(titled.session, title="one"),
                store.seal(claim, [message("second")], NOTHING, messages=1),
            )
        await asyncio.gather(*asked)
        first, second = await history(store, claim.session)
        assert b"first" in first and b"second" in second
        assert await hits(store, "second") == ["second"]
        assert not [finding.about async for finding in store.examine() if finding.level != "ok"]


async def test_whoever_fails_in_a_group_fails_alone(place: Place) -> None:
    async with place.open() as store:
        good = [await talked(store, "/work", "a") for _ in range(5)]
        stale = await talked(store, "/work", "a")
        await store.claim(stale.session)
        there = (await store.get(good[0].session)).info
        async with gathering(store, place):
            asked = await answers(
                store.seal(good[0], [message("b")], NOTHING, messages=1),
                store.create(there, SessionState()),
                store.seal(good[1], [message("b")], NOTHING, messages=1),
                store.seal(stale, [message("b")], NOTHING, messages=1),
                store.fork(good[2], info(), SessionState(), up_to="nobody", lines=[]),
                store.claim("sess_0"),
                store.begin(good[3], prompt("x"), Changes(title="begun")),
                store.delete(good[4].session),
            )
        found = await asyncio.gather(*asked, return_exceptions=True)
        failed = [StoreError, SessionMoved, InvalidParams, SessionNotFound]
        assert [type(answer) for answer in found if isinstance(answer, HoldfastError)] == failed
        for claim in good[:2]:
            assert len(await history(store, claim.session)) == 2
        assert (await store.get(good[3].session)).info.title == "begun"
        assert good[4].session not in await walk(store)
        assert len(await walk(store)) == 5


async def test_whoever_is_refused_before_anything_was_changed_undoes_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.open() as store:
        claims = [await new(store) for _ in range(10)]
        undone: list[None] = []
        roll_back = database.Database.roll_back

        def counted(db: database.Database) -> None:
            undone.append(None)
            roll_back(db)

        monkeypatch.setattr(database.Database, "roll_back", counted)
        async with gathering(store, place):
            asked = await answers(
                *(store.save(claim, Changes(title="t")) for claim in claims),
                store.claim("sess_0"),
                store.hand_over("sess_1", "x"),
            )
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(answer) for answer in found[-2:]] == [SessionNotFound] * 2
        assert undone == []
        assert {(await store.get(claim.session)).info.title for claim in claims} == {"t"}


async def test_whoever_waits_no_longer_disturbs_nobody_else_in_the_group(place: Place) -> None:
    async with place.open() as store:
        claims = [await new(store) for _ in range(10)]
        async with gathering(store, place):
            asked = await answers(*(store.save(claim, Changes(title="t")) for claim in claims))
            for task in asked[::2]:
                task.cancel()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(answer) for answer in found] == [asyncio.CancelledError, type(None)] * 5
        titles = [(await store.get(claim.session)).info.title for claim in claims]
        assert titles == [None, "t"] * 5, "what nobody waited for any more was not begun"


async def test_what_is_asked_for_one_session_is_done_in_order(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        said = [message(f"said {n}") for n in range(5)]
        async with gathering(store, place):
            asked = await answers(
                *(
                    work
                    for line in said
                    for work in (
                        store.begin(claim, prompt("x"), NOTHING),
                        store.seal(claim, [line], NOTHING, messages=1),
                    )
                ),
                store.save(claim, Changes(title="last")),
            )
        await asyncio.gather(*asked)
        assert await history(store, claim.session) == bodies(said)
        assert (await store.get(claim.session)).info.title == "last"


@pytest.mark.requirement("P1", "P3")
@pytest.mark.parametrize("fault", ["full", "io"])
@pytest.mark.parametrize("after", range(1, 9, 2))
async def test_a_group_that_cannot_be_committed_changes_nothing_and_keeps_every_log(fault: Fault, after: int) -> None:
    disk = FailingDisk("write", "sync")
    with scratch() as directory, disk.mounted() as vfs:
        place = Place(str(directory / "s.db"))
        store = await SqliteStore.open(place.path, vfs=vfs)
        claims = [await new(store) for _ in range(6)]
        said = [message(f"said {n}") for n in range(6)]
        for claim, line in zip(claims[:3], said, strict=False):
            log = await store.begin(claim, [], NOTHING)
            log.append(logged(line) + b"\n")
        async with gathering(store, place):
            sealing = await answers(
                *(store.seal(claim, [line], NOTHING, messages=1) for claim, line in zip(claims[:3], said, strict=False))
            )
            beginning = await answers(*(store.begin(claim, prompt("x"), NOTHING) for claim in claims[3:]))
            disk.fail(disk.done + after + 6, fault)  # some are for the one that waits already
        found = await asyncio.gather(*sealing, *beginning, return_exceptions=True)
        failed = [isinstance(answer, StoreError) for answer in found]
        assert any(failed), "the disk failed, and nobody noticed"
        assert all(isinstance(answer, StoreError) for answer in found if isinstance(answer, BaseException))
        for claim, line, is_failed in zip(claims[:3], said, failed[:3], strict=False):
            assert await history(store, claim.session) == ([] if is_failed else [line.body])
            snapshot = await store.get(claim.session)
            assert snapshot.lines == (0 if is_failed else 1)
        disk.mend()
        for claim, line, is_failed in zip(claims[:3], said, failed[:3], strict=False):
            unsealed = (await store.snapshot(claim.session)).unsealed
            assert (unsealed is not None) == is_failed
            if unsealed is not None:
                assert unsealed.lines == [logged(line)]
                await store.seal(claim, [line], NOTHING, messages=1)
        for claim, is_failed in zip(claims[3:], failed[3:], strict=True):
            if is_failed:
                log = await store.begin(claim, prompt("x"), NOTHING)
                log.append(b'{"sessionUpdate":"_x"}\n')
        assert [await history(store, claim.session) for claim in claims[:3]] == [[line.body] for line in said[:3]]
        await store.close()


class FailsOnce(FailingDisk):
    """A disk on which one operation fails, and works when it is tried again."""

    failures = 0

    def before(self, operation: Operation, path: str) -> None:
        try:
            super().before(operation, path)
        except apsw.Error:
            self.failures += 1
            self.mend()
            raise


@pytest.mark.parametrize("fault", ["full", "io"])
@pytest.mark.parametrize("after", range(1, 13, 2))
async def test_a_group_that_fails_once_is_done_one_by_one_and_nothing_twice(fault: Fault, after: int) -> None:
    disk = FailsOnce("write", "sync")
    with scratch() as directory, disk.mounted() as vfs:
        place = Place(str(directory / "s.db"))
        store = await SqliteStore.open(place.path, vfs=vfs)
        claims = [await new(store) for _ in range(6)]
        said = [message(f"said {n}") for n in range(6)]
        for claim, line in zip(claims, said, strict=True):
            log = await store.begin(claim, [], NOTHING)
            log.append(logged(line) + b"\n")
        async with gathering(store, place):
            sealing = await answers(
                *(
                    store.seal(claim, [line], NOTHING, messages=1, private=[b"private"])
                    for claim, line in zip(claims, said, strict=True)
                )
            )
            disk.fail(disk.done + after + 6, fault)
        found = await asyncio.gather(*sealing, return_exceptions=True)
        assert disk.failures == 1
        assert sum(answer is not None for answer in found) <= 1, "only what failed alone fails"
        for claim, line, answer in zip(claims, said, found, strict=True):
            assert await history(store, claim.session) == ([line.body] if answer is None else [])
            assert await store.read_private(claim.session) == ([b"private"] if answer is None else [])
            assert ((await store.snapshot(claim.session)).unsealed is None) == (answer is None)
        await store.close()


async def test_a_store_that_is_locked_for_too_long_says_so_to_all_that_wait_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 1.0)
    async with place.open() as store:
        claims = [await new(store) for _ in range(30)]
        other = apsw.Connection(place.path)
        other.execute("BEGIN IMMEDIATE")
        asked = await answers(*(store.save(claim, NOTHING) for claim in claims))
        began = asyncio.get_running_loop().time()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(answer) for answer in found} == {StoreError}
        assert asyncio.get_running_loop().time() - began < 20, "they do not wait one after the other"
        other.close()
        await store.save(claims[0], Changes(title="t"))


async def test_a_store_that_is_closed_refuses_and_finishes_what_was_asked_before(place: Place) -> None:
    store = await SqliteStore.open(place.path)
    claims = [await new(store) for _ in range(10)]
    asked = await answers(*(store.save(claim, Changes(title="t")) for claim in claims))
    await store.close()
    await asyncio.gather(*asked)
    with pytest.raises(StoreError, match="closed"):
        await store.get(claims[0].session)
    with pytest.raises(StoreError, match="closed"):
        await store.save(claims[0], NOTHING)
    await store.close()
    async with place.open() as again:
        assert {(await again.get(claim.session)).info.title for claim in claims} == {"t"}
