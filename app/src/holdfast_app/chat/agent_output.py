"""What the agent's process writes to stderr, as blocks to show: its log, its warnings, what its author prints.

An agent of ours is started with `--log-format json`, so that what it logs can be told from what its code prints. Any
other agent only prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.diagnostics.entries import decode_entry
from holdfast.diagnostics.tracebacks import author_part
from holdfast.view.blocks import Note

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.diagnostics.entries import LogEntry
    from holdfast.view.blocks import Block, Tone

MAX_LINE = 64 << 10
"""A longer line is shown in pieces."""

_TONES: dict[str, Tone] = {"warning": "warning", "error": "error", "critical": "error"}


class AgentOutput:
    """Takes what is written, as it comes, and gives blocks to `show`, line by line.

    Failures that a client is told of wait while a turn runs: their last line, the cause, comes after what it is told.
    """

    def __init__(self, show: Callable[[Block], None]) -> None:
        self._show = show
        self._partial = b""
        self._waiting: list[Block] | None = None

    def hold_failures(self) -> None:
        """Hold back failures until they are released."""
        self._waiting = []

    def release_failures(self) -> None:
        """Show the failures that were held back, and hold back none from now on."""
        waiting, self._waiting = self._waiting or [], None
        for block in waiting:
            self._show(block)

    def take(self, written: bytes) -> None:
        """Take a piece of what the process writes; a line that is not finished waits for its rest."""
        *lines, self._partial = (self._partial + written).split(b"\n")
        if len(self._partial) > MAX_LINE:
            lines.append(self._partial)
            self._partial = b""
        for line in lines:
            self._take_line(line)

    def finish(self) -> None:
        """Show what has no line end: the process is gone."""
        if self._partial:
            self._take_line(self._partial)
        self._partial = b""

    def _take_line(self, line: bytes) -> None:
        if (entry := decode_entry(line)) is not None:
            if entry.reference and self._waiting is not None:
                self._waiting.append(log_note(entry))
            else:
                self._show(log_note(entry))
        elif text := line.decode(errors="replace").rstrip("\r"):
            self._show(Note(text, tone="output"))


def log_note(entry: LogEntry) -> Note:
    """Return what was logged as a note; its details are the traceback, as far as it is the author's code."""
    message, _, more = entry.message.partition("\n")
    details = "\n".join(filter(None, (more, author_part(entry.traceback))))
    return Note(message, details, _TONES.get(entry.level, "output"))
