"""The log of one session, as an open file: events appended, synced, read back, emptied and locked.

A log that is kept for the next turn has room on the disk already, so that a turn can begin in it with one write and one
sync, and without the database (docs/decisions/007).
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from holdfast.errors import StoreError, StoreFull
from holdfast.format.log_records import Beginning, encode_beginning, encode_record, readable_size
from holdfast.store.sqlite.files import (
    PRIVATE_FILE,
    lock,
    make_directory,
    plain_error,
    sync_directory,
    sync_file,
    unlock,
)

if TYPE_CHECKING:
    from pathlib import Path

ROOM_BYTES, MORE_BYTES = 4 << 10, 64 << 10
"""How much room a log gets when a turn begins in it: one that is empty, and one that is written on."""

KEPT_BYTES = 16 << 10
"""How large a log may be to be emptied without giving its room back."""

UNWRITABLE = "The log of the running turn cannot be written"


class TurnFile:
    """The log of one session: open, and locked while a turn is in it."""

    __slots__ = (
        "_access",
        "_directory",
        "_end",
        "_failed",
        "_fd",
        "_identity",
        "_is_named",
        "_is_torn",
        "_last_turn",
        "_link",
        "_name",
        "_unwritten",
        "beginning",
        "is_unused",
        "path",
        "size",
        "synced",
        "turn",
    )

    def __init__(self, path: Path, fd: int) -> None:
        found = os.fstat(fd)
        self.turn: int | None = None
        """The number of the turn in it; None where all is sealed."""
        self.beginning: Beginning | None = None
        """How that turn began, while only the log knows."""
        self.synced: int = 0
        """How much of it would survive the death of the machine."""
        self.is_unused: bool = False
        """Whether no turn has begun in it for a while."""
        self.path: str = str(path)
        self._directory = path.parent
        self._fd = fd
        self._identity = found.st_ino, found.st_dev
        self._link = f"/proc/self/fd/{fd}"
        self._name = _name_of(self._link, path)
        self.size: int = found.st_size
        """How much is in it."""
        self._end = found.st_size  # of the file: there may be zeros behind what is in it
        self._last_turn = 0
        self._is_torn = False  # whether a part of a record may stand behind the end
        self._is_named = False  # whether its name would survive the death of the machine
        self._unwritten = b""  # how a turn began that goes with what it says first
        self._failed: StoreError | None = None
        self._access = threading.Lock()  # the event loop appends, the writer's thread empties and closes

    def use(self, turn: int) -> None:
        """Take the events of a turn from now on."""
        self.turn = self._last_turn = turn

    def begin(self, beginning: Beginning, opening: bytes = b"", *, durable: bool, room: int = MORE_BYTES) -> bool:
        """Begin the next turn in the log alone, behind what is in it, with `opening` lines; sync that where `durable`.

        Where the file has to grow it gets `room` for what follows.

        Return whether that worked. It does where nothing in the log is unsealed, and it is in its place and locked by
        nobody else. Otherwise the log is of no more use.
        """
        with self._access:
            if self.turn is not None or self._fd < 0 or not lock(self._fd):
                return False
            turn = self._last_turn + 1
            record = encode_beginning(turn, beginning) + (encode_record(turn, opening) if opening else b"")
            end = self.size + len(record)
            if not durable and end <= self._end and not self._is_torn:
                if not self._is_in_place():
                    return False
                # There is room for it, so that it will not fail for want of that. It is kept in a moment.
                self._unwritten, self.beginning = record, beginning
                self.use(turn)
                return True
            try:
                if self._is_torn:
                    self._mend()
                if self._end < end:  # with room for what follows, so that the next syncs have only data to write
                    record = record.ljust(room if self.size else min(room, ROOM_BYTES), b"\0")
                self._is_torn = self._write(record, self.size) < len(record)  # a full disk takes a part
                if durable:
                    _sync_data(self._fd)
                    self._sync_name()
                    self.synced = end
            except OSError:
                self._is_torn = True
            if self._is_torn or not self._is_in_place():
                return False
            self.size = end
            self.beginning = beginning
            self.use(turn)
            return True

    @property
    def has_unwritten(self) -> bool:
        """Whether how a turn began is not in it yet."""
        return bool(self._unwritten)

    def give_up(self) -> None:
        """Close it after a turn could not begin in it; where it may have a part of that, remove it."""
        if self._is_torn:
            self.remove()
        else:
            self.close()

    def append(self, lines: bytes) -> None:
        """Keep encoded events. After an error the log is as it was before."""
        with self._access:
            if self.turn is None:
                raise StoreError(f"{UNWRITABLE}: it is closed")
            if not lines and not self._unwritten and self._is_in_place():
                return
            record = self._unwritten + (encode_record(self.turn, lines) if lines else b"")
            try:
                if self._is_torn:
                    self._mend()
                written = self._write(record, self.size)
            except OSError as e:
                raise plain_error(e, UNWRITABLE) from e
            if written == len(record) and self._is_in_place():
                self.size += written
                self._unwritten = b""
                return
            self._is_torn = True
            with suppress(OSError):
                self._mend()
            if written < len(record):  # a full disk takes a part
                raise StoreFull("There is no space left for the sessions. Free some and try again")
            raise StoreError(f"{UNWRITABLE}: it was removed, or another process has taken the session over")

    def _write(self, data: bytes, at: int) -> int:
        if sys.platform == "win32":
            os.lseek(self._fd, at, os.SEEK_SET)
            written = os.write(self._fd, data)
        else:
            written = os.pwrite(self._fd, data, at)
        self._end = max(self._end, at + written)
        return written

    def _mend(self) -> None:
        os.ftruncate(self._fd, self.size)
        self._end, self._is_torn = self.size, False

    def _is_in_place(self) -> bool:
        """Return whether it still is the file that others find: what is written elsewhere is lost with the process."""
        try:
            if self._name is not None:
                return os.readlink(self._link) == self._name  # noqa: PTH115  (often asked)
            found = os.stat(self.path)  # noqa: PTH116
        except OSError:
            return False
        return (found.st_ino, found.st_dev) == self._identity

    def hold(self) -> None:
        """Hold nothing: what is appended is kept at once."""

    async def sync(self) -> None:
        """Make what was appended survive the death of the machine."""
        if self._failed is not None:  # what the system could not write once it does not try again
            raise self._failed
        if self._unwritten:
            self.append(b"")
        try:
            self.synced = await asyncio.get_running_loop().run_in_executor(None, self._sync)
        except OSError as e:
            self._failed = plain_error(e, UNWRITABLE)
            raise self._failed from e

    def _sync(self) -> int:
        """Write it to the disk, in another thread; return how much of it."""
        with self._access:
            if self.turn is None:
                raise StoreError(f"{UNWRITABLE}: it is closed")
            size, fd = self.size, os.dup(self._fd)
        try:
            sync_file(fd)
        finally:
            os.close(fd)
        self._sync_name()
        return size

    def _sync_name(self) -> None:
        if not self._is_named:
            sync_directory(self._directory)
            self._is_named = True

    def lock(self) -> bool:
        """Lock it, if it is in its place and nobody else has; return whether that worked."""
        return lock(self._fd) and self._is_in_place()

    def read(self) -> bytes:
        """Read all that is in it."""
        os.lseek(self._fd, 0, os.SEEK_SET)
        return os.read(self._fd, self.size)

    def write_on(self, data: bytes) -> None:
        """Let what is appended next stand behind the last record of `data`, all that is in it, that can be read."""
        self.size = readable_size(data)
        self._is_torn = True

    def empty(self) -> None:
        """Forget what is in it. Where that fails, records of sealed turns are passed over by whoever reads it."""
        with self._access:
            if (self.size or self._is_torn) and self._fd >= 0:
                with suppress(OSError):
                    if self._end > KEPT_BYTES or self._is_torn or self._write(bytes(self.size), 0) < self.size:
                        os.ftruncate(self._fd, 0)
                        self._end, self._is_torn = 0, False
                    self.size = self.synced = 0

    def remove(self) -> None:
        """Close it and remove it from its place, if it is there: it must not be taken for the log of a turn."""
        with suppress(OSError):
            if self._is_in_place():
                os.unlink(self.path)  # noqa: PTH108
        self.close()

    def close(self) -> None:
        """Close it and release its lock; what is in it stays."""
        with self._access:
            self.turn = None
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def is_noted(self) -> None:
        """Note that the database knows, too, how the turn began."""
        self.beginning = None

    def put_away(self, *, emptied: bool = True) -> None:
        """Unlock it, and empty it: nothing in it is unsealed any more."""
        if emptied:
            self.empty()
        with self._access:
            self.turn = self.beginning = self._failed = None
            self._unwritten, self.is_unused = b"", False
            unlock(self._fd)


class MemoryLog:
    """The log of a turn of a store that is in memory: nothing of it outlives the process anyway."""

    has_unwritten: ClassVar[bool] = False
    __slots__ = ("_records", "is_kept", "size", "touched", "turn")

    def __init__(self, turn: int, *, is_kept: bool) -> None:
        self.turn: int = turn
        self.is_kept: bool = is_kept
        self.size: int = 0
        self.touched: float = time.time()
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

    def hold(self) -> None: ...


_READ_AND_WRITE = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # Windows has only the last


def open_log(path: Path) -> int:
    """Open a log, or make it; return its descriptor."""
    flags = os.O_CREAT | _READ_AND_WRITE
    try:
        try:
            return os.open(path, flags, PRIVATE_FILE)
        except FileNotFoundError:
            make_directory(path.parent)
            return os.open(path, flags, PRIVATE_FILE)
    except OSError as e:
        raise plain_error(e, UNWRITABLE) from e


def reopen_log(path: Path, size: int) -> TurnFile | None:
    """Open and lock a log that was closed with `size` bytes in it; return None if it is not there as it was left."""
    try:
        log = TurnFile(path, os.open(path, _READ_AND_WRITE))
    except OSError:
        return None
    if log.size >= size and log.lock():  # there may be zeros behind what is in it
        log.size = size
        return log
    log.close()
    return None


def _name_of(link: str, path: Path) -> str | None:
    """Return what Linux calls the open file of a link in `/proc` as long as it is at that path; None where it does not.

    `stat` itself takes less. But after one Linux gives the file a new time with the next write, and a file system
    without a journal may have to write that, too, before the sync of another file has ended: a fifteenth of a short
    turn (docs/decisions/014).
    """
    try:
        name = os.readlink(link)  # noqa: PTH115
    except OSError:
        return None
    return name if name.endswith(f"/{path.name}") else None


def _sync_data(fd: int) -> None:
    """Make what a file holds survive the death of the machine."""
    if sys.platform == "linux":
        os.fdatasync(fd)
    else:
        sync_file(fd)
