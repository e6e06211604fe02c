"""How many changes a database has acknowledged, in a small file beside it: so a loss shows that SQLite hides (P11).

Where a write-ahead log is damaged, SQLite takes what is before the damage and says nothing of the rest. The database is
whole then, and older than it was. Each commit counts itself in the database, and when it is durable also here. Where
the database has counted less than this file, changes are lost.

The file is never synced: it may be behind what is true, never ahead. Each number has a place of its own among the last
few, so that processes that commit at the same time do not overwrite a greater number with a smaller one.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.store.sqlite.files import PRIVATE_FILE

if TYPE_CHECKING:
    from pathlib import Path

PLACES = 64
_ENTRY = struct.Struct("<QQ")  # the number, and its complement: a torn or damaged entry is none
_ALL_ONES = (1 << 64) - 1


class CommitCount:
    """The file with the count. Where it cannot be written, nothing is noticed, and nothing else fails."""

    def __init__(self, path: Path) -> None:
        self._fd = -1
        with suppress(OSError):
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), PRIVATE_FILE)

    def read(self) -> int:
        """Return the greatest number of a change that was ever acknowledged; 0 if none is known."""
        if self._fd < 0:
            return 0
        try:
            os.lseek(self._fd, 0, os.SEEK_SET)
            entries = os.read(self._fd, PLACES * _ENTRY.size)
        except OSError:
            return 0
        whole = entries[: len(entries) // _ENTRY.size * _ENTRY.size]
        return max((number for number, check in _ENTRY.iter_unpack(whole) if number ^ check == _ALL_ONES), default=0)

    def note(self, number: int) -> None:
        """Note that a change was acknowledged."""
        if self._fd >= 0:
            with suppress(OSError):
                os.lseek(self._fd, number % PLACES * _ENTRY.size, os.SEEK_SET)
                os.write(self._fd, _ENTRY.pack(number, number ^ _ALL_ONES))

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
