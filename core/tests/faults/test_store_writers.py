"""Several processes at one store: one writer a session, whoever else is alive, idle, busy or dead (P4)."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.support.neighbours import neighbour
from core.tests.support.stores import NOTHING, Place, bodies, history, message, new, prompt, talked, turn, walk
from holdfast.errors import SessionBusy, SessionMoved, SessionNotFound, StoreError, StoreFull
from holdfast.store import Changes, open_store
from holdfast.store.sqlite import processes
from holdfast.store.sqlite.files import lock
from holdfast.store.sqlite.processes import Processes

if TYPE_CHECKING:
    from core.tests.support.neighbours import Neighbour
    from holdfast.store import UnsealedTurn

pytestmark = pytest.mark.requirement("P4")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "sessions.db"))


def texts(broken: UnsealedTurn | None) -> list[str]:
    assert broken is not None
    return [found[1].decode() for line in broken.lines if (found := re.search(rb'"text": ?"([^"]*)"', line))]


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
        assert not any(b"hunter2" in path.read_bytes() for path in place.beside("owners"))


async def test_a_store_may_be_made_by_many_processes_at_once(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        crowd = [await stack.enter_async_context(neighbour()) for _ in range(4)]
        for round_ in range(15):
            for other in crowd:
                other.tell("open", text=str(tmp_path / str(round_) / "sessions.db"))
            for other in crowd:
                await other.answer()
            sessions = [await other.do("create") for other in crowd]
            for other, session in zip(crowd, sessions, strict=True):
                await other.do("begin", session, "q")
            lists = [set(await other.do("list")) for other in crowd]
            assert lists == [set(sessions)] * 4


async def test_two_stores_in_one_process_are_two_owners(place: Place) -> None:
    async with place.open() as other:
        async with place.open() as one:
            claim = await new(one)
            await one.begin(claim, prompt("x"), NOTHING)
            with pytest.raises(SessionBusy, match=f"process {os.getpid()} "):
                await other.claim(claim.session)
        assert (await other.claim(claim.session)).broken is not None


# The log itself is locked


def forget(place: Place, *kinds: str) -> None:
    for kind in kinds:
        shutil.rmtree(f"{place.path}.{kind}")


async def test_a_running_turn_is_nobody_elses_even_when_nothing_tells_who_is_alive(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q")
        await other.do("append", session, "one")
        forget(place, "owners")
        for refused in (store.claim(session), store.delete(session), store.hand_over(session, "other")):
            with pytest.raises(SessionBusy):
                await refused
        assert await store.prune(1 << 60) == 0
        unsealed = (await store.snapshot(session)).unsealed
        assert unsealed is not None and unsealed.running_in is not None
        assert texts(unsealed) == ["q", "one"]
        assert "1 running" in [finding.says async for finding in store.examine()]
        await other.do("append", session, "two")
        await other.do("seal", session, "a")
        assert (await store.claim(session)).broken is None


async def test_a_turn_that_was_left_broken_is_locked_by_whoever_has_claimed_it(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as dead, neighbour(place.path) as other:
        session = await dead.do("create")
        await dead.do("begin", session, "q")
        await dead.kill()
        await other.do("claim", session)
        forget(place, "owners")
        with pytest.raises(SessionBusy):
            await store.claim(session)
        await other.do("seal", session, "a")
        await store.claim(session)


@pytest.mark.parametrize("how", ["removed", "moved"])
async def test_a_writer_whose_log_is_gone_is_refused_at_its_next_word(place: Place, how: str) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q")
        await other.do("append", session, "one")
        if how == "removed":
            forget(place, "turns")
        else:
            Path(f"{place.path}.turns").rename(f"{place.path}.elsewhere")  # noqa: ASYNC240
        with pytest.raises(StoreError, match="removed"):
            await other.do("append", session, "lost if it were shown")
        await other.do("seal", session, "all of it")
        assert len(await history(store, session)) == 1


@pytest.mark.requirement("P1")
async def test_a_writer_whose_turn_was_taken_is_refused_at_its_next_word_and_the_taker_is_not(place: Place) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q")
        await other.do("append", session, "one")
        forget(place, "owners", "turns")
        claimed = await store.claim(session)
        assert texts(claimed.broken) == ["q"]
        with pytest.raises(StoreError):
            await other.do("append", session, "stale")
        with pytest.raises(SessionMoved):
            await other.do("seal", session, "stale")
        await store.seal(claimed.claim, [message("sealed")], NOTHING, messages=1)
        log = await store.begin(claimed.claim, prompt("next"), NOTHING)
        with pytest.raises(StoreError):
            await other.do("append", session, "stale")
        log.append(b'{"sessionUpdate":"_x"}\n')
        assert len(await history(store, session)) == 1


async def test_a_log_its_last_writer_has_not_let_go_of_yet_does_not_keep_the_next_one_waiting(place: Place) -> None:
    """The last writer may have been stopped between its commit and its unlock."""
    async with place.open() as store:
        claim = await new(store)
        await store.begin(claim, prompt("x"), NOTHING)
        (path,) = place.beside("turns")
        await store.seal(claim, [], NOTHING, messages=0)
        fd = os.open(path, os.O_RDWR)
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, b"of a sealed turn")
        log = await store.begin(claim, asked := prompt("y"), NOTHING)
        log.append(b'{"sessionUpdate":"_x"}\n')
        os.ftruncate(fd, 0)
        os.close(fd)
        await store.release(claim)
        broken = (await store.claim(claim.session)).broken
        assert broken is not None and broken.lines == [*asked, b'{"sessionUpdate":"_x"}']


async def test_a_process_is_found_alive_from_the_moment_it_can_be_found(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks after the store may look while another process is just starting."""
    async with place.open() as store:
        directory = place.beside("owners")[0].parent
        examiner = Processes(directory)

        def look_first(fd: int) -> bool:
            monkeypatch.setattr(processes, "lock", lock)
            examiner.forget_dead()
            assert all(examiner.is_alive(process) for process in examiner.known())
            return lock(fd)

        monkeypatch.setattr(processes, "lock", look_first)
        starting = Processes(directory)
        assert starting.me in examiner.known()
        assert examiner.is_alive(starting.me)
        starting.close()
        examiner.close()
        assert len(place.beside("owners")) == 1
        assert await walk(store) == []


# One store, whatever it is called


async def test_whoever_opens_a_store_through_a_link_meets_the_others(place: Place, tmp_path: Path) -> None:
    async with place.open() as store:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "link.db").symlink_to(place.path)
        (tmp_path / "directory").symlink_to(tmp_path)
        for name in ("elsewhere/link.db", "directory/sessions.db"):
            async with neighbour(str(tmp_path / name)) as other:
                session = await other.do("create")
                await other.do("begin", session, "q")
                await other.do("append", session, "one")
                with pytest.raises(SessionBusy, match=f"process {other.pid} "):
                    await store.claim(session)
                await other.kill()
            assert texts((await store.claim(session)).broken) == ["q", "one"]
        assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["link.db"]


async def test_a_store_with_a_second_name_is_refused(place: Place, tmp_path: Path) -> None:
    async with place.open() as store:
        await talked(store, "/work", "a")
    os.link(place.path, tmp_path / "second.db")
    for path in (place.path, str(tmp_path / "second.db")):
        with pytest.raises(StoreError, match="2 names"):
            await open_store(path)
    (tmp_path / "second.db").unlink()
    async with place.open() as store:
        assert len(await walk(store)) == 1
