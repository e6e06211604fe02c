"""Disks for SQLite that tests have in hand: one that fails when it is told to, one that forgets what was not synced.

Both are a VFS that hands everything on to the system's own, so that several connections of a process see one file.
"""

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import itertools
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import apsw

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Generator

Operation: TypeAlias = Literal["open", "read", "write", "sync", "truncate", "delete"]
Fault: TypeAlias = Literal["full", "io"]

SECTOR = 512
"""A disk writes this much at once, or not at all."""

_numbers = itertools.count()

CODES: dict[Operation, int] = {
    "open": apsw.SQLITE_CANTOPEN,
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "delete": apsw.SQLITE_IOERR_DELETE,
}


class Disk:
    """Is asked before each operation and told after it; does nothing itself. `name` is that of its VFS."""

    def __init__(self) -> None:
        self.name = f"disk {next(_numbers)}"

    def before(self, operation: Operation, path: str) -> None:
        """Raise to let the operation fail."""

    def opened(self, path: str, *, is_new: bool) -> None: ...
    def written(self, path: str, offset: int, data: bytes) -> None: ...
    def synced(self, path: str) -> None: ...
    def truncated(self, path: str, size: int) -> None: ...
    def deleted(self, path: str, *, synced: bool) -> None: ...

    @contextmanager
    def mounted(self) -> Generator[str]:
        """Let SQLite know the disk under its name."""
        vfs = _Vfs(self)
        try:
            yield self.name
        finally:
            vfs.unregister()


class FailingDisk(Disk):
    """Lets operations fail: all of those that count, from the n-th on, until it is mended."""

    def __init__(self, *counted: Operation) -> None:
        super().__init__()
        self.done = 0
        """How many operations that count there were."""
        self._counted = counted
        self._fail_at: int | None = None
        self._fault: Fault = "full"
        self._lock = threading.Lock()

    @property
    def is_failing(self) -> bool:
        return self._fail_at is not None and self.done >= self._fail_at

    def fail(self, at: int, fault: Fault) -> None:
        """Let the n-th operation from the beginning fail, and those after it."""
        self._fail_at, self._fault = at, fault

    def mend(self) -> None:
        """Let nothing fail any more."""
        self._fail_at = None

    def before(self, operation: Operation, path: str) -> None:
        if operation not in self._counted:
            return
        with self._lock:
            self.done += 1
            if not self.is_failing:
                return
        if self._fault == "full" and operation in ("write", "truncate"):
            raise apsw.FullError("the test's disk is full")
        error = apsw.CantOpenError if operation == "open" else apsw.IOError
        failure: Any = error("the test's disk fails")
        failure.extendedresult = CODES[operation]
        raise failure


class Moment(NamedTuple):
    """What a disk holds at one moment: by path, what is safe, and what was written but not synced since."""

    files: dict[str, tuple[bytes, tuple[Write, ...]]]
    ghosts: dict[str, bytes]
    """What was deleted, but may come back: nobody has synced the directory since."""

    def lose_power(self, chance: random.Random) -> dict[str, bytes]:
        """Choose what is found on the disk afterwards: of what was not synced, all, nothing, a part or pieces of it."""
        found = {path: data for path, data in self.ghosts.items() if chance.random() < 0.5}
        for path, (safe, pending) in self.files.items():
            data = bytearray(safe)
            for write in chosen(pending, chance):
                write.apply(data)
            found[path] = bytes(data)
        return found


class Write(NamedTuple):
    """Something written to a file; without data it was cut off there."""

    offset: int
    data: bytes | None

    def apply(self, content: bytearray) -> None:
        if self.data is None:
            del content[self.offset :]
            return
        if len(content) < self.offset:
            content.extend(bytes(self.offset - len(content)))
        content[self.offset : self.offset + len(self.data)] = self.data

    def sectors(self) -> list[Write]:
        """Cut it as a disk may that loses power in the middle of it."""
        if self.data is None:
            return [self]
        cuts = range(-(self.offset % SECTOR), len(self.data), SECTOR)
        pieces = [(max(at, 0), self.data[max(at, 0) : at + SECTOR]) for at in cuts]
        return [Write(self.offset + at, piece) for at, piece in pieces]


def chosen(pending: tuple[Write, ...], chance: random.Random) -> list[Write]:
    match chance.choice(["none", "all", "beginning", "some", "torn"]):
        case "none":
            return []
        case "all":
            return list(pending)
        case "beginning":
            return list(pending[: chance.randint(0, len(pending))])
        case "some":
            return [write for write in pending if chance.random() < 0.5]
        case _:
            return [piece for write in pending for piece in write.sectors() if chance.random() < 0.5]


class ForgetfulDisk(Disk):
    """Remembers what was synced and what was not, so that power can be lost at any moment.

    `lies` lets it forget what was synced, too: to see whether anybody would notice.
    """

    def __init__(self, *, lies: bool = False) -> None:
        super().__init__()
        self.notice: Callable[[Operation, str], None] = lambda operation, path: None
        """Is told of every operation that changes something, when it is done."""
        self._lies = lies
        self._safe: dict[str, bytearray] = {}
        self._pending: dict[str, list[Write]] = {}
        self._ghosts: dict[str, bytes] = {}
        self._new: set[str] = set()
        self._lock = threading.RLock()

    def moment(self) -> Moment:
        """Hold the moment."""
        with self._lock:
            files = {path: (bytes(safe), tuple(self._pending[path])) for path, safe in self._safe.items()}
            return Moment(files, dict(self._ghosts))

    def opened(self, path: str, *, is_new: bool) -> None:
        if not path or path.endswith("-shm"):
            return
        with self._lock:
            if is_new or path not in self._safe:
                self._safe[path] = bytearray() if is_new else bytearray(Path(path).read_bytes())
                self._pending[path] = []
            if is_new:
                self._new.add(path)

    def written(self, path: str, offset: int, data: bytes) -> None:
        self._change(path, "write", Write(offset, data))

    def truncated(self, path: str, size: int) -> None:
        self._change(path, "truncate", Write(size, None))

    def _change(self, path: str, operation: Operation, write: Write) -> None:
        if path in self._pending:
            with self._lock:
                self._pending[path].append(write)
            self.notice(operation, path)

    def synced(self, path: str) -> None:
        if self._lies or path not in self._pending:
            return
        with self._lock:
            for write in self._pending[path]:
                write.apply(self._safe[path])
            self._pending[path].clear()
            if path in self._new:  # the first sync of a file of its own making is one of the directory, too
                self._new.discard(path)
                self._ghosts.clear()
        self.notice("sync", path)

    def deleted(self, path: str, *, synced: bool) -> None:
        with self._lock:
            if path in self._safe:
                self._ghosts[path] = bytes(self._safe.pop(path))
                del self._pending[path]
            if synced:
                self._ghosts.clear()
        self.notice("delete", path)


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        super().__init__(disk.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        is_new = bool(path) and not Path(path).exists()
        if is_new:
            self._disk.before("open", path)
        file = _File(self._disk, path, name, flags)
        self._disk.opened(path, is_new=is_new)
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self._disk.before("delete", filename)
        super().xDelete(filename, syncdir)
        self._disk.deleted(filename, synced=syncdir)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, path: str, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._path = path
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.before("read", self._path)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        try:
            self._disk.before("write", self._path)
        except apsw.FullError:
            super().xWrite(data[: len(data) // 2], offset)  # a full disk takes a part
            raise
        super().xWrite(data, offset)
        self._disk.written(self._path, offset, bytes(data))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.before("sync", self._path)
        super().xSync(flags)
        self._disk.synced(self._path)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.before("truncate", self._path)
        super().xTruncate(newsize)
        self._disk.truncated(self._path, newsize)
