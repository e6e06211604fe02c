"""The log of a running turn: what it has taken is there after the process died, whatever became of its last line."""

from __future__ import annotations

import errno
import gc
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.support.stores import NOTHING, Place, message, new, prompt
from holdfast.errors import StoreError, StoreFull
from holdfast.format.log_records import decode_log, encode_record
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.turn_file import TurnFile

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

pytestmark = pytest.mark.requirement("P1", "P2", "P3")

TURN = 3
LINES = [b'{"sessionUpdate":"_x","n":%d,"text":"%s"}' % (n, b"\xf0\x9f\x98\x80" * n) for n in range(5)]
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[TurnFile]:
    path = tmp_path / "log"
    log = TurnFile(path, os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    log.turn = TURN
    yield log
    log.close()


def read_log(path: Path) -> list[bytes]:
    logged = decode_log(path.read_bytes(), TURN)
    assert not logged.is_damaged
    return logged.lines


@contextmanager
def no_file_larger_than(size: int) -> Generator[None]:
    """Let the system refuse what goes beyond, as it does when a quota is used up: it takes a part, then nothing."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def append(log: TurnFile, *lines: bytes) -> None:
    log.append(b"".join(line + b"\n" for line in lines))


@pytest.mark.parametrize("room", range(0, 60, 7))
def test_a_line_there_is_no_room_for_leaves_no_part_of_itself(log: TurnFile, tmp_path: Path, room: int) -> None:
    append(log, LINES[0])
    size = (tmp_path / "log").stat().st_size
    with no_file_larger_than(size + room):
        for _ in range(3):
            with pytest.raises(StoreError):
                append(log, LINES[4], LINES[4])
        assert read_log(tmp_path / "log") == LINES[:1]
        assert (tmp_path / "log").stat().st_size == size
    append(log, *LINES[1:])
    assert read_log(tmp_path / "log") == LINES


def test_a_part_that_cannot_be_taken_back_at_once_is_taken_back_before_the_next_line(
    log: TurnFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, LINES[0])
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", fails(errno.EIO))
        with no_file_larger_than((tmp_path / "log").stat().st_size + 20), pytest.raises(StoreFull):
            append(log, LINES[1])
        with pytest.raises(StoreError):
            append(log, LINES[2])
    assert read_log(tmp_path / "log") == LINES[:1]
    append(log, *LINES[1:])
    assert read_log(tmp_path / "log") == LINES


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, StoreFull), (errno.EDQUOT, StoreFull), (errno.EIO, StoreError)]
)
def test_what_the_system_says_is_said_in_plain_words(
    log: TurnFile, monkeypatch: pytest.MonkeyPatch, number: int, error: type[StoreError]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fails(number))
        with pytest.raises(error) as refused:
            append(log, LINES[0])
    assert type(refused.value) is error
    append(log, LINES[0])


def fails(number: int) -> object:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


async def test_what_is_synced_is_the_file_and_its_name(
    log: TurnFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def noted(fd: int) -> None:
        fsync(fd)
        synced.append(os.fstat(fd).st_ino)

    append(log, LINES[0])
    monkeypatch.setattr(os, "fsync", noted)
    await log.sync()
    assert synced == [os.stat(path).st_ino for path in (tmp_path / "log", tmp_path)]  # noqa: PTH116


async def test_what_could_not_be_synced_once_is_never_taken_for_synced(
    log: TurnFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system forgets what it could not write, and the next sync has nothing to complain about."""
    append(log, LINES[0])
    await log.sync()
    synced = log.synced
    assert synced == len(encode_record(TURN, LINES[0] + b"\n"))
    append(log, LINES[1])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails(errno.EIO))
        with pytest.raises(StoreError):
            await log.sync()
    with pytest.raises(StoreError):
        await log.sync()
    assert log.synced == synced


def test_a_log_that_is_closed_takes_nothing(log: TurnFile) -> None:
    log.close()
    log.close()
    with pytest.raises(StoreError):
        append(log, LINES[0])


def removed(path: Path) -> None:
    path.unlink()


def renamed(path: Path) -> None:
    path.rename(path.with_name("kept"))


def replaced(path: Path) -> None:
    path.rename(path.with_name("kept"))
    path.write_bytes(b"")


def overwritten(path: Path) -> None:
    (path.parent / "other").write_bytes(b"")
    (path.parent / "other").replace(path)


def moved_with_its_directory(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def no_names(_: str) -> str:
    raise FileNotFoundError(errno.ENOENT, "No such file or directory", "/proc/self")


@pytest.mark.requirement("P4")
@pytest.mark.parametrize("how", [removed, renamed, replaced, overwritten, moved_with_its_directory])
@pytest.mark.parametrize("proc", [pytest.param(True, id="proc"), pytest.param(False, id="no-proc")])
def test_what_is_written_elsewhere_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Callable[[Path], None], *, proc: bool
) -> None:
    if not proc:
        monkeypatch.setattr(os, "readlink", no_names)
    path = tmp_path / "turns" / "1.log"
    path.parent.mkdir()
    log = TurnFile(path, os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    assert log.lock()
    log.turn = TURN
    append(log, LINES[0])
    how(path)
    with pytest.raises(StoreError, match="removed"):
        append(log, LINES[1])
    log.close()


@pytest.mark.requirement("P4")
@pytest.mark.parametrize("how", [removed, renamed, replaced, overwritten])
def test_a_log_that_was_taken_away_before_it_was_looked_at_is_not_in_its_place(
    tmp_path: Path, how: Callable[[Path], None]
) -> None:
    path = tmp_path / "1.log"
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    how(path)
    log = TurnFile(path, fd)
    assert not log.lock()
    log.close()


def test_a_log_is_found_through_a_link_to_its_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    path = tmp_path / "link" / "1.log"
    log = TurnFile(path, os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    assert log.lock()
    path.unlink()
    assert not log.lock()
    log.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the name of an open file")
def test_what_is_appended_is_not_asked_for_its_times(log: TurnFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a sync of the database has to write those too, on a disk without a journal (docs/decisions/014)."""

    def no_stat(*_: object, **__: object) -> os.stat_result:
        raise AssertionError("the log was asked for its times")

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", no_stat)
        patched.setattr(os, "fstat", no_stat)
        append(log, LINES[0])


# Together with the store


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "sessions.db"))


async def test_a_broken_turn_whose_log_cannot_be_read_is_not_taken_for_an_empty_one(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await store.begin(claim, prompt("x"), NOTHING)
    (log,) = place.beside("turns")
    log.unlink()
    log.mkdir()
    async with place.open() as store:
        with pytest.raises(StoreError):
            await store.claim(claim.session)
        log.rmdir()
        assert (await store.claim(claim.session)).broken is not None


async def test_a_turn_whose_log_cannot_be_made_has_not_begun(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        in_the_way = Path(f"{place.path}.turns")
        in_the_way.write_bytes(b"")  # noqa: ASYNC240
        before = await store.get(claim.session)
        with pytest.raises(StoreError):
            await store.begin(claim, prompt("x"), NOTHING)
        assert await store.get(claim.session) == before
        assert (await store.claim(claim.session)).broken is None
        in_the_way.unlink()  # noqa: ASYNC240


async def test_the_log_of_a_session_is_emptied_when_a_turn_is_sealed_and_removed_when_it_is_let_go(
    place: Place,
) -> None:
    async with place.open() as store:
        claim = await new(store)
        log = await store.begin(claim, prompt("x"), NOTHING)
        log.append(LINES[0] + b"\n")
        (path,) = place.beside("turns")
        await store.seal(claim, [message("a")], NOTHING, messages=1)
        assert place.beside("turns") == [path] and not path.read_bytes().strip(b"\0")
        await store.release(claim)
        assert place.beside("turns") == []


async def test_the_log_of_a_session_is_removed_with_it_and_with_the_store(place: Place) -> None:
    async with place.open() as store:
        claims = [await new(store) for _ in range(3)]
        for claim in claims:
            await store.begin(claim, prompt("x"), NOTHING)
        for claim in claims[:2]:
            await store.seal(claim, [message("a")], NOTHING, messages=1)
        assert len(place.beside("turns")) == 3
        await store.delete(claims[0].session)
        assert len(place.beside("turns")) == 2
    assert len(place.beside("turns")) == 1, "that of the turn nobody has sealed"


async def test_what_a_log_has_of_a_turn_that_was_sealed_is_not_taken_for_the_next_one(place: Place) -> None:
    """Its process may have died before it was emptied, or the machine before that was on the disk."""
    async with place.open() as store:
        claim = await new(store)
        log = await store.begin(claim, prompt("x"), NOTHING)
        log.append(LINES[0] + b"\n")
        (path,) = place.beside("turns")
        said = path.read_bytes()
        await store.seal(claim, [message("a")], NOTHING, messages=1)
        path.write_bytes(said)
        assert (await store.claim(claim.session)).broken is None
        claim = (await store.claim(claim.session)).claim
        log = await store.begin(claim, asked := prompt("y"), NOTHING)
        assert not path.read_bytes().strip(b"\0")
        log.append(LINES[1] + b"\n")
        path.write_bytes(said + path.read_bytes())
        await store.release(claim)
        broken = (await store.claim(claim.session)).broken
        assert broken is not None
        assert broken.lines == [*asked, LINES[1]]


async def test_a_turn_is_not_begun_while_the_last_one_is_not_sealed(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        log = await store.begin(claim, asked := prompt("x"), NOTHING)
        log.append(LINES[0] + b"\n")
        with pytest.raises(StoreError, match="not sealed"):
            await store.begin(claim, prompt("y"), NOTHING)
        log.append(LINES[1] + b"\n")
        await store.release(claim)
        broken = (await store.claim(claim.session)).broken
        assert broken is not None
        assert broken.lines == [*asked, *LINES[:2]]


@pytest.mark.requirement("P11")
async def test_a_damaged_record_in_a_log_is_told_behind_what_is_before_it(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        log = await store.begin(claim, asked := prompt("x"), NOTHING)
        for line in LINES:
            log.append(line + b"\n")
    (path,) = place.beside("turns")
    whole = path.read_bytes()
    for at in range(len(encode_record(1, LINES[0] + b"\n")), len(whole) - 1, 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        async with place.open() as store:
            found = {finding.about: finding for finding in [found async for found in store.examine()]}
            assert found["turns"].level == "problem" and claim.session in found["turns"].says
            snapshot = await store.snapshot(claim.session)
            claimed = await store.claim(claim.session)
            assert claimed.broken is not None and snapshot.unsealed is not None
            *said, mark = claimed.broken.lines
            assert snapshot.unsealed.lines == claimed.broken.lines
            assert b"_holdfast/damaged" in mark
            assert said == [*asked, *LINES][: len(said)]


async def test_a_record_that_was_not_written_to_its_end_is_no_damage(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        log = await store.begin(claim, asked := prompt("x"), NOTHING)
        log.append(LINES[0] + b"\n")
        log.append(LINES[1] + b"\n")
    (path,) = place.beside("turns")
    whole = path.read_bytes()
    for size in range(len(encode_record(1, LINES[0] + b"\n")), len(whole)):
        path.write_bytes(whole[:size])
        async with place.open() as store:
            claimed = await store.claim(claim.session)
            assert claimed.broken is not None
            assert claimed.broken.lines == [*asked, LINES[0]]


async def test_a_turn_that_accepted_nothing_is_broken_all_the_same(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        log = await store.begin(claim, [], NOTHING)
        log.append(LINES[1] + b"\n")
    async with place.open() as store:
        broken = (await store.claim(claim.session)).broken
        assert broken is not None
        assert broken.lines == [LINES[1]]


@pytest.mark.parametrize(("files", "logs"), [(0, 2), (47, 5), (1_000, 7), (resource.RLIM_INFINITY, 7)])
async def test_idle_sessions_keep_few_logs_open(
    place: Place, monkeypatch: pytest.MonkeyPatch, files: int, logs: int
) -> None:
    def limit(_: int) -> tuple[int, int]:
        return files, files

    monkeypatch.setattr("holdfast.store.sqlite.turn_logs.IDLE_LOGS", (2, 7))
    monkeypatch.setattr(resource, "getrlimit", limit)
    async with place.open() as store:
        claims = [await new(store) for _ in range(20)]
        before = descriptors()
        for _ in range(2):
            for claim in claims:
                await store.begin(claim, prompt("x"), NOTHING)
            assert descriptors() == before + 20
            for claim in claims:
                await store.seal(claim, [message("a")], NOTHING, messages=1)
            assert descriptors() == before + logs
        for claim in claims:
            await store.release(claim)
        assert descriptors() == before


async def test_no_descriptor_is_left_by_turns_that_end_fail_or_are_left(place: Place) -> None:
    store = await SqliteStore.open(place.path)
    claim = await new(store)
    await store.begin(claim, prompt("x"), NOTHING)
    await store.seal(claim, [message("a")], NOTHING, messages=1)
    before = descriptors()
    for _ in range(3):
        await store.begin(claim, prompt("x"), NOTHING)
        await store.seal(claim, [], NOTHING, messages=0)
    assert descriptors() == before
    await store.begin(claim, prompt("x"), NOTHING)
    await store.close()
    assert descriptors() < before


def descriptors() -> int:
    gc.collect()  # what other tests have left is not counted
    return len(list(Path("/dev/fd").iterdir()))


# A disk that is really full


def test_on_a_disk_that_is_really_full_all_is_refused_in_plain_words_and_goes_on_when_there_is_space() -> None:
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-m", "core.tests.programs.full_disk"]
    try:
        ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=50, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if ended.returncode == 77:
        pytest.skip("no small disk can be mounted here")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["full", "readable", "again"]
