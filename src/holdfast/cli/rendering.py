"""Passages in a terminal: a line that says who speaks, then what was said, set in.

All that was said stands further in than any heading, broken where the terminal would break it: no text can pretend to
be the next speaker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli import output
from holdfast.model.plain import one_line, plain
from holdfast.model.transcript import HEADINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.model.passages import Passage, Piece

INDENT = "      "
LINES = 20
"""So many lines of what a tool gave are shown, unless all are wanted."""

_COLOURS = {"user": "green", "agent": "blue", "tool": "magenta", "terminal": "magenta", "note": "yellow"}
_STEPS = {"completed": "☑", "in_progress": "▸", "cancelled": "☒"}


class Rendering:
    """How passages look: with which colours, how wide, how much of them."""

    def __init__(self, paint: Callable[..., str], width: int | None, *, full: bool) -> None:
        self._paint = paint
        self._room = width - len(INDENT) if width else None
        self._full = full

    def lines(self, number: int, passage: Passage) -> Iterator[str]:
        """Give the lines of a passage, an empty one first."""
        yield ""
        title = f": {one_line(passage.title)}" if passage.title else ""
        status = f" ({one_line(passage.status)})" if passage.status else ""
        heading = output.cut(f"{HEADINGS[passage.role]}{title}", self._room - len(status) if self._room else None)
        colour = _COLOURS.get(passage.role)
        yield f"{self._paint(f'{number:>4}', dim=True)}  {self._paint(heading, bold=True, fg=colour)}{status}"
        for piece in passage.pieces:
            for line in self._piece(passage, piece):
                yield f"{INDENT}{line}" if line else ""

    def _piece(self, passage: Passage, piece: Piece) -> Iterator[str]:
        match piece.kind:
            case "prose":
                for line in self._text(piece.text):
                    yield self._paint(line, dim=True) if passage.role == "thought" else line
            case "code":
                yield from self._shortened(list(self._text(piece.text)))
            case "diff":
                yield from self._shortened([self._diff(it) for it in self._text(piece.text)])
            case "step":
                yield from self._text(f"{_STEPS.get(piece.label, '☐')} {one_line(piece.text)}")
            case "link":
                yield from self._text(piece.text if piece.text == piece.label else f"{piece.text}: {piece.label}")
            case "image":
                yield self._paint(f"[image: {one_line(piece.text)}]", dim=True)
            case "remark":
                for line in self._text(piece.text):
                    yield self._paint(line, dim=True)

    def _text(self, text: str) -> Iterator[str]:
        for line in plain(text).rstrip().split("\n"):
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
