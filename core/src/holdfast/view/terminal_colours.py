"""What a terminal showed, with its colours: runs of text that look the same.

The text is that of `terminal_text`: what was overwritten or erased is gone, and it is safe to show. Colours are numbers
of the palette of 256 that terminals share; one of 24 bits becomes the nearest of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from holdfast.view.safe_text import ESCAPES, safe_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_COLOURED = 256 << 10
"""Of longer outputs the colours are not looked at."""


class TextStyle(NamedTuple):
    """How a run of text looks. A colour is a number from 0 to 255, None is that of the terminal."""

    foreground: int | None = None
    background: int | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underlined: bool = False
    struck: bool = False
    swapped: bool = False
    """Whether foreground and background are swapped."""


class TextRun(NamedTuple):
    """Text in one style."""

    text: str
    style: TextStyle


PLAIN = TextStyle()

_SGR = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]*)m")
_LEVELS = (0, 95, 135, 175, 215, 255)
_ON: dict[int, dict[str, bool]] = {
    1: {"bold": True}, 2: {"dim": True}, 3: {"italic": True}, 4: {"underlined": True}, 7: {"swapped": True},
    9: {"struck": True}, 22: {"bold": False, "dim": False}, 23: {"italic": False}, 24: {"underlined": False},
    27: {"swapped": False}, 29: {"struck": False},
}  # fmt: skip


def terminal_runs(output: bytes) -> tuple[TextRun, ...]:
    """Return what a terminal showed in the end as runs; nothing where it has no colours, or is very long."""
    if len(output) > MAX_COLOURED or (b"\x1b[" not in output and b"\xc2\x9b" not in output):
        return ()
    pieces = list(_pieces(output.decode(errors="replace")))
    if all(style == PLAIN for _, style in pieces):
        return ()
    if any("\r" in text or "\x08" in text for text, _ in pieces):
        pieces = _without_overwritten(pieces)
    return tuple(TextRun(safe_text(text), style) for text, style in _joined(pieces))


def _pieces(text: str) -> Iterator[tuple[str, TextStyle]]:
    style, done = PLAIN, 0
    for found in ESCAPES.finditer(text):
        if found.start() > done:
            yield text[done : found.start()], style
        done = found.end()
        if (codes := _SGR.fullmatch(found[0])) is not None:
            style = _styled(style, codes[1])
    if done < len(text):
        yield text[done:], style


def _styled(style: TextStyle, codes: str) -> TextStyle:
    """Return a style after the numbers of one escape sequence; numbers that mean nothing to us are left out."""
    numbers = [int(code[:4] or 0) for code in codes.replace(":", ";").split(";")]
    at = 0
    while at < len(numbers):
        number = numbers[at]
        at += 1
        if number == 0:
            style = PLAIN
        elif number in _ON:
            style = style._replace(**_ON[number])
        elif number in (38, 48):
            colour, used = _extended(numbers[at:])
            at += used
            style = style._replace(**{"foreground" if number == 38 else "background": colour})
        elif 30 <= number <= 37 or 90 <= number <= 97:
            style = style._replace(foreground=number - 30 if number < 40 else number - 82)
        elif 40 <= number <= 47 or 100 <= number <= 107:
            style = style._replace(background=number - 40 if number < 50 else number - 92)
        elif number == 39:
            style = style._replace(foreground=None)
        elif number == 49:
            style = style._replace(background=None)
    return style


def _extended(numbers: list[int]) -> tuple[int | None, int]:
    """Return the colour that stands behind 38 or 48, and how many numbers it took."""
    match numbers:
        case [5, number, *_]:
            return min(number, 255), 2
        case [2, red, green, blue, *_]:
            return _nearest(red, green, blue), 4
        case _:
            return None, len(numbers)


def _nearest(*channels: int) -> int:
    """Return the number of the nearest colour in the cube of 216, or in the ramp of greys."""
    channels = tuple(min(channel, 255) for channel in channels)
    if max(channels) - min(channels) < 8 and 3 < channels[0] < 247:
        return 232 + min(max((channels[0] - 3) // 10, 0), 23)
    red, green, blue = (min(range(6), key=lambda at: abs(_LEVELS[at] - channel)) for channel in channels)
    return 16 + 36 * red + 6 * green + blue


def _without_overwritten(pieces: Iterable[tuple[str, TextStyle]]) -> list[tuple[str, TextStyle]]:
    """Remove what a return to the start of the line has overwritten, then what backspaces have erased."""
    kept: list[tuple[str, TextStyle]] = []
    line: list[tuple[str, TextStyle]] = []
    for text, style in pieces:
        for character in text:
            line.append((character, style))
            if character == "\n":
                kept += _end_of_line(line[:-1])
                kept.append(line[-1])
                line = []
    return list(_without_erased((*kept, *_end_of_line(line))))


def _end_of_line(line: list[tuple[str, TextStyle]]) -> list[tuple[str, TextStyle]]:
    while line and line[-1][0] == "\r":
        line = line[:-1]
    start = next((at + 1 for at in range(len(line) - 1, -1, -1) if line[at][0] == "\r"), 0)
    return line[start:]


def _without_erased(characters: Iterable[tuple[str, TextStyle]]) -> list[tuple[str, TextStyle]]:
    kept: list[tuple[str, TextStyle]] = []
    for character in characters:
        if character[0] != "\x08":
            kept.append(character)
        elif kept and kept[-1][0] != "\n":
            kept.pop()
    return kept


def _joined(pieces: Iterable[tuple[str, TextStyle]]) -> Iterator[tuple[str, TextStyle]]:
    """Yield neighbouring pieces of one style as one."""
    texts: list[str] = []
    current = PLAIN
    for text, style in pieces:
        if style != current:
            if texts:
                yield "".join(texts), current
            texts, current = [], style
        texts.append(text)
    if texts:
        yield "".join(texts), current
