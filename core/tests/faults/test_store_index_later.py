"""What histories say is indexed later than it is stored; a search finds it all the same, whatever happened since."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import pytest

from core.tests.support.disks import FailingDisk
from core.tests.support.neighbours import neighbour
from core.tests.support.stores import ALL, CWD, Place, hits, message, new, talked, turn
from holdfast.store import Changes
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite import store as sqlite_store

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.disks import Fault

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "sessions.db"))


def count(place: Place, what: str) -> int:
    """Count rows, past the store."""
    with closing(apsw.Connection(place.path)) as db:
        return next(db.execute(f"SELECT count(*) FROM {what}"))[0]


async def test_what_a_killed_process_has_sealed_and_not_indexed_is_found(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        for n in range(3):
            await other.do("begin", session, "q")
            await other.do("seal", session, f"green{n}")
        assert count(place, "doc") == 0
        await other.kill()
        assert await hits(store, "green1") == ["green1"]
        assert count(place, "doc") == 3


async def test_it_is_indexed_when_enough_turns_were_sealed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "INDEX_TURNS", 5)
    async with place.open() as store:
        claim = await talked(store, CWD, "green")
        for n in range(4):
            assert count(place, "doc") == 0
            await turn(store, claim, message(f"blue {n}"))
        await store.save(claim, Changes())  # behind it in the queue
        assert count(place, "doc") == 5


async def test_it_is_indexed_when_the_store_is_closed(place: Place) -> None:
    async with place.open() as store:
        await talked(store, CWD, "green", "blue")
    assert count(place, "doc") == 2
    async with place.open() as store:
        assert await hits(store, "blue") == ["blue"]


async def test_a_title_is_found_among_what_was_said_before_and_after_it(place: Place) -> None:
    async with place.open() as store:
        first = await talked(store, CWD, "red one")
        second = await new(store)
        await store.save(second, Changes(title="red title"))
        await turn(store, second, message("red two"))
        await turn(store, first, message("red three"))
        assert await hits(store, "red") == ["red three", "red two", "red title", "red one"]


async def test_what_comes_in_the_place_of_what_was_deleted_is_found(place: Place) -> None:
    """A new segment may get the id of one that was deleted, and that was in the index."""
    async with place.open() as store:
        await talked(store, CWD, "kept")
        for n in range(3):
            claim = await talked(store, CWD, f"red {n}")
            assert await hits(store, "red") == [f"red {n}"]
            await store.delete(claim.session)
            assert await hits(store, "red") == []


async def test_segments_that_are_made_one_before_they_were_indexed_are_found_where_they_are(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        for n in range(40):
            await turn(store, claim, message(f"word{n} " + "x" * 5_000), message(f"other{n}"))
        assert count(place, "history_segment") < 40
        for n in (0, 1, 20, 39):
            assert [text[:20].split()[0] for text in await hits(store, f"word{n}")] == [f"word{n}"]
            assert await hits(store, f"other{n}") == [f"other{n}"]


@pytest.mark.parametrize("fault", ["full", "io"])
async def test_on_a_disk_that_takes_nothing_more_all_is_found(place: Place, fault: Fault) -> None:
    disk = FailingDisk("write", "sync", "truncate")
    with disk.mounted() as vfs:
        store = await SqliteStore.open(place.path, vfs=vfs)
        claim = await talked(store, CWD, "Crème and red", "red", "blue")
        await hits(store, "red")
        await turn(store, claim, message("red again"), message("the red crème"))
        disk.fail(disk.done + 1, fault)
        found = [hit.text for hit in await store.search("red creme", ALL, cwd=None, limit=9)]
        assert found == ["the red crème", "Crème and red"]
        assert await hits(store, "red") == ["the red crème", "red again", "red", "Crème and red"]
        disk.mend()
        await store.close()
