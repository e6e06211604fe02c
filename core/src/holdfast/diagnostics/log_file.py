"""The log file beside a store: what went wrong in any process that works on it, to be found again by its reference.

It is never larger than `MAX_BYTES`, and one older file as large stays beside it. Nobody but the user may read it.
Several processes write to it at once, so it is opened for each entry, and locked while the entry is written.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from holdfast.diagnostics.entries import LogEntry

MAX_BYTES = 1 << 20

FLOOD, FLOOD_SECONDS = 100, 10.0
"""No more than so many entries are written in so many seconds; those with a reference always are (P7)."""


class LogFile(logging.Handler):
    """Writes what is a warning or worse to a file.

    `locate` returns the file, or None where there is none; it is called when there is something to write for the first
    time. `agent` is what its entries say the agent is.
    """

    def __init__(self, locate: Callable[[], Path | None], agent: str = "") -> None:
        super().__init__(logging.WARNING)
        self._locate = functools.cache(locate)
        self._agent = agent
        self._since = 0.0
        self._written = 0
        self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record. A disk that is full, or a file that cannot be written, must not end anything else."""
        from holdfast.diagnostics.entries import encode_entry, entry_from  # noqa: PLC0415  (most log nothing)

        if not self._may_write(record):
            self._left_out += 1
            return
        try:
            if (path := self._locate()) is None:
                return
            line = encode_entry(entry_from(record, self._agent))
            if self._left_out:
                line = self._note_of_flood(record) + line
            with suppress(OSError):
                _append(path, line)
        except Exception:  # noqa: BLE001  (as every handler of `logging` does)
            self.handleError(record)

    def _may_write(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._since > FLOOD_SECONDS:
            self._since, self._written = now, 0
        self._written += 1
        return self._written <= FLOOD or hasattr(record, "reference")

    def _note_of_flood(self, record: logging.LogRecord) -> bytes:
        from holdfast.diagnostics.entries import encode_entry, entry_from  # noqa: PLC0415

        said = f"{self._left_out} more entries came at once and were left out"
        self._left_out = 0
        left_out = logging.LogRecord(record.name, logging.WARNING, "", 0, said, None, None)
        return encode_entry(entry_from(left_out, self._agent))


def older(path: Path) -> Path:
    """Return where the older part of a log file lies."""
    return path.with_name(f"{path.name}.1")


def read_log(path: Path) -> Iterator[LogEntry]:
    """Yield the entries of a log file, the oldest first. Lines that are none are left out."""
    from holdfast.diagnostics.entries import decode_entry  # noqa: PLC0415

    for part in (older(path), path):
        with suppress(FileNotFoundError), part.open("rb") as lines:
            for line in lines:
                if (entry := decode_entry(line)) is not None:
                    yield entry


def _append(path: Path, line: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = _open_locked(path)
    try:
        if (size := os.fstat(fd).st_size) and size + len(line) > MAX_BYTES:
            path.replace(older(path))
            os.close(fd)
            fd = _open_locked(path)
        os.write(fd, line)
    finally:
        os.close(fd)


def _open_locked(path: Path) -> int:
    """Open the file that has this name now, made private, and wait until nobody else writes to it."""
    while True:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            _lock(fd)
            with suppress(FileNotFoundError):  # another process may have put it aside meanwhile
                if os.path.samestat(os.fstat(fd), path.stat()):
                    return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _lock(fd: int) -> None:
    if sys.platform != "win32":  # there two processes may mix up a line
        import fcntl  # noqa: PLC0415  (there is none on Windows)

        fcntl.flock(fd, fcntl.LOCK_EX)
