"""The events of running turns, in append-only files beside the database, one a turn.

A file costs a tenth of what a commit costs, and survives the death of the process just as well. When the turn ends its
entries go into the database and the file is removed; a file that is left over tells what a broken turn had said.
"""

from __future__ import annotations

import asyncio
import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import StoreError, StoreFull

if TYPE_CHECKING:
    from pathlib import Path


class TurnFile:
    """The log of one turn."""

    __slots__ = ("_fd", "_path", "_size", "synced")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = 0
        self.synced = 0
        """How much of the file would survive the death of the machine."""

    def append(self, lines: bytes) -> None:
        """Keep encoded events. After an error the file is as it was before."""
        try:
            written = os.write(self._fd, lines)
        except OSError as e:
            raise _explain(e) from e
        if written < len(lines):  # a full disk takes a part
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise StoreFull("There is no space left for the sessions. Free some and try again")
        self._size += written

    async def sync(self) -> None:
        """Make what was appended survive the death of the machine."""
        size = self._size
        try:
            await asyncio.get_running_loop().run_in_executor(None, _sync, self._fd, self._path)
        except OSError as e:
            raise _explain(e) from e
        self.synced = size

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class NoFile:
    """The log of a turn of a store that is in memory: nothing of it outlives the process anyway."""

    __slots__ = ()

    def append(self, lines: bytes) -> None: ...

    async def sync(self) -> None: ...

    def close(self) -> None: ...


def read_log(path: Path) -> list[bytes]:
    """Read what a broken turn had said: all lines up to the first that is damaged (P3)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    lines: list[bytes] = []
    for line in data.split(b"\n")[:-1]:
        try:
            if not isinstance(msgspec.json.decode(line), dict):
                break
        except (msgspec.DecodeError, UnicodeDecodeError):
            break
        lines.append(line)
    return lines


def _sync(fd: int, path: Path) -> None:
    os.fsync(fd)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _explain(e: OSError) -> StoreError:
    if e.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull("There is no space left for the sessions. Free some and try again")
    return StoreError(f"The log of the running turn cannot be written ({e.strerror})")
