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
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import apsw

if TYPE_CHECKING:
    from collections.abc import Generator

Operation: TypeAlias = Literal["open", "read", "write", "sync", "truncate", "delete"]
Fault: TypeAlias = Literal["full", "io"]

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
