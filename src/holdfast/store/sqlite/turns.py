"""The events of running turns, in append-only files beside the database, one a turn.

A file costs a tenth of what a commit costs, and survives the death of the process just as well. When the turn ends its
entries go into the database and the file is removed; a file that is left over tells what a broken turn had said.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import StoreError, StoreFull
from holdfast.store.sqlite.files import explained, make_directory, sync_directory

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.store.port import Claim

_UNWRITABLE = "The log of the running turn cannot be written"


class TurnFile:
    """The log of one turn."""

    __slots__ = ("_failed", "_fd", "_path", "_size", "_torn", "synced")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = 0
        self._torn = False  # whether a part of a line may stand behind the end
        self._failed: StoreError | None = None
        self.synced = 0
        """How much of the file would survive the death of the machine."""

    def append(self, lines: bytes) -> None:
        """Keep encoded events. After an error the file is as it was before."""
        try:
            if self._torn:
                self._mend()
            written = os.write(self._fd, lines)
        except OSError as e:
            raise explained(e, _UNWRITABLE) from e
        if written < len(lines):  # a full disk takes a part
            self._torn = True
            with suppress(OSError):
                self._mend()
            raise StoreFull("There is no space left for the sessions. Free some and try again")
        self._size += written

    def _mend(self) -> None:
        os.ftruncate(self._fd, self._size)
        self._torn = False

    async def sync(self) -> None:
        """Make what was appended survive the death of the machine."""
        if self._failed is not None:  # what the system could not write once it does not try again
            raise self._failed
        size = self._size
        try:
            await asyncio.get_running_loop().run_in_executor(None, _sync, self._fd, self._path)
        except OSError as e:
            self._failed = explained(e, _UNWRITABLE)
            raise self._failed from e
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


class TurnLogs:
    """The logs of the turns of one store. Those that run in this process are open, each for the claim it is under."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._open: dict[Claim, TurnFile | NoFile] = {}

    def __contains__(self, claim: Claim) -> bool:
        return claim in self._open

    def begin(self, claim: Claim, n: int, turn: int) -> TurnFile | NoFile:
        """Begin the log of a turn."""
        log = self._open[claim] = NoFile() if self._directory is None else self._file(self._directory, n, turn)
        return log

    def _file(self, directory: Path, n: int, turn: int) -> TurnFile:
        path = directory / f"{n}-{turn}.jsonl"
        try:
            try:
                return TurnFile(path)
            except FileNotFoundError:
                make_directory(directory)
            except FileExistsError:  # of a turn that was never acknowledged
                path.unlink()
            return TurnFile(path)
        except OSError as e:
            raise explained(e, _UNWRITABLE) from e

    def close(self, claim: Claim) -> None:
        """Let go of the log under a claim; what is in it stays."""
        if (log := self._open.pop(claim, None)) is not None:
            log.close()

    def close_all(self) -> None:
        """Let go of all logs."""
        for claim in list(self._open):
            self.close(claim)

    def read(self, n: int, turn: int) -> list[bytes]:
        """Read what a broken turn had said."""
        return [] if self._directory is None else read_log(self._directory / f"{n}-{turn}.jsonl")

    def forget(self, n: int, turn: int) -> None:
        """Remove the log of a turn that is over. One that cannot be removed harms nobody."""
        if self._directory is not None:
            with suppress(OSError):
                (self._directory / f"{n}-{turn}.jsonl").unlink(missing_ok=True)


def read_log(path: Path) -> list[bytes]:
    """Read what a broken turn had said: all lines up to the first that is damaged (P3)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as e:
        raise explained(e, "The log of a turn that broke cannot be read") from e
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
    sync_directory(path.parent)
