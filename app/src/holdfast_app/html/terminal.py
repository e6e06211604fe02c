"""What a terminal showed, with its colours as classes: `f` and `b` with the number of a colour, and a few letters.

The palette is that of all terminals, made a little lighter where it could not be read on the dark ground that
terminals have in both themes. Where a program asks for a text that cannot be read on its own ground, the ground wins.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from holdfast_app.html.escaping import Html, escaped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.view.terminal_colours import TextRun, TextStyle

_Colour: TypeAlias = tuple[int, int, int]

GROUND: _Colour = (24, 26, 33)
"""The ground of terminals."""
TEXT: _Colour = (220, 223, 228)
"""The colour of text in terminals that has no other."""
READABLE = 4.5
"""The contrast of text that everybody can read (WCAG, level AA)."""

_FIRST: tuple[_Colour, ...] = (
    (110, 118, 134), (240, 113, 120), (126, 211, 110), (229, 192, 98), (108, 168, 255), (210, 145, 240), (90, 205, 205),
    (205, 210, 218), (140, 148, 164), (255, 135, 140), (152, 230, 130), (245, 215, 120), (140, 190, 255),
    (228, 170, 250), (120, 228, 228), (255, 255, 255),
)  # fmt: skip
_LEVELS = (0, 95, 135, 175, 215, 255)
_LETTERS = (("bold", "tb"), ("dim", "td"), ("italic", "ti"), ("underlined", "tu"), ("struck", "ts"))


def draw_terminal(runs: Iterable[TextRun]) -> Html:
    """Return what a terminal showed."""
    return Html(f'<pre class="terminal" tabindex="0">{"".join(map(_run, runs))}</pre>\n')


def _run(run: TextRun) -> str:
    classes = _classes(run.style)
    return f'<span class="{classes}">{escaped(run.text)}</span>' if classes else escaped(run.text)


@cache
def _classes(style: TextStyle) -> str:
    front, back = style.foreground, style.background
    names: list[str] = []
    if style.swapped:
        front, back = back, 7 if front is None else front
    if back is not None:
        names.append(f"b{back}")
        if front is not None and contrast(shown(front), shown(back)) < READABLE:
            front = None
    if front is not None:
        names.append(f"f{front}")
    names += [letter for name, letter in _LETTERS if getattr(style, name)]
    return " ".join(names)


@cache
def shown(number: int) -> _Colour:
    """Return the colour that a number of the palette has in our terminals."""
    colour = _palette(number)
    while contrast(colour, GROUND) < READABLE:
        red, green, blue = (channel + (255 - channel) // 8 + 1 for channel in colour)
        colour = (red, green, blue)
    return colour


def _palette(number: int) -> _Colour:
    if number < 16:
        return _FIRST[number]
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return (grey, grey, grey)
    cube = number - 16
    return (_LEVELS[cube // 36], _LEVELS[cube // 6 % 6], _LEVELS[cube % 6])


def palette_rules() -> str:
    """Return the style rules of all colours."""
    rules: list[str] = []
    for number in range(256):
        text = "#fff" if contrast(shown(number), (255, 255, 255)) >= READABLE else "#000"
        rules.append(f".b{number}{{background:{_written(shown(number))};color:{text}}}")
    rules += [f".f{number}{{color:{_written(shown(number))}}}" for number in range(256)]
    return "\n".join(rules) + "\n"


def _written(colour: _Colour) -> str:
    return "#" + "".join(f"{channel:02x}" for channel in colour)


def contrast(one: _Colour, other: _Colour) -> float:
    """Return the contrast of two colours as WCAG defines it: from 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: _Colour) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (channel / 255 for channel in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
