"""A transcript in a terminal: for each entry a heading that names the speaker, and below it the text, indented.

All text is indented further than any heading and broken where the terminal would break it, so that no text can pretend
to be the next speaker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.view.safe_text import safe_line, safe_text
from holdfast.view.transcript import HEADINGS
from holdfast_app.cli import output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.view.entries import EntryView, Part

INDENT = "      "
LINES = 20
"""So many lines of a tool's output are shown, unless all are wanted."""

_COLOURS = {"user": "green", "agent": "blue", "tool": "magenta", "terminal": "magenta", "note": "yellow"}
_STEPS = {"completed": "☑", "in_progress": "▸", "cancelled": "☒"}


class TranscriptRenderer:
    """Turns entries into lines, with or without colours, of a width, whole or shortened."""

    def __init__(self, paint: Callable[..., str], width: int | None, *, full: bool) -> None:
        self._paint = paint
        self._room = width - len(INDENT) if width else None
        self._full = full

    def lines(self, number: int, view: EntryView) -> Iterator[str]:
        """Yield the lines of an entry, an empty one first."""
        yield ""
        title = f": {safe_line(view.title)}" if view.title else ""
        status = f" ({safe_line(view.status)})" if view.status else ""
        heading = output.cut(f"{HEADINGS[view.role]}{title}", self._room - len(status) if self._room else None)
        colour = _COLOURS.get(view.role)
        yield f"{self._paint(f'{number:>4}', dim=True)}  {self._paint(heading, bold=True, fg=colour)}{status}"
        for part in view.parts:
            for line in self._piece(view, part):
                yield f"{INDENT}{line}" if line else ""

    def _piece(self, view: EntryView, part: Part) -> Iterator[str]:
        match part.kind:
            case "prose":
                for line in self._text(part.text):
                    yield self._paint(line, dim=True) if view.role == "thought" else line
            case "code":
                yield from self._shortened(list(self._text(part.text)))
            case "diff":
                yield from self._shortened([self._diff(line) for line in self._text(part.text)])
            case "step":
                yield from self._text(f"{_STEPS.get(part.label, '☐')} {safe_line(part.text)}")
            case "link":
                yield from self._text(part.text if part.text == part.label else f"{part.text}: {part.label}")
            case "image":
                yield self._paint(f"[image: {safe_line(part.text)}]", dim=True)
            case "remark":
                for line in self._text(part.text):
                    yield self._paint(line, dim=True)

    def _text(self, text: str) -> Iterator[str]:
        for line in safe_text(text).rstrip().split("\n"):
            yield from output.wrapped(line, self._room)

    def _shortened(self, lines: list[str]) -> Iterator[str]:
        if self._full or len(lines) <= LINES:
            yield from lines
            return
        yield from lines[:LINES]
        yield self._paint(f"… {output.plural(len(lines) - LINES, 'more line')}; --full shows all", dim=True)

    def _diff(self, line: str) -> str:
        if line.startswith("+"):
            return self._paint(line, fg="green")
        return self._paint(line, fg="red") if line.startswith("-") else line
