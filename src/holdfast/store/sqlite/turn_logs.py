"""The events of unsealed turns, in append-only files beside the database, one for each session.

An append costs a hundredth of what a commit costs, and survives the death of the process just as well. When a turn is
sealed its entries are in the database and its log is emptied, to be used again; what is in a log otherwise tells what a
broken turn had said.

Where the events of sealed turns are to stay readable for a while, a log is not emptied but written on; what has become
too large is put aside as a second file, in place of the one before, and what is too old is removed.

While something in it is unsealed, a log is locked by the process that writes it: nobody can take the turn as long as
that process lives (P4). Whoever opens a log for writing does so inside a transaction, so only one does at a time. A
writer whose log is no longer in its place is refused at its next append.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import OrderedDict
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from holdfast.errors import StoreError, StoreFull
from holdfast.format.log_records import decode_log, decode_old_log, decode_turns, encode_record, readable_size
from holdfast.model.kinds import DAMAGED
from holdfast.store.port import KeptLog
from holdfast.store.sqlite.files import (
    PRIVATE_FILE,
    is_at,
    lock,
    make_directory,
    plain_error,
    sync_directory,
    unlock,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast.store.port import Claim, EventWindow
    from holdfast.store.sqlite.threads import Transaction

IDLE_LOGS = 64
"""So many logs stay open, empty, for the next turn of their session."""

ATTEMPTS = 10
"""How often a log is opened anew that somebody replaces meanwhile."""

_UNWRITABLE = "The log of the running turn cannot be written"
_DAMAGED_LINE = msgspec.json.encode({"sessionUpdate": DAMAGED})


class TurnFile:
    """The log of one session: open, and locked while a turn is in it."""

    __slots__ = (
        "_access",
        "_directory",
        "_failed",
        "_fd",
        "_identity",
        "_is_named",
        "_is_torn",
        "_size",
        "path",
        "synced",
        "turn",
    )

    def __init__(self, path: Path, fd: int) -> None:
        found = os.fstat(fd)
        self.turn: int | None = None
        """The number of the turn in it; None where all is sealed."""
        self.synced = 0
        """How much of it would survive the death of the machine."""
        self.path = str(path)
        self._directory = path.parent
        self._fd = fd
        self._identity = found.st_ino, found.st_dev
        self._size = found.st_size
        self._is_torn = False  # whether a part of a record may stand behind the end
        self._is_named = False  # whether its name would survive the death of the machine
        self._failed: StoreError | None = None
        self._access = threading.Lock()  # the event loop appends, the writer's thread empties and closes

    def append(self, lines: bytes) -> None:
        """Keep encoded events. After an error the log is as it was before."""
        with self._access:
            if self.turn is None:
                raise StoreError(f"{_UNWRITABLE}: it is closed")
            record = encode_record(self.turn, lines)
            try:
                if self._is_torn:
                    self._mend()
                written = os.write(self._fd, record)
            except OSError as e:
                raise plain_error(e, _UNWRITABLE) from e
            if written == len(record) and self._is_in_place():
                self._size += written
                return
            self._is_torn = True
            with suppress(OSError):
                self._mend()
            if written < len(record):  # a full disk takes a part
                raise StoreFull("There is no space left for the sessions. Free some and try again")
            raise StoreError(f"{_UNWRITABLE}: it was removed, or another process has taken the session over")

    def _mend(self) -> None:
        os.ftruncate(self._fd, self._size)
        self._is_torn = False

    def _is_in_place(self) -> bool:
        """Return whether it still is the file that others find: what is written elsewhere is lost with the process."""
        try:
            found = os.stat(self.path)  # noqa: PTH116  (often asked)
        except OSError:
            return False
        return (found.st_ino, found.st_dev) == self._identity

    async def sync(self) -> None:
        """Make what was appended survive the death of the machine."""
        if self._failed is not None:  # what the system could not write once it does not try again
            raise self._failed
        try:
            self.synced = await asyncio.get_running_loop().run_in_executor(None, self._sync)
        except OSError as e:
            self._failed = plain_error(e, _UNWRITABLE)
            raise self._failed from e

    def _sync(self) -> int:
        """Write it to the disk, in another thread; return how much of it."""
        with self._access:
            if self.turn is None:
                raise StoreError(f"{_UNWRITABLE}: it is closed")
            size, fd = self._size, os.dup(self._fd)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        if not self._is_named:
            sync_directory(self._directory)
            self._is_named = True
        return size

    def lock(self) -> bool:
        """Lock it, if it is in its place and nobody else has; return whether that worked."""
        return lock(self._fd) and self._is_in_place()

    def read(self) -> bytes:
        """Read all that is in it."""
        os.lseek(self._fd, 0, os.SEEK_SET)
        return os.read(self._fd, self._size)

    def write_on(self, data: bytes) -> None:
        """Let what is appended next stand behind the last record of `data`, all that is in it, that can be read."""
        self._size = readable_size(data)
        self._is_torn = True

    @property
    def size(self) -> int:
        """How much is in it."""
        return self._size

    def empty(self) -> None:
        """Forget what is in it. Where that fails, records of sealed turns are passed over by whoever reads it."""
        with self._access:
            if (self._size or self._is_torn) and self._fd >= 0:
                with suppress(OSError):
                    os.ftruncate(self._fd, 0)
                    self._size = self.synced = 0
                    self._is_torn = False
            self._failed = None

    def close(self) -> None:
        """Close it and release its lock; what is in it stays."""
        with self._access:
            self.turn = None
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def put_away(self, *, emptied: bool = True) -> None:
        """Unlock it, and empty it: nothing in it is unsealed any more."""
        if emptied:
            self.empty()
        with self._access:
            self.turn = None
            unlock(self._fd)


class MemoryLog:
    """The log of a turn of a store that is in memory: nothing of it outlives the process anyway."""

    __slots__ = ("_records", "is_kept", "size", "touched", "turn")

    def __init__(self, turn: int, *, is_kept: bool) -> None:
        self.turn = turn
        self.is_kept = is_kept
        self.size = 0
        self.touched = time.time()
        self._records: list[bytes] = []

    def append(self, lines: bytes) -> None:
        """Keep encoded events, where they are to be read again."""
        if self.is_kept:
            self._records.append(lines)
            self.size += len(lines)
            self.touched = time.time()

    def lines(self) -> list[bytes]:
        """Return what was appended."""
        return b"".join(self._records).split(b"\n")[:-1]

    async def sync(self) -> None: ...


class TurnLogs:
    """The logs of one store. Those that this process writes are open, each under the claim of its session.

    All methods run in the thread that writes; those that open, take or remove logs inside a transaction.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._running: set[Claim] = set()
        self._unsealed: dict[Claim, TurnFile] = {}
        self._idle: OrderedDict[Claim, TurnFile] = OrderedDict()
        self._in_memory: dict[int, list[MemoryLog]] = {}
        self.window: EventWindow | None = None
        """For how long the events of sealed turns stay readable; None where they do not."""

    def is_running(self, claim: Claim) -> bool:
        """Return whether a turn runs here under a claim. One that was claimed broken does not run."""
        return claim in self._running

    def begin(self, transaction: Transaction, claim: Claim, n: int, turn: int) -> TurnFile | MemoryLog:
        """Open the log of a session for a turn."""
        self._running.add(claim)
        transaction.after_rollback(lambda: self._end(claim, emptied=self.window is None))
        if self._directory is None:
            return self._begin_in_memory(n, turn)
        log = self._idle.pop(claim, None)
        if log is not None and not log.lock():
            log.close()
            log = None
        if self.window is not None:
            log = self._with_room(n, log, self.window)
        log = log or self._opened(n, replaces=True)
        log.turn = turn
        self._unsealed[claim] = log
        if self.window is None:
            transaction.after_commit(log.empty)
        return log

    def seal(self, transaction: Transaction, claim: Claim, n: int, turn: int, last: bytes | None) -> None:
        """Empty the log of a turn once it is sealed; where `last` is given and there is a window, let it stay."""
        if claim not in self._running:
            transaction.after_commit(lambda: self._remove_old(n, turn))
        stays = last is not None and self.window is not None and self._end_with(claim, n, last)
        transaction.after_commit(lambda: self._end(claim, emptied=not stays))
        if not stays and self.window is not None:
            transaction.after_commit(lambda: self._remove_kept(n))

    def take(self, transaction: Transaction, last: Claim, n: int, turn: int) -> TurnFile | None:
        """Take the log of a broken turn, which `last` was the claim of; None where there are no logs.

        Raise `BlockingIOError` where its writer is alive.
        """
        if self._directory is None:
            return None
        log = self._unsealed.get(last)
        if log is None:
            log = self._opened(n, replaces=False)
            transaction.after_rollback(log.close)
        log.turn = turn
        return log

    def keep(self, transaction: Transaction, last: Claim, claim: Claim, log: TurnFile | None) -> None:
        """Hold a log that was taken, under its new claim."""

        def kept() -> None:
            self._unsealed.pop(last, None)
            if log is not None:
                self._unsealed[claim] = log

        transaction.after_commit(kept)

    def lines(self, log: TurnFile | None, n: int, turn: int) -> list[bytes]:
        """Read what a turn has said so far, from its log or from one that was taken."""
        if self._directory is None:
            return []
        data = _read(self._path(n)) if log is None else log.read()
        lines, is_damaged = decode_log(data, turn)
        if log is not None:
            log.write_on(data)
        return decode_old_log(_read(self._old_path(n, turn))) + lines + [_DAMAGED_LINE] * is_damaged

    def is_locked(self, n: int) -> bool:
        """Return whether a living process has something unsealed in the log of a session."""
        if self._directory is None:
            return False
        try:
            fd = os.open(self._path(n), os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:  # whoever cannot be asked may be alive
            return True
        try:
            return not lock(fd)
        finally:
            os.close(fd)

    def release(self, claim: Claim) -> None:
        """Close the log under a claim; what is in it stays."""
        self._running.discard(claim)
        for logs in (self._unsealed, self._idle):
            if (log := logs.pop(claim, None)) is not None:
                log.close()

    def remove_sealed(self, n: int) -> None:
        """Remove the log of a session that has nothing unsealed, unless it is to stay readable for a while."""
        if self.window is None:
            self.remove(n)

    def remove(self, n: int) -> None:
        """Remove the log of a session that has nothing unsealed. One that cannot be removed harms nobody."""
        self._in_memory.pop(n, None)
        if self._directory is not None:
            for path in (self._path(n), self._kept_path(n)):
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def forget(self, claim: Claim, n: int, turn: int) -> None:
        """Close and remove the log of a session that was deleted."""
        self.release(claim)
        self.remove(n)
        self._remove_old(n, turn)

    def idle(self) -> list[Claim]:
        """Return the claims whose logs are open and empty."""
        return list(self._idle)

    def close(self) -> None:
        """Close all logs."""
        for claim in {*self._unsealed, *self._idle, *self._running}:
            self.release(claim)

    # Logs that stay readable after their seal

    def read_kept(self, n: int) -> list[KeptLog]:
        """Read all logs of a session that are there, in order. Called from any thread."""
        if self._directory is None:
            return [KeptLog(log.turn, log.lines()) for log in self._in_memory.get(n, ())]
        turns: dict[int, list[bytes]] = {}
        for data in self._kept_files(n):
            for turn, lines in decode_turns(data).items():
                turns.setdefault(turn, []).extend(lines)
        return [KeptLog(turn, lines) for turn, lines in turns.items()]

    def _kept_files(self, n: int) -> list[bytes]:
        """Return what was put aside, then what is written now. One that is put aside meanwhile is read once."""
        with ExitStack() as opened:
            files: list[BinaryIO] = []
            for path in (self._path(n), self._kept_path(n)):
                with suppress(FileNotFoundError):
                    files.insert(0, opened.enter_context(path.open("rb")))
            if len(files) > 1 and os.path.sameopenfile(files[0].fileno(), files[1].fileno()):
                files.pop()
            return [file.read() for file in files]

    def remove_past_window(self, is_unused: Callable[[int], bool]) -> None:
        """Remove the logs whose last event is older than the window; `is_unused` says whose nobody writes."""
        if self.window is None:
            return
        oldest = time.time() - self.window.seconds
        for n, logs in list(self._in_memory.items()):
            self._in_memory[n] = [log for log in logs if log.touched >= oldest or log is logs[-1]]
        if self._directory is None or not self._directory.is_dir():
            return
        for path in list(self._directory.iterdir()):
            number, _, end = path.name.partition(".")
            with suppress(OSError):
                if end not in ("log", "kept") or not number.isdecimal() or path.stat().st_mtime >= oldest:
                    continue
                if end == "kept":
                    path.unlink()
                else:
                    self._remove_unused(int(number), is_unused)

    def _remove_unused(self, n: int, is_unused: Callable[[int], bool]) -> None:
        mine = next((claim for claim, log in self._idle.items() if log.path == str(self._path(n))), None)
        if mine is not None:
            self.release(mine)
            self.remove(n)
        elif is_unused(n):
            self.remove(n)

    def _begin_in_memory(self, n: int, turn: int) -> MemoryLog:
        log = MemoryLog(turn, is_kept=self.window is not None)
        if self.window is not None:
            logs = self._in_memory.setdefault(n, [])
            logs.append(log)
            while sum(kept.size for kept in logs) > self.window.size:
                logs.pop(0)
        return log

    def _end_with(self, claim: Claim, n: int, last: bytes) -> bool:
        """Write the last line of a log that stays readable; return whether that worked."""
        log = self._in_memory[n][-1] if self._directory is None and n in self._in_memory else self._unsealed.get(claim)
        if log is None:
            return False
        try:
            if last:
                log.append(last)
        except StoreError:
            return False
        return True

    def _with_room(self, n: int, log: TurnFile | None, window: EventWindow) -> TurnFile | None:
        """Return the log if more may be written behind what is in it; put aside what is too large.

        So does what another process has written: nobody knows whether that can be read to its end.
        """
        path, kept = self._path(n), self._kept_path(n)
        with suppress(OSError):
            found = path.stat()
            if found.st_mtime < time.time() - window.seconds:
                kept.unlink(missing_ok=True)
            if log is not None and found.st_size <= window.size // 2:
                return log
            path.replace(kept)
        if log is not None:
            log.close()
        return None

    def _remove_kept(self, n: int) -> None:
        self._in_memory.pop(n, None)
        if self._directory is not None:
            with suppress(OSError):
                self._kept_path(n).unlink(missing_ok=True)

    def _end(self, claim: Claim, *, emptied: bool = True) -> None:
        """Put the log away of a turn that is sealed, or was not begun after all."""
        self._running.discard(claim)
        if (log := self._unsealed.pop(claim, None)) is not None:
            log.put_away(emptied=emptied)
            self._idle[claim] = log
            if len(self._idle) > IDLE_LOGS:
                self._idle.popitem(last=False)[1].close()

    def _opened(self, n: int, *, replaces: bool) -> TurnFile:
        """Open and lock the log of a session; make it where there is none.

        One that is still locked, though nothing in it is unsealed any more, is replaced: its last writer is about to
        let go of it.
        """
        path = self._path(n)
        for _ in range(ATTEMPTS):
            fd = _open(path)
            log = TurnFile(path, fd)
            if log.lock():
                return log
            in_place = is_at(fd, path)
            log.close()
            if in_place and not replaces:
                raise BlockingIOError(f"{path} is locked by another process")
            if in_place:
                path.unlink(missing_ok=True)
        raise StoreError(f"{_UNWRITABLE}: others replace it again and again")

    def _path(self, n: int) -> Path:
        assert self._directory is not None
        return self._directory / f"{n}.log"

    def _kept_path(self, n: int) -> Path:
        """Return where the part of a log is that was put aside."""
        assert self._directory is not None
        return self._directory / f"{n}.kept"

    def _old_path(self, n: int, turn: int) -> Path:
        """Return where format 1 had the log of a turn."""
        assert self._directory is not None
        return self._directory / f"{n}-{turn}.jsonl"

    def _remove_old(self, n: int, turn: int) -> None:
        if self._directory is not None:
            with suppress(OSError):
                self._old_path(n, turn).unlink(missing_ok=True)


def _open(path: Path) -> int:
    flags = os.O_CREAT | os.O_RDWR | os.O_APPEND
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # Windows has the one, others have the other
    try:
        try:
            return os.open(path, flags, PRIVATE_FILE)
        except FileNotFoundError:
            make_directory(path.parent)
            return os.open(path, flags, PRIVATE_FILE)
    except OSError as e:
        raise plain_error(e, _UNWRITABLE) from e


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as e:
        raise plain_error(e, "The log of a turn cannot be read") from e
