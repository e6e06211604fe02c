"""Cuts streamed Markdown into parts that later text cannot change, so that each is painted once.

Which parts there are depends on the text alone, never on how it arrived. A part is a paragraph, a heading, a table, a
quote, one item of a list with all that is inside it, or some lines of a block of code. What is too long to wait for is
cut between two lines, or in a line between two words: time and memory stay proportional to the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.view.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE_LINES = 100
"""How many lines of code are highlighted at once."""
PART_LINES = 200
PART_CHARS = 16_000
"""A part that gets longer than this is cut and shown before its end has come."""

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)$")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_INTERRUPTING = re.compile(r" {0,3}(?:[-*+]|1[.)])[ \t]+\S")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")


@dataclass(frozen=True, slots=True)
class MarkdownPart:
    """A part of a message. With `gap`, an empty line is to stand before it."""

    text: str
    gap: bool = False
    language: str | None = None
    """The language of a block of code, empty where none is named; None where the part is Markdown."""
    opens: bool = True
    closes: bool = True
    """Whether the block of code begins and ends here: a long one comes in several parts."""


class MarkdownStream:
    """One message, fed piece by piece."""

    __slots__ = (
        "_chars",
        "_fence",
        "_gap",
        "_in_list",
        "_indent",
        "_inner",
        "_kind",
        "_language",
        "_lines",
        "_opened",
        "_partial",
    )

    def __init__(self) -> None:
        self._partial: list[str] = []  # of the last line, which has no end yet
        self._lines: list[str] = []
        self._chars = 0
        self._gap = False  # whether an empty line stands before the next part
        self._kind = ""  # what the last part was, if there was any
        self._fence = ""  # what closes the block of code
        self._language = ""
        self._opened = False  # whether the beginning of the block of code was given
        self._in_list = False
        self._indent = 0  # where the text of an item of a list begins
        self._inner = ""  # what closes a block of code inside an item of a list

    def feed(self, text: str) -> Iterator[MarkdownPart]:
        """Take text; yield the parts that it has finished."""
        *ends, rest = text.split("\n")
        for end in ends:
            self._partial.append(end)
            yield from self._overlong()
            yield from self._raw_line("".join(self._partial))
            self._partial.clear()
        if rest:
            self._partial.append(rest)
            if len(self._partial) % 64 == 0:  # what it joins every time has grown: time stays proportional
                self._partial[:] = ["".join(self._partial)]
            yield from self._overlong()

    def finish(self) -> Iterator[MarkdownPart]:
        """Yield what is left: the message has ended."""
        if self._partial:
            yield from self._raw_line("".join(self._partial))
            self._partial.clear()
        if self._fence:
            yield self._code(closes=True)
        elif self._lines:
            yield self._text()
        self._in_list, self._inner = False, ""

    def rest(self, limit: int) -> MarkdownPart | None:
        """Return about the last `limit` characters of what is not finished; None where there is nothing to show."""
        taken: list[str] = []
        room = limit
        for line in (safe_text("".join(self._partial)[-limit:]), *reversed(self._lines)):
            if room <= 0:
                break
            taken.append(line[-room:])
            room -= len(line) + 1
        text = "\n".join(reversed(taken)).rstrip("\n")
        if self._fence:
            whole = room > 0 and not self._opened
            return MarkdownPart(text, self._gap and not self._opened, self._language, opens=whole, closes=False)
        return MarkdownPart(text, self._gap) if text.strip() else None

    def _raw_line(self, raw: str) -> Iterator[MarkdownPart]:
        """Take a line. A carriage return ends one too, so that it cannot hide what stands before it."""
        for line in raw.rstrip("\r").split("\r"):
            yield from self._line(safe_text(line))

    def _line(self, line: str) -> Iterator[MarkdownPart]:
        if self._fence:
            if _closes(line, self._fence):
                yield self._code(closes=True)
            else:
                self._add(line)
                if len(self._lines) >= CODE_LINES or self._chars >= PART_CHARS:
                    yield self._code(closes=False)
        elif self._in_list:
            yield from self._line_of_list(line)
        else:
            yield from self._line_of_text(line)

    def _line_of_text(self, line: str) -> Iterator[MarkdownPart]:
        if not line.strip():
            yield from self._flush()
            self._gap = bool(self._kind)
        elif opened := _FENCE.match(line):
            yield from self._flush()
            self._fence, self._language, self._opened = opened[1], _word(opened[2]), False
            self._gap = bool(self._kind)
        elif self._begins_list(line):
            yield from self._flush()
            self._in_list = True
            self._begin_item(line)
        elif _HEADING.match(line):
            yield from self._flush()
            self._add(line)
            self._gap = bool(self._kind)
            yield self._text()
            self._gap = True
        else:
            self._add(line)
            yield from self._limited()

    def _line_of_list(self, line: str) -> Iterator[MarkdownPart]:
        ended = bool(self._lines) and not self._lines[-1].strip()
        if self._inner:
            if _closes(line.lstrip(), self._inner):
                self._inner = ""
        elif self._is_next_item(line):
            yield from self._flush()
            self._gap = self._gap or ended
            self._begin_item(line)
            return
        elif (
            line.strip() and not line.startswith((" ", "\t")) and (ended or _FENCE.match(line) or _HEADING.match(line))
        ):
            yield from self._flush()
            self._gap, self._in_list = True, False
            yield from self._line_of_text(line)
            return
        elif opened := _FENCE.match(line.lstrip()):
            self._inner = opened[1]
        self._add(line)
        yield from self._limited()

    def _begins_list(self, line: str) -> bool:
        if _RULE.match(line):
            return False
        return bool(_INTERRUPTING.match(line) if self._lines else _ITEM.match(line))

    def _is_next_item(self, line: str) -> bool:
        indent = len(line) - len(line.lstrip(" "))
        return indent < self._indent and bool(_ITEM.match(line)) and not _RULE.match(line)

    def _begin_item(self, line: str) -> None:
        item = _ITEM.match(line)
        self._indent = item.end() if item else 0
        opened = _FENCE.match(line[self._indent :])
        self._inner = opened[1] if opened else ""
        self._add(line)

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._chars += len(line) + 1

    def _limited(self) -> Iterator[MarkdownPart]:
        if len(self._lines) >= PART_LINES or self._chars >= PART_CHARS:
            yield from self._flush()

    def _overlong(self) -> Iterator[MarkdownPart]:
        """Cut a line that does not end."""
        if sum(map(len, self._partial)) < PART_CHARS:
            return
        line = "".join(self._partial)
        while len(line) >= PART_CHARS:
            at = line.rfind(" ", PART_CHARS // 2, PART_CHARS) + 1 or PART_CHARS
            yield from self._raw_line(line[:at])
            if not self._fence:
                yield from self._flush()
            line = line[at:]
        self._partial[:] = [line] if line else []

    def _flush(self) -> Iterator[MarkdownPart]:
        if self._lines:
            yield self._text()

    def _text(self) -> MarkdownPart:
        kind = "list" if self._in_list else "text"
        gap = bool(self._kind) and (self._gap or self._kind != kind)
        part = MarkdownPart("\n".join(self._lines).rstrip(), gap)
        self._taken(kind)
        return part

    def _code(self, *, closes: bool) -> MarkdownPart:
        part = MarkdownPart("\n".join(self._lines), self._gap, self._language, opens=not self._opened, closes=closes)
        self._taken("code")
        self._opened = True
        if closes:
            self._fence = ""
            self._gap = True
        return part

    def _taken(self, kind: str) -> None:
        self._lines.clear()
        self._chars = 0
        self._kind = kind
        self._gap = False


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and set(stripped) == {fence[0]} and not line.startswith("    ")


def _word(info: str) -> str:
    """Return the name of the language from what stands behind a fence."""
    return (info.split() or [""])[0].strip("{}.")[:30]
