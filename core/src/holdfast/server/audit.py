"""The audit log: who did what, and when; one JSON object a line, never what was said (H11).

It is written to its end only, and readable by the server's user alone. Move the file away to rotate it: the next line
goes to a new one.
"""

from __future__ import annotations

import logging
import os
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.errors import RequestError
from holdfast.model.events import is_object

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from holdfast.peer import Routes

log: logging.Logger = logging.getLogger(__name__)

REFUSALS = 60
"""So many refused requests are written a minute; of the others, how many there were."""

_LINK = re.compile(r"^(/*(?:share|link)/+).+", re.DOTALL)
"""The path of a link, which has a secret behind its first part."""

_LONGEST = 1_000
"""So much of a name, a path or a reason is written."""


class AuditLog:
    """A file in which it is noted who did what."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._descriptor = -1
        self._identity: tuple[int, int] | None = None
        self._minute = 0
        self._refused = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._open()

    def record(self, did: str, who: str | None, **what: Any) -> None:
        """Note what a principal did; `what` says which session, tool, file… and holds nothing of their content."""
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        from holdfast.diagnostics.masked_json import masked_json  # noqa: PLC0415  (only servers note anything)

        told = {name: _short(name, value) for name, value in what.items() if value is not None}
        self._write(f"{masked_json({'at': at, 'who': who, 'did': did, **told})}\n".encode())

    def refuse(self, reason: str, **what: Any) -> None:
        """Note a request that was let in nowhere. Strangers cannot fill the disk with it: only so many are written."""
        minute = int(self._clock() // 60)
        if minute != self._minute:
            if self._refused > REFUSALS:
                self.record("refused", None, more=self._refused - REFUSALS)
            self._minute, self._refused = minute, 0
        self._refused += 1
        if self._refused <= REFUSALS:
            self.record("refused", None, reason=reason, **what)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, line: bytes) -> None:
        try:
            if not self._is_in_place():
                self._open()
            os.write(self._descriptor, line)
        except OSError as e:
            log.critical("The audit log cannot be written: %s", e)

    def _is_in_place(self) -> bool:
        """Return whether the file that is open is still the one of that name: it is moved away to be rotated."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return False
        return self._descriptor >= 0 and (status.st_dev, status.st_ino) == self._identity

    def _open(self) -> None:
        self.close()
        self._descriptor = os.open(
            self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600
        )
        status = os.fstat(self._descriptor)
        self._identity = (status.st_dev, status.st_ino)


def _short(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name == "path":  # who holds a link may come with another method than the one that takes it
        value = _LINK.sub(r"\1…", value)
    return value[:_LONGEST]


class Recorder(Protocol):
    """Notes what the principal of a connection did."""

    def __call__(self, did: str, /, **what: Any) -> None: ...


_AUDITED = frozenset(
    {
        "_session/archive", "_session/rename", "_session/steering", "_session/unarchive", "auth/login", "auth/logout",
        "authenticate", "logout", "session/archive", "session/delete", "session/fork", "session/load", "session/new",
        "session/prompt", "session/resume", "session/set_config_option", "session/set_mode", "session/set_model",
        "session/set_title", "session/unarchive",
    }
)  # fmt: skip
"""Requests that are noted: what makes, reads, changes or removes a session, and what is prompted."""


def audited(routes: Routes, record: Recorder) -> None:
    """Let routes note what is asked: a prompt when it comes, everything else with how it ended."""
    for method in _AUDITED & routes.requests.keys():
        route = routes.requests[method]
        noting = _noting(method, route.handle, record)
        routes.requests[method] = msgspec.structs.replace(route, handle=noting, at_once=None)


def _noting(
    method: str, handle: Callable[[Any], Awaitable[object]], record: Recorder
) -> Callable[[Any], Awaitable[object]]:
    async def noted(params: Any) -> object:
        about = {"session": getattr(params, "session_id", None), "cwd": getattr(params, "cwd", None)}
        if method in ("session/prompt", "_session/steering"):
            record(method, **about)
            return await handle(params)
        try:
            answer = await handle(params)
        except RequestError as e:
            record(method, **about, error=e.code)
            raise
        made = answer.get("sessionId") if is_object(answer) else None
        record(method, **(about if made is None else {**about, "session": made, "of": about["session"]}))
        return answer

    return noted
