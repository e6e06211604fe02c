"""`WireRecord`: all that is said on several connections of one process, as JSON lines for programs.

::

    {"time": "2026-11-16T14:03:22.105Z", "from": "client", "to": "holdfast", "message": {"jsonrpc": "2.0", …}}

A frame that is no JSON is a text under "malformed". Keys are taken out as `wire_log` does it (P10); nothing is cut.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.diagnostics.masked_json import masked_json
from holdfast.diagnostics.masking import masked
from holdfast.diagnostics.wire_log import line_writer
from holdfast.view.safe_text import safe_json

if TYPE_CHECKING:
    from collections.abc import Callable


class WireRecord:
    """A file that several connections are recorded in, in the order in which things happen."""

    def __init__(self, file: str) -> None:
        """Open the file, or make one that nobody else may read; raise `UsageError` where that fails."""
        self._write: Callable[[str], None] = line_writer(file)

    def between(self, near: str, far: str) -> Callable[[Literal["in", "out"], bytes], None]:
        """Return an observer for a connection that `near`, this process, has with `far`."""

        def observe(direction: Literal["in", "out"], frame: bytes) -> None:
            sender, taker = (near, far) if direction == "out" else (far, near)
            self._note(sender, taker, frame)

        return observe

    def _note(self, sender: str, taker: str, frame: bytes) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = f'{{"time":"{now}","from":"{sender}","to":"{taker}",'
        try:
            message: Any = msgspec.json.decode(frame)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            malformed = safe_json(msgspec.json.encode(masked(frame.decode(errors="replace"))))
            self._write(f'{head}"malformed":{malformed}}}')
        else:
            self._write(f'{head}"message":{masked_json(message)}}}')
