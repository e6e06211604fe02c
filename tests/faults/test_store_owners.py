"""Several processes at one store: one writer a session, whoever else is alive, idle, busy or dead (P4)."""

from __future__ import annotations

import errno
import os
import re
import signal
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from tests.support.neighbours import neighbour
from tests.support.stores import NOTHING, Place, bodies, history, message, new, prompt, talked, turn, walk

from holdfast.errors import SessionBusy, SessionMoved, SessionNotFound, StoreFull
from holdfast.store import Changes, open_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.neighbours import Neighbour

    from holdfast.store import UnsealedTurn

pytestmark = pytest.mark.requirement("P4")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "sessions.db"))


def texts(broken: UnsealedTurn | None) -> list[str]:
    assert broken is not None
    return [found[1].decode() for it in broken.lines if (found := re.search(rb'"text": ?"([^"]*)"', it))]


async def test_a_session_that_is_idle_elsewhere_is_taken_over_and_its_old_owner_is_told_at_its_next_write(
    place: Place,
) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q")
        await other.do("seal", session, "theirs")
        claimed = await store.claim(session)
        assert claimed.broken is None
        await turn(store, claimed.claim, ours := message("ours"))
        for what in ("begin", "seal", "save", "fork"):
            with pytest.raises(SessionMoved, match=rf"process {os.getpid()} "):
                await other.do(what, session, "stale")
        await other.do("release", session)
        assert (await history(store, session))[1:] == bodies([ours])
        assert (await store.get(session)).info.title is None
        await other.do("claim", session)
        with pytest.raises(SessionMoved, match=f"process {other.pid} "):
            await store.save(claimed.claim, NOTHING)


async def test_a_session_whose_turn_runs_in_a_live_process_is_refused_and_it_is_said_where(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q")
        for refused in (store.claim(session), store.delete(session)):
            with pytest.raises(SessionBusy, match=f"process {other.pid} .*neighbour.py"):
                await refused
        assert await store.prune(1 << 60) == 0
        await other.do("append", session, "still mine")
        await other.do("seal", session, "a")
        assert (await store.claim(session)).broken is None


async def test_a_process_that_is_stopped_is_not_dead(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q")
        os.kill(other.pid, signal.SIGSTOP)
        try:
            with pytest.raises(SessionBusy):
                await store.claim(session)
        finally:
            os.kill(other.pid, signal.SIGCONT)
        await other.do("seal", session, "a")


async def test_a_session_whose_owner_was_killed_is_taken_at_once_with_all_its_turn_had_said(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q")
        for text in ("one", "two", "three"):
            await other.do("append", session, text)
        await other.kill()
        claimed = await store.claim(session)
        assert texts(claimed.broken) == ["q", "one", "two", "three"]
        assert await history(store, session) == []
        await store.seal(claimed.claim, [message("sealed")], NOTHING, messages=1)
        assert (await store.claim(session)).broken is None


async def test_a_broken_turn_stays_broken_until_somebody_seals_it(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as first, neighbour(place.path) as second:
        session = await first.do("create")
        await first.do("begin", session, "q")
        await first.do("append", session, "said")
        await first.kill()
        assert len(await second.do("claim", session)) == 2
        await second.kill()
        claimed = await store.claim(session)
        assert texts(claimed.broken) == ["q", "said"]
        await store.release(claimed.claim)
        assert texts((await store.claim(session)).broken) == ["q", "said"]


async def test_a_session_whose_owner_was_killed_may_be_deleted_or_pruned(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        sessions = [await other.do("create") for _ in range(2)]
        for session in sessions:
            await other.do("begin", session, "q")
            await other.do("append", session, "said")
        await other.kill()
        await store.delete(sessions[0])
        assert await store.prune(1 << 60) == 1
        assert await walk(store) == []
        assert place.beside("turns") == []


async def test_whoever_ends_without_closing_is_no_longer_there(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q")
        await other.leave()
        assert texts((await store.claim(session)).broken) == ["q"]


async def test_of_many_who_want_the_session_of_a_dead_owner_exactly_one_gets_it(place: Place) -> None:
    async with AsyncExitStack() as stack:
        dead = await stack.enter_async_context(neighbour(place.path))
        others = [await stack.enter_async_context(neighbour(place.path)) for _ in range(3)]
        sessions = [await dead.do("create") for _ in range(10)]
        for session in sessions:
            await dead.do("begin", session, "q")
        await dead.kill()
        for session in sessions:
            for other in others:
                other.tell("claim", session)
            claimed = [(other, await taken(other)) for other in others]
            (winner,) = (other for other, broken in claimed if broken is not None)
            await winner.do("seal", session, "a")


async def taken(other: Neighbour) -> object:
    """Get the broken turn, unless somebody else is about to seal it."""
    try:
        return await other.answer()
    except SessionBusy:
        return None


async def test_a_deleted_session_is_gone_for_whoever_had_it(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        await store.delete(session)
        for what in ("begin", "seal", "save", "fork", "claim"):
            with pytest.raises(SessionNotFound):
                await other.do(what, session, "x")


async def test_what_one_process_does_another_sees_at_once(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        claim = await talked(store, "/work", "a")
        assert await other.do("list") == [claim.session]
        session = await other.do("create")
        await other.do("begin", session, "q")
        assert await walk(store) == [session, claim.session]
        await store.save(claim, Changes(archived=True))
        assert await other.do("list") == [session, claim.session]


async def test_what_dead_processes_leave_is_cleared_away_and_what_living_ones_need_is_not(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as living, neighbour(place.path) as dead:
        session = await dead.do("create")
        kept = await living.do("create")
        await living.do("begin", kept, "q")
        await dead.kill()
        (place.beside("owners")[0].parent / "long dead").write_bytes(b"{}")
        for path in place.beside("owners"):
            os.utime(path, (1, 1))
        (place.beside("owners")[0].parent / "newborn.starting").write_bytes(b"")
        await store.claim(session)
        assert len(place.beside("owners")) == 3, (
            "this one, the living one, and one that may not have locked its file yet"
        )
        with pytest.raises(SessionBusy, match=f"process {living.pid} "):
            await store.claim(kept)


async def test_an_owner_that_cannot_be_asked_is_taken_for_alive(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has run out of descriptors must not take what is another's."""
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q")
        await store.get(session)
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", refuses)
            with pytest.raises(SessionBusy):
                await store.claim(session)
        await other.do("seal", session, "a")


def refuses(*_: object) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


async def test_a_store_that_cannot_say_who_uses_it_is_not_opened(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place.open():
        before = len(place.beside("owners"))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(StoreFull):
                await open_store(place.path)
        assert len(place.beside("owners")) == before


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.requirement("P10")
async def test_the_arguments_of_a_process_are_told_to_nobody(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/opt/agent\udcff.py", "--key", "hunter2"])
    async with place.open() as one, place.open() as other:
        claim = await new(one)
        await one.begin(claim, prompt("x"), NOTHING)
        with pytest.raises(SessionBusy, match=r"agent\?\.py") as refused:
            await other.claim(claim.session)
        assert "hunter2" not in str(refused.value)
        assert not any(b"hunter2" in it.read_bytes() for it in place.beside("owners"))


async def test_a_store_may_be_made_by_many_processes_at_once(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        crowd = [await stack.enter_async_context(neighbour()) for _ in range(4)]
        for round_ in range(15):
            for it in crowd:
                it.tell("open", text=str(tmp_path / str(round_) / "sessions.db"))
            for it in crowd:
                await it.answer()
            sessions = [await it.do("create") for it in crowd]
            for it, session in zip(crowd, sessions, strict=True):
                await it.do("begin", session, "q")
            lists = [set(await it.do("list")) for it in crowd]
            assert lists == [set(sessions)] * 4


async def test_two_stores_in_one_process_are_two_owners(place: Place) -> None:
    async with place.open() as other:
        async with place.open() as one:
            claim = await new(one)
            await one.begin(claim, prompt("x"), NOTHING)
            with pytest.raises(SessionBusy, match=f"process {os.getpid()} "):
                await other.claim(claim.session)
        assert (await other.claim(claim.session)).broken is not None
