"""What a wrapped agent's process writes to stderr, on its way to ours: editors show it, or keep it in their logs.

It is somebody else's text: without keys (P10), and with nothing in it that steers the terminal it may end in.
"""

from __future__ import annotations

import asyncio
import sys

from holdfast.view.safe_text import terminal_text

PARTIAL_SECONDS = 0.3
"""A line without an end is written after so long: it may be a question."""

LINE_BYTES = 64 << 10
"""A longer line is written in pieces."""


class AgentStderr:
    """Writes what comes in pieces, line by line."""

    def __init__(self) -> None:
        self._partial = b""
        self._timer: asyncio.TimerHandle | None = None

    def take(self, chunk: bytes) -> None:
        """Take a piece of what a process writes."""
        lines, newline, self._partial = (self._partial + chunk).rpartition(b"\n")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if newline:
            _write(lines, end="\n")
        if len(self._partial) > LINE_BYTES:
            self.flush()
        elif self._partial:
            self._timer = asyncio.get_running_loop().call_later(PARTIAL_SECONDS, self.flush)

    def flush(self) -> None:
        """Write the line that has no end yet."""
        partial, self._partial = self._partial, b""
        if partial:
            _write(partial)


def _write(output: bytes, end: str = "") -> None:
    from holdfast.diagnostics.masking import loggable  # noqa: PLC0415  (most agents write nothing)

    try:
        sys.stderr.buffer.write(f"{loggable(terminal_text(output))}{end}".encode())
        sys.stderr.buffer.flush()
    except (OSError, ValueError, AttributeError):  # nobody reads it, or there is none
        return
