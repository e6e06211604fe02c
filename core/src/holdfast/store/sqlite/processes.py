"""Which of the processes that share a store are alive (P4).

Each holds a lock on a file of its own for as long as it lives. The system lets go of the lock when the process dies,
however it dies, so that nobody has to guess from process numbers or clocks. Locks do not cross machines: a store in a
network folder must be used from one machine only.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.store.sqlite.files import PRIVATE_DIRECTORY, PRIVATE_FILE, lock

YOUNG_SECONDS = 60.0
"""So long after its file was made a process may not have locked it yet."""

STARTING = ".starting"
"""How the name of a file ends that its process has not locked yet."""

ATTEMPTS = 5

RECORD_BYTES = 1024
"""What a process tells about itself is so long, spaces behind it: whoever reads it while it changes finds it whole."""

NAME_LENGTH = 64


class _Process(msgspec.Struct):
    """What a process tells about itself, for messages to the user. No arguments: they may hold secrets (P10)."""

    pid: int
    program: str
    client: str | None = None
    """The name of the client it works for."""


class Processes:
    """The processes at work on one store; this one is among them from the start.

    `directory` has a file for each, `sockets` is where each listens; both are None in memory.
    """

    def __init__(self, directory: Path | None, sockets: Path | None = None) -> None:
        self.me: str = os.urandom(8).hex()
        self._directory = directory
        self._sockets = sockets
        self._fd = -1
        if directory is not None:
            directory.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
            self._fd = _locked_file(directory, self.me)

    def is_alive(self, process: str) -> bool:
        """Return whether a process is at work. The file of one that is not is removed.

        Whoever asks locks for a moment what is asked about, so only one may ask at a time: inside a transaction.
        """
        if process == self.me:
            return True
        if self._directory is None:
            return False
        try:
            fd = os.open(self._directory / process, os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:  # whoever cannot be asked may be alive
            return True
        try:
            if not lock(fd):
                return True
            with suppress(OSError):
                (self._directory / process).unlink()  # nobody will ask for it again
            return False
        finally:
            os.close(fd)

    def forget_dead(self) -> None:
        """Remove the files of processes that died. Run inside a transaction, as `is_alive`."""
        with suppress(OSError):
            for process in self.known():
                self.is_alive(process)
            for path in self._files():
                if path.name.endswith(STARTING) and time.time() - path.stat().st_mtime > YOUNG_SECONDS:
                    path.unlink(missing_ok=True)

    def known(self) -> list[str]:
        """Return the processes that have a file, alive or not."""
        return sorted(path.name for path in self._files() if not path.name.endswith(STARTING))

    def describe(self, process: str) -> str:
        """Return which process that is, in words: by its client, as people know it, or by its number."""
        if self._directory is not None:
            with suppress(OSError, msgspec.DecodeError):
                found = msgspec.json.decode((self._directory / process).read_bytes(), type=_Process)
                return found.client or f"process {found.pid} ({found.program})"
        return "another process"

    def introduce(self, client: str) -> None:
        """Name the client that this process works for."""
        if self._fd >= 0:
            told = msgspec.json.encode(_Process(os.getpid(), _program(), client[:NAME_LENGTH]))
            with suppress(OSError):
                os.lseek(self._fd, 0, os.SEEK_SET)
                os.write(self._fd, told.ljust(RECORD_BYTES))

    def address_of(self, process: str) -> str | None:
        """Return where a process listens, if it does."""
        return None if self._sockets is None else f"unix:{self._sockets / process}.sock"

    def close(self) -> None:
        """Leave."""
        if self._fd >= 0 and self._directory is not None:
            with suppress(OSError):
                (self._directory / self.me).unlink()
            os.close(self._fd)
            self._fd = -1

    def _files(self) -> list[Path]:
        if self._directory is None:
            return []
        try:
            return list(self._directory.iterdir())
        except FileNotFoundError:  # somebody has removed it
            return []


def _program() -> str:
    return Path(sys.argv[0]).name.encode(errors="replace").decode()[:NAME_LENGTH]


def _locked_file(directory: Path, name: str) -> int:
    """Make the file of this process; return its descriptor, which holds the lock.

    It gets its name when it is locked: whoever finds it unlocked knows that its process is dead.
    """
    path = directory / name
    starting = path.with_name(name + STARTING)
    if sys.platform == "win32":  # no file is renamed there while it is open
        starting = path
    for attempt in range(ATTEMPTS):
        fd = os.open(starting, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE)
        try:
            os.write(fd, msgspec.json.encode(_Process(os.getpid(), _program())).ljust(RECORD_BYTES))
            if not lock(fd):
                raise BlockingIOError(f"{starting} is locked by another process")
            if starting != path:
                starting.rename(path)
        except FileNotFoundError:  # somebody took it for one that was left over
            os.close(fd)
            if attempt == ATTEMPTS - 1:
                raise
        except OSError:
            os.close(fd)
            starting.unlink(missing_ok=True)
            raise
        else:
            return fd
    raise AssertionError("unreachable")
