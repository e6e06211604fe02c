"""Connections over HTTP that outlive their process: a small file for each, so that its id is known later (H4).

A file has what is needed to go on: whose connection it is, how it began, which sessions it has open, and which prompts
wait for their answers. It has no MCP servers, whose settings are secrets (P10): a session that has some is opened again
by its client. The name of a file is the hash of the id.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

KEPT_SECONDS = 600.0
"""A connection that nobody came back for is forgotten after so long: as long as events are kept."""


class KeptSession(msgspec.Struct, frozen=True):
    """A session that a connection has open."""

    cwd: str
    additional: tuple[str, ...] = ()


class KeptConnection(msgspec.Struct):
    """What is kept of a connection."""

    principal: str
    initialize: msgspec.Raw
    sessions: dict[str, KeptSession] = {}
    prompts: list[tuple[int | str, str]] = []
    """The ids of prompts that were not answered, and their sessions."""
    credential: str = ""
    """By which of the principal's credentials it was opened."""


class KeptConnections:
    """The connections that are kept in a directory; without one, none are."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._forget_old(directory)

    def save(self, connection_id: str, kept: KeptConnection) -> None:
        """Keep a connection as it is now."""
        if (path := self._path(connection_id)) is not None:
            beside = path.with_suffix(".new")
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(kept))
            beside.replace(path)

    def load(self, connection_id: str) -> KeptConnection | None:
        """Return a connection that was kept."""
        path = self._path(connection_id)
        if path is None:
            return None
        try:
            if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                return None
            return msgspec.json.decode(path.read_bytes(), type=KeptConnection)
        except (OSError, msgspec.DecodeError):
            return None

    def remove(self, connection_id: str) -> None:
        """Forget a connection."""
        if (path := self._path(connection_id)) is not None:
            path.unlink(missing_ok=True)

    def _path(self, connection_id: str) -> Path | None:
        if self._directory is None:
            return None
        return self._directory / f"{hashlib.sha256(connection_id.encode(errors='replace')).hexdigest()[:40]}.json"

    def _forget_old(self, directory: Path) -> None:
        for path in directory.iterdir():
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                    path.unlink()
