"""A turn that begins in its log alone: accepted for good, and nobody else's, without the database (P2, P3, P4)."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import OrderedDict
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from core.tests.support.neighbours import neighbour
from core.tests.support.stores import NOTHING, Place, history, message, new, prompt, talked, turn, walk
from holdfast.errors import SessionBusy, SessionMoved, SessionNotFound, StoreError
from holdfast.format.log_records import Beginning
from holdfast.store import Claim, EventWindow
from holdfast.store.sqlite import store as sqlite_store
from holdfast.store.sqlite.turn_file import TurnFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from core.tests.support.neighbours import Neighbour
    from holdfast.store import UnsealedTurn
    from holdfast.store.sqlite.turn_logs import TurnLogs

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false

pytestmark = pytest.mark.requirement("P2", "P3", "P4")

SAID = b'{"sessionUpdate":"_x"}'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "sessions.db"))


@asynccontextmanager
async def second_turn(place: Place) -> AsyncGenerator[tuple[Neighbour, str]]:
    """Let another process have a session whose second turn has begun, and has said something."""
    async with neighbour(place.path) as other:
        session = await other.do("create")
        await other.do("begin", session, "q1")
        await other.do("seal", session, "a1")
        await other.do("begin", session, "q2")
        await other.do("append", session, "one")
        assert accepted(place) == [None], "the database need not know of it yet"
        yield other, session


def accepted(place: Place) -> list[bytes | None]:
    """Read what the database says sessions have accepted, besides what is sealed."""
    with closing(apsw.Connection(place.path)) as db:
        return [found for (found,) in db.execute("SELECT accepted FROM session ORDER BY n")]


def texts(unsealed: UnsealedTurn | None) -> list[str]:
    assert unsealed is not None
    return [line.decode().split('"text": "')[1].split('"')[0] for line in unsealed.lines]


async def test_what_was_accepted_is_on_the_disk_before_anyone_is_told(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[int, bytes] = {}
    fdatasync = os.fdatasync

    def noted(fd: int) -> None:
        fdatasync(fd)
        synced[os.fstat(fd).st_ino] = os.pread(fd, 10_000, 0)

    async with place.open() as store:
        claim = await talked(store, "/work", "a")
        monkeypatch.setattr(os, "fdatasync", noted)
        (asked,) = prompt("second")
        await store.begin(claim, [asked], NOTHING)
        (log,) = place.beside("turns")
        assert asked in synced[log.stat().st_ino]
        assert accepted(place) == [None]


async def test_a_turn_can_begin_while_the_database_is_locked(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, "/work", "a")
        with closing(apsw.Connection(place.path)) as db:
            db.execute("BEGIN IMMEDIATE")
            log = await store.begin(claim, prompt("second"), NOTHING)
            log.append(SAID + b"\n")
            db.execute("ROLLBACK")
        await store.seal(claim, [message("b")], NOTHING, messages=1)
        assert len(await history(store, claim.session)) == 2


async def test_a_turn_that_began_in_its_log_is_found_with_all_it_said_when_its_process_was_killed(place: Place) -> None:
    async with place.open() as store, second_turn(place) as (other, session):
        before = (await store.get(session)).info.updated_at
        await other.kill()
        assert texts((await store.snapshot(session)).unsealed) == ["q2", "one"]
        claimed = await store.claim(session)
        assert texts(claimed.broken) == ["q2", "one"]
        assert claimed.record.info.updated_at > before, "a prompt is activity"
        await store.seal(claimed.claim, [message("sealed")], NOTHING, messages=1, activity=False)
        assert (await store.claim(session)).broken is None
        assert len(await history(store, session)) == 2


async def test_it_stays_broken_until_somebody_seals_it(place: Place) -> None:
    async with second_turn(place) as (dead, session):
        await dead.kill()
    async with neighbour(place.path) as second:
        assert len(await second.do("claim", session)) == 2
        await second.kill()
    async with place.open() as store:
        claimed = await store.claim(session)
        await store.release(claimed.claim)
        assert texts((await store.claim(session)).broken) == ["q2", "one"]


async def test_nobody_takes_deletes_or_hands_over_a_session_while_its_turn_runs(place: Place) -> None:
    async with place.open() as store, second_turn(place) as (other, session):
        for refused in (store.claim(session), store.delete(session), store.hand_over(session, "another")):
            with pytest.raises(SessionBusy, match=f"process {other.pid} "):
                await refused
        assert await store.prune(1 << 60) == 0
        unsealed = (await store.snapshot(session)).unsealed
        assert unsealed is not None and unsealed.running_in is not None
        assert "1 running" in [finding.says async for finding in store.examine()]
        await other.do("append", session, "still its own")
        await other.do("seal", session, "a2")
        assert (await store.claim(session)).broken is None


@pytest.mark.parametrize("how", ["claim", "hand over", "delete"])
async def test_whoever_has_lost_an_idle_session_cannot_begin_in_its_log(place: Place, how: str) -> None:
    async with place.open() as store, neighbour(place.path) as other:
        session = await other.do("create")
        for n in range(2):
            await other.do("begin", session, f"q{n}")
            await other.do("seal", session, f"a{n}")
        match how:
            case "claim":
                await store.claim(session)
            case "hand over":
                await store.hand_over(session, "another")
            case _:
                await store.delete(session)
        with pytest.raises(SessionNotFound if how == "delete" else SessionMoved):
            await other.do("begin", session, "stale")
        assert place.beside("turns") == []


async def test_a_dead_owners_session_may_be_deleted_or_pruned(place: Place) -> None:
    async with place.open() as store, second_turn(place) as (other, session):
        await other.kill()
        await store.delete(session)
        assert await walk(store) == []
        assert place.beside("turns") == []


async def test_the_doctor_knows_of_a_turn_that_only_its_log_knows_of(place: Place) -> None:
    async with place.open() as store, second_turn(place) as (other, session):
        await other.kill()
        found = {finding.about: finding for finding in [finding async for finding in store.examine()]}
        assert found["turns"].level == "note" and session in found["turns"].says
        assert found["turn logs"].level == "ok"
        assert texts((await store.claim(session)).broken) == ["q2", "one"]


async def test_a_turn_that_lasts_is_known_to_other_processes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "NOTE_SECONDS", 0.01)
    async with place.open() as store:
        first, second = [await talked(store, "/work", "a") for _ in range(2)]
        async with neighbour(place.path) as other:
            assert await other.do("list") == [second.session, first.session]
            log = await store.begin(first, asked := prompt("again"), NOTHING)
            async with asyncio.timeout(20):
                while await other.do("list") != [first.session, second.session]:  # noqa: ASYNC110  (it is in another process)
                    await asyncio.sleep(0.01)
        assert accepted(place) == [*asked, None]
        log.append(SAID + b"\n")
        await store.release(first)
        broken = (await store.claim(first.session)).broken
        assert broken is not None and broken.lines == [*asked, SAID]


async def test_what_is_read_here_knows_of_it_at_once(place: Place) -> None:
    async with place.open() as store:
        first, second = [await talked(store, "/work", "a") for _ in range(2)]
        await store.begin(first, prompt("again"), NOTHING)
        assert await walk(store) == [first.session, second.session]


async def test_a_turn_that_could_not_be_sealed_is_left_to_the_next_claim(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, "/work", "a")
        log = await store.begin(claim, asked := prompt("second"), NOTHING)
        log.append(SAID + b"\n")
        with pytest.raises(StoreError, match="not sealed"):
            await store.begin(claim, prompt("third"), NOTHING)
        await store.release(claim)
        broken = (await store.claim(claim.session)).broken
        assert broken is not None and broken.lines == [*asked, SAID]


@pytest.mark.parametrize("call", ["fdatasync", "pwrite"])
async def test_where_the_log_cannot_take_it_the_database_does(
    place: Place, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async with place.open() as store:
        claim = await talked(store, "/work", "a")
        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail)
            log = await store.begin(claim, asked := prompt("second"), NOTHING)
        assert accepted(place) == asked
        log.append(SAID + b"\n")
        await store.release(claim)
        broken = (await store.claim(claim.session)).broken
        assert broken is not None and broken.lines == [*asked, SAID]


async def test_a_log_that_was_not_emptied_says_nothing_about_a_turn_that_is_sealed(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, "/work", "a")
        log = await store.begin(claim, prompt("second"), NOTHING)
        log.append(SAID + b"\n")
        (path,) = place.beside("turns")
        before = path.read_bytes()
        await store.seal(claim, [message("b")], NOTHING, messages=1)
        path.write_bytes(before)
        assert (await store.snapshot(claim.session)).unsealed is None
        assert (await store.claim(claim.session)).broken is None


@pytest.mark.requirement("P11")
async def test_a_prompt_whose_record_is_damaged_is_not_forgotten_in_silence(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, "/work", "a")
        log = await store.begin(claim, asked := prompt("second"), NOTHING)
        log.append(SAID + b"\n")
        (path,) = place.beside("turns")
    whole = path.read_bytes()
    at = whole.index(asked[0]) + 5
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
    async with place.open() as store:
        broken = (await store.claim(claim.session)).broken
        assert broken is not None
        assert len(broken.lines) == 1 and b"_holdfast/damaged" in broken.lines[0]


@pytest.mark.parametrize("window", [None, EventWindow()])
async def test_turns_of_any_size_follow_each_other_in_one_log(place: Place, window: EventWindow | None) -> None:
    async with place.open() as store:
        if window is not None:
            store.keep_events(window)
        claim = await new(store)
        await turn(store, claim, message("a"))
        for size in (10, 5_000, 10, 100_000, 20_000, 10):
            said = b'{"sessionUpdate":"_x","t":"%s"}' % (b"x" * size)
            log = await store.begin(claim, asked := prompt("p" * size), NOTHING)
            log.append(said + b"\n")
            log.append(SAID + b"\n")
            unsealed = (await store.snapshot(claim.session)).unsealed
            assert unsealed is not None and unsealed.lines == [*asked, said, SAID]
            await store.seal(claim, [message("b")], NOTHING, messages=1, last=b'{"sessionUpdate":"_last"}\n')
        assert len(await history(store, claim.session)) == 7
        if window is not None:
            kept = [log.lines[-1] for log in await store.read_events(claim.session)]
            assert kept[-6:] == [b'{"sessionUpdate":"_last"}'] * 6


async def test_what_happens_between_turns_is_not_taken_for_the_turn_before(place: Place) -> None:
    async with place.open() as store:
        store.keep_events(EventWindow())
        claim = await talked(store, "/work", "a")
        await store.begin(claim, prompt("in the log alone"), NOTHING)
        await store.seal(claim, [message("b")], NOTHING, messages=1, last=b"")
        log = await store.begin(claim, [], NOTHING, activity=False)
        log.append(SAID + b"\n")
        await walk(store)  # before that, turns are noted that only their logs know of
        unsealed = (await store.snapshot(claim.session)).unsealed
        assert unsealed is not None and unsealed.lines == [SAID]
    async with place.open() as store:
        broken = (await store.claim(claim.session)).broken
        assert broken is not None and broken.lines == [SAID]


async def test_a_log_that_keeps_what_was_said_takes_the_next_turn_too(place: Place) -> None:
    async with place.open() as store, place.open() as other:
        store.keep_events(EventWindow())
        claim = await talked(store, "/work", "a")
        asked = prompt("again")
        for n in range(3):
            log = await store.begin(claim, asked, NOTHING)
            log.append(SAID + b"\n")
            assert accepted(place) == [None]
            unsealed = (await other.snapshot(claim.session)).unsealed
            assert unsealed is not None and unsealed.lines == [*asked, SAID]
            with pytest.raises(SessionBusy):
                await other.claim(claim.session)
            if n < 2:
                await store.seal(claim, [message("b")], NOTHING, messages=1, last=b"")
    async with place.open() as store:
        store.keep_events(EventWindow())
        claimed = await store.claim(claim.session)
        assert claimed.broken is not None and claimed.broken.lines == [*asked, SAID]
        await store.seal(claimed.claim, [message("c")], NOTHING, messages=1, last=b"")
        log = await store.begin(claimed.claim, prompt("on"), NOTHING)
        log.append(SAID + b"\n")
        turns = [kept.turn for kept in await store.read_events(claim.session)]
        assert turns == sorted(set(turns)) and len(turns) == 4


async def test_what_nobody_is_told_of_need_not_wait_for_the_disk_and_is_there_all_the_same(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 1 answers a prompt when its turn has ended: until then it is kept, and soon it is durable."""
    synced = list[int]()
    fdatasync = os.fdatasync

    def noted(fd: int) -> None:
        synced.append(fd)
        fdatasync(fd)

    monkeypatch.setattr(os, "fdatasync", noted)
    async with place.open() as store:
        claim = await talked(store, "/work", "a")
        synced.clear()
        asked = prompt("second")
        log = await store.begin(claim, asked, NOTHING, durable=False)
        log.append(SAID + b"\n")
        assert not synced
        async with place.open() as other:
            unsealed = (await other.snapshot(claim.session)).unsealed
            assert unsealed is not None and unsealed.lines == [*asked, SAID]
            with pytest.raises(SessionBusy):
                await other.claim(claim.session)
        assert isinstance(log, TurnFile) and not log.synced
        await log.sync()
        assert log.synced == log.size
        for _ in range(600):
            if accepted(place) != [None]:
                break
            await asyncio.sleep(0.05)
        assert accepted(place) == asked, "the database knows of it before long"


async def test_a_turn_that_begins_at_the_same_time_as_its_session_is_claimed_keeps_it(place: Place) -> None:
    """The event loop begins turns while the writer's thread is at work: one of the two has the session (P4)."""
    async with place.open() as store:
        claim = await talked(store, "/work", "a")
        for n in range(50):
            claiming = asyncio.ensure_future(store.claim(claim.session))
            await asyncio.sleep(n / 50_000)
            try:
                log = await store.begin(claim, prompt(f"turn {n}"), NOTHING, durable=False)
            except SessionMoved:
                claim = (await claiming).claim
                await store.begin(claim, prompt(f"turn {n}"), NOTHING, durable=False)
            else:
                with pytest.raises(SessionBusy):
                    await claiming
                log.append(SAID + b"\n")
            await store.seal(claim, [message(f"answer {n}")], NOTHING, messages=1)


async def test_a_turn_that_begins_as_its_log_is_to_be_removed_keeps_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs that are past their window are removed by the thread that writes, while the event loop begins turns."""
    async with place.open() as store:
        store.keep_events(EventWindow(seconds=0))
        claim = await talked(store, "/work", "first")
        await turn(store, claim, message("second"))
        logs: TurnLogs = vars(store)["_logs"]
        begun: list[TurnFile | None] = []

        class Raced(OrderedDict[Claim, TurnFile]):
            def items(self) -> Any:
                found = list(super().items())
                if not begun:
                    begun.append(None)
                    begun.append(logs.begin_alone(claim, Beginning(1, *prompt("q")), b"", durable=False))
                return found

        monkeypatch.setattr(logs, "_idle", Raced(vars(logs)["_idle"]))
        await asyncio.sleep(0.05)
        await store.forget_events()
        log = begun[-1]
        assert log is not None and logs.running(claim) is log
        log.append(SAID + b"\n")
        unsealed = (await store.snapshot(claim.session)).unsealed
        assert unsealed is not None and SAID in unsealed.lines
