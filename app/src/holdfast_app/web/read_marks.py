"""Which sessions a principal has seen as they are now: kept beside the store, so that every browser agrees.

What was there before the page was used for the first time counts as read.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.model import SessionInfo

MOST = 5_000
"""So many sessions are remembered; the older half is given up when there are more, and counts as read."""


class _Marks(msgspec.Struct):
    since: int
    """What was active last before this counts as read."""
    seen: dict[str, int] = {}
    """By session, the last activity that was seen."""


class ReadMarks:
    """The marks of all principals; each has a file in a directory, or none where there is no directory."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._marks: dict[str, _Marks] = {}

    def is_unread(self, principal: str, info: SessionInfo) -> bool:
        """Return whether something has happened in a session since the principal saw it."""
        marks = self._of(principal)
        return info.updated_at > marks.seen.get(info.id, marks.since)

    def mark(self, principal: str, info: SessionInfo) -> None:
        """Note that the principal sees a session now."""
        marks = self._of(principal)
        if info.updated_at <= marks.seen.get(info.id, marks.since):
            return
        marks.seen[info.id] = info.updated_at
        if len(marks.seen) > MOST:
            newest = sorted(marks.seen.items(), key=lambda mark: mark[1])[MOST // 2 :]
            marks.seen, marks.since = dict(newest), newest[0][1]
        self._write(principal, marks)

    def _of(self, principal: str) -> _Marks:
        if principal not in self._marks:
            self._marks[principal] = self._read(principal)
        return self._marks[principal]

    def _read(self, principal: str) -> _Marks:
        path = self._path(principal)
        if path is not None:
            try:
                return msgspec.json.decode(path.read_bytes(), type=_Marks)
            except (FileNotFoundError, msgspec.DecodeError):
                pass
        marks = _Marks(time.time_ns() // 1_000)
        self._write(principal, marks)
        return marks

    def _write(self, principal: str, marks: _Marks) -> None:
        path = self._path(principal)
        if path is None:
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}")
        beside.write_bytes(msgspec.json.encode(marks))
        beside.replace(path)

    def _path(self, principal: str) -> Path | None:
        name = hashlib.sha256(principal.encode()).hexdigest()[:32]
        return None if self._directory is None else self._directory / f"{name}.json"
