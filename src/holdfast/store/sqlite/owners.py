"""Which of the processes that share a store are alive (P4).

Each holds a lock on a file of its own for as long as it lives. The system lets go of the lock when the process dies,
however it dies, so that nobody has to guess from process numbers or clocks. Locks do not cross machines: a store in a
network folder must be used from one machine only.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

YOUNG_SECONDS = 60.0
"""So long after its file was made a process may not have locked it yet."""


class _About(msgspec.Struct):
    """What a process tells about itself, for messages to the user. No arguments: they may hold secrets (P10)."""

    pid: int
    program: str


class Owners:
    """The processes at work on one store; this one is among them from the start."""

    def __init__(self, directory: Path | None) -> None:
        self.me = secrets.token_hex(8)
        self.directory = directory
        self._fd = -1
        if directory is not None:
            directory.mkdir(mode=0o700, exist_ok=True)
            self._fd = os.open(directory / self.me, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            try:
                _lock(self._fd)
                program = Path(sys.argv[0]).name.encode(errors="replace").decode()
                os.write(self._fd, msgspec.json.encode(_About(os.getpid(), program)))
            except OSError:
                self.close()
                raise

    def is_alive(self, owner: str) -> bool:
        """Say whether a process is at work."""
        if owner == self.me:
            return True
        if self.directory is None:
            return False
        try:
            fd = os.open(self.directory / owner, os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:  # whoever cannot be asked may be alive
            return True
        try:
            if not _lock(fd):
                return True
            with suppress(OSError):
                (self.directory / owner).unlink()  # nobody will ask for it again
            return False
        finally:
            os.close(fd)

    def forget_dead(self) -> None:
        """Remove what processes that died have left.

        Whoever looks locks for a moment what he looks at, so only one may look at a time: inside a transaction.
        """
        if self.directory is not None:
            with suppress(OSError):
                for path in self.directory.iterdir():
                    if time.time() - path.stat().st_mtime > YOUNG_SECONDS:
                        self.is_alive(path.name)

    def known(self) -> list[str]:
        """Give all that have a file, alive or not."""
        if self.directory is None:
            return []
        return sorted(it.name for it in self.directory.iterdir())

    def describe(self, owner: str) -> str:
        """Say which process that is, for a message."""
        if self.directory is not None:
            with suppress(OSError, msgspec.DecodeError):
                about = msgspec.json.decode((self.directory / owner).read_bytes(), type=_About)
                return f"process {about.pid} ({about.program})"
        return "another process"

    def close(self) -> None:
        """Leave."""
        if self._fd >= 0 and self.directory is not None:
            with suppress(OSError):
                (self.directory / self.me).unlink()
            os.close(self._fd)
            self._fd = -1


def _lock(fd: int) -> bool:
    """Lock a file if nobody else has, for as long as it is open."""
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt  # noqa: PLC0415

            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
