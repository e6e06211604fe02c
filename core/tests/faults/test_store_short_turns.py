"""Turns that are sealed the short way, and those that cannot be: the histories are the same (P2, P3, P4)."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import pytest

from core.tests.support.neighbours import neighbour
from core.tests.support.stores import NOTHING, Place, history, hits, message, new, prompt, talked, turn, walk
from holdfast.errors import SessionMoved, StoreError
from holdfast.format.segments import SEGMENT_BYTES
from holdfast.model import SessionState
from holdfast.store import Changes, EventWindow
from holdfast.store.sqlite.short_turns import ShortTurn
from holdfast.store.sqlite.turn_logs import TurnLogs

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.neighbours import Neighbour
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.turn_file import TurnFile

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false

pytestmark = pytest.mark.requirement("P2", "P3", "P4")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "sessions.db"))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note of each turn that was ready to be sealed the short way, whether it was."""
    seal, were = ShortTurn.seal, list[bool]()

    def noted(self: ShortTurn, db: Database) -> bool:
        were.append(seal(self, db))
        return were[-1]

    monkeypatch.setattr(ShortTurn, "seal", noted)
    return were


@pytest.mark.parametrize("window", [None, EventWindow()])
async def test_a_turn_that_only_adds_to_its_history_is_sealed_the_short_way(
    place: Place, short: list[bool], window: EventWindow | None
) -> None:
    async with place.open() as store:
        if window is not None:
            store.keep_events(window)
        claim = await talked(store, "/work", "first")
        before = (await store.get(claim.session)).info
        state = SessionState(memory={"seen": 2})
        await store.begin(claim, prompt("q"), NOTHING, durable=False)
        said = [message("second", key="2"), message("third", key="3")]
        await store.seal(claim, said, Changes(state=state), messages=2, last=b"")
        assert short == [True]
        record = await store.get(claim.session)
        assert record.state == state and record.lines == 3 and record.info.messages == before.messages + 2
        assert record.info.updated_at > before.updated_at
        assert (await history(store, claim.session))[1:] == [line.body for line in said]
        assert await hits(store, "second") == ["second"]
        assert not [finding.about async for finding in store.examine() if finding.level != "ok"]


async def test_many_of_them_are_one_history_whose_parts_grow_no_larger_than_they_may(
    place: Place, short: list[bool]
) -> None:
    lines = [message(f"{n} {'x' * 6_000}", key=f"m{n}") for n in range(40)]
    async with place.open() as store:
        claim = await new(store, "/work")
        for line in lines:
            await turn(store, claim, line)
        assert short.count(False) >= 2, "where they would be too large together, the tail is made into one part first"
        assert short.count(True) > 30
        assert await history(store, claim.session) == [line.body for line in lines]
    with closing(apsw.Connection(place.path)) as db:
        sizes = [size for (size,) in db.execute("SELECT length(body) FROM segment")]
    assert len(sizes) < 20 and max(sizes) <= SEGMENT_BYTES


async def test_one_that_the_database_came_to_know_of_meanwhile_is_sealed_all_the_same(
    place: Place, short: list[bool]
) -> None:
    async with place.open() as store:
        claim = await talked(store, "/work", "first")
        await store.begin(claim, prompt("q"), NOTHING, durable=False)
        noting = asyncio.ensure_future(walk(store))  # before that, turns are noted that only their logs know of
        await asyncio.sleep(0)  # the note is on its way, and the turn is made ready to be sealed behind it
        await store.seal(claim, [message("second", key="2")], NOTHING, messages=1)
        await noting
        assert short == [False]
        assert len(await history(store, claim.session)) == 2
        assert (await store.snapshot(claim.session)).unsealed is None


async def test_one_that_is_noted_while_it_is_made_ready_is_sealed_all_the_same(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_with = TurnLogs.end_with

    def noted_meanwhile(self: TurnLogs, log: TurnFile, last: bytes | None) -> bool:
        log.is_noted()  # as the writing thread does
        return end_with(self, log, last)

    async with place.open() as store:
        claim = await talked(store, "/work", "first")
        await store.begin(claim, prompt("q"), NOTHING, durable=False)
        monkeypatch.setattr(TurnLogs, "end_with", noted_meanwhile)
        await store.seal(claim, [message("second", key="2")], NOTHING, messages=1)
        assert len(await history(store, claim.session)) == 2


async def test_who_has_lost_the_session_seals_nothing(place: Place, short: list[bool]) -> None:
    async with place.open() as store:
        claim = await talked(store, "/work", "first")
        await store.begin(claim, prompt("q"), NOTHING, durable=False)
        with closing(apsw.Connection(place.path)) as db:
            db.execute("UPDATE session SET epoch = epoch + 1")
        with pytest.raises(SessionMoved):
            await store.seal(claim, [message("stale", key="2")], NOTHING, messages=1)
        assert short == [False]
        assert len(await history(store, claim.session)) == 1
    with closing(apsw.Connection(place.path)) as db:
        assert db.execute("SELECT count(*) FROM segment").fetchall() == [(1,)]


async def test_of_a_group_with_one_that_cannot_be_sealed_all_others_are(place: Place, short: list[bool]) -> None:
    async with place.open() as store:
        claims = [await talked(store, "/work", "first") for _ in range(5)]
        for claim in claims:
            await store.begin(claim, prompt("q"), NOTHING, durable=False)
        with closing(apsw.Connection(place.path)) as db:
            db.execute("UPDATE session SET epoch = epoch + 1 WHERE id = ?", (claims[2].session,))
        sealed = await asyncio.gather(
            *(store.seal(claim, [message("second", key="2")], NOTHING, messages=1) for claim in claims),
            return_exceptions=True,
        )
        assert [type(result) for result in sealed].count(SessionMoved) == 1 and isinstance(sealed[2], SessionMoved)
        assert [len(await history(store, claim.session)) for claim in claims] == [2, 2, 1, 2, 2]
        assert short.count(True) >= 4


async def test_what_a_turn_begins_with_is_one_write_with_what_it_says_first(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    pwrite = os.pwrite

    def noted(fd: int, data: bytes, at: int) -> int:
        written.append(bytes(data))
        return pwrite(fd, data, at)

    async with place.open() as store:
        claim = await talked(store, "/work", "first")
        await turn(store, claim, message("second", key="2"))
        monkeypatch.setattr(os, "pwrite", noted)
        (asked,) = prompt("q")
        log = await store.begin(claim, [asked], NOTHING, durable=False)
        assert not written
        log.append(b'{"sessionUpdate":"_x"}\n')
        assert len(written) == 1 and asked in written[0] and b'"_x"' in written[0]
        log.append(b"")
        assert len(written) == 1
        unsealed = (await store.snapshot(claim.session)).unsealed
        assert unsealed is not None and unsealed.lines == [asked, b'{"sessionUpdate":"_x"}']


async def third_turn(other: Neighbour) -> str:
    """Let another process begin the third turn of a session; it has said nothing in it yet."""
    session = await other.do("create")
    for n in "12":
        await other.do("begin", session, f"q{n}")
        await other.do("seal", session, f"a{n}")
    await other.do("begin_lazily", session, "q3")
    return session


async def test_a_turn_whose_process_dies_before_anything_of_it_is_written_never_was(place: Place) -> None:
    async with neighbour(place.path) as other:
        session = await third_turn(other)
        await other.kill()
    async with place.open() as store:
        assert (await store.claim(session)).broken is None
        assert len(await history(store, session)) == 2


async def test_what_is_synced_is_there_though_nothing_was_said(place: Place) -> None:
    async with neighbour(place.path) as other:
        session = await third_turn(other)
        await other.do("sync", session)
        await other.kill()
    async with place.open() as store:
        broken = (await store.claim(session)).broken
        assert broken is not None and b"q3" in broken.lines[0]


async def test_one_that_was_taken_away_before_it_said_anything_is_refused(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, "/work", "first")
        await turn(store, claim, message("second", key="2"))
        log = await store.begin(claim, prompt("q"), NOTHING, durable=False)
        for path in place.beside("turns"):
            path.unlink()
        with pytest.raises(StoreError, match="removed"):
            log.append(b"")
