"""What the store asks of the file system besides the database: where its files are, that they are private, locks."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import StoreDamaged, StoreError, StoreFull

if TYPE_CHECKING:
    from collections.abc import Iterator

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700
_OTHERS = 0o077


class StoreFiles:
    """The files of a store: the database; beside it the count of changes, and directories of turn logs and processes.

    A store is what it is, not what it is called: whoever comes through a link finds the same files.
    """

    def __init__(self, path: str) -> None:
        self.database: Path = Path(os.path.realpath(path))
        self.turns: Path = self.database.with_name(f"{self.database.name}.turns")
        self.processes: Path = self.database.with_name(f"{self.database.name}.owners")
        self.count: Path = self.database.with_name(f"{self.database.name}.count")
        self.sockets: Path = self.database.with_name(f"{self.database.name}.sockets")

    def prepare(self) -> None:
        """Make the database file and its directory where there are none, and let only the user read it.

        Raise `StoreError` where the file has a second name: what is beside it would not be found under both.
        """
        path = self.database
        # Where there were turns there was something in the file. One byte is as good as none to SQLite.
        if self.turns.exists() and path.exists() and path.stat().st_size <= 1:
            raise StoreDamaged(
                f"The session store {path} has lost all its data. Restore a backup, or remove it to begin anew"
            )
        make_directory(path.parent)
        with suppress(FileExistsError):
            if not path.exists():
                self.count.unlink(missing_ok=True)  # of a store that was removed
            # One that is there is not opened: to close it would end the locks that SQLite has on it in this process.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE))
        found = path.stat()
        if found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
            raise StoreError(
                f"The session store {path} has {found.st_nlink} names (hard links), and processes that open it under "
                "different ones would not know of each other. Remove the others; a symbolic link may stay"
            )

    def make_private(self) -> None:
        """Take from other users the right to read what is the user's own. The doctor tells what is left."""
        if sys.platform == "win32":
            return
        for path in self.own():
            with suppress(OSError):
                found = path.stat()
                if found.st_uid == os.geteuid() and found.st_mode & _OTHERS:
                    path.chmod(PRIVATE_DIRECTORY if stat.S_ISDIR(found.st_mode) else PRIVATE_FILE)

    def own(self) -> list[Path]:
        """Return all files and directories that belong to the store and are there."""
        return [path for path in self._paths() if path.exists()]

    def of_database(self) -> list[Path]:
        """Return the files that SQLite keeps the database in."""
        return [self.database, *(self.database.with_name(f"{self.database.name}-{end}") for end in ("wal", "shm"))]

    def _paths(self) -> Iterator[Path]:
        yield from self.of_database()
        yield self.count
        for directory in (self.turns, self.processes):
            if directory.is_dir():
                yield directory
                yield from directory.iterdir()


def make_directory(path: Path) -> None:
    """Make a directory that only the user can read, and that is still there when the machine has died."""
    missing = [parent for parent in (path, *path.parents) if not parent.exists()]
    path.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    for made in missing:
        sync_directory(made.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive the death of the machine."""
    if sys.platform == "win32":  # it does so by itself, and opens no directories
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        sync_file(fd)
    finally:
        os.close(fd)


def sync_file(fd: int) -> None:
    """Make what a file holds survive the death of the machine."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415  (there is none on Windows)

        with suppress(OSError):  # a disk in the network may not know how
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # `fsync` leaves it in the memory of the drive there
            return
    os.fsync(fd)


def lock(fd: int) -> bool:
    """Lock a file if nobody else has; return whether that worked. It is unlocked when it is closed, or by `unlock`."""
    try:
        if sys.platform == "win32":
            _lock_windows(fd, is_locked=True)
        else:
            import fcntl  # noqa: PLC0415  (there is none on Windows)

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def unlock(fd: int) -> None:
    """Unlock a file."""
    if sys.platform == "win32":
        _lock_windows(fd, is_locked=False)
    else:
        import fcntl  # noqa: PLC0415  (there is none on Windows)

        fcntl.flock(fd, fcntl.LOCK_UN)


def _lock_windows(fd: int, *, is_locked: bool) -> None:
    assert sys.platform == "win32"
    import msvcrt  # noqa: PLC0415

    # What is locked there cannot be read by others, so it is a byte far behind all that is ever written.
    os.lseek(fd, 1 << 40, os.SEEK_SET)
    msvcrt.locking(fd, msvcrt.LK_NBLCK if is_locked else msvcrt.LK_UNLCK, 1)


def is_at(fd: int, path: Path | str) -> bool:
    """Return whether an open file is the one that has that name now."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))  # noqa: PTH116  (often asked)
    except OSError:
        return False


def open_files_at_most() -> int:
    """Return how many files this process may have open."""
    if sys.platform == "win32":
        return 512  # of those that have a descriptor
    import resource  # noqa: PLC0415  (there is none on Windows)

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def plain_error(error: OSError, what: str) -> StoreError:
    """Return what an error of the system means for the user."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull("There is no space left for the sessions. Free some and try again")
    return StoreError(f"{what} ({error.strerror})")
