"""Whether the terminal is light or dark, so that what is written on it can be read.

The terminal is asked for the colour of its background (OSC 11), with a question behind it that every terminal answers,
so that one which knows no colours is not waited for. Where it does not say, `COLORFGBG` may; otherwise it is dark.
"""

from __future__ import annotations

import os
import re
import select
import sys
import time
from typing import Literal, TypeAlias

Theme: TypeAlias = Literal["dark", "light"]

PATIENCE = 0.3
"""A terminal has so many seconds to answer; one at the other end of a slow line is taken for a dark one."""

_QUESTION = b"\x1b]11;?\x1b\\\x1b[c"
_COLOUR = re.compile(rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_END = re.compile(rb"\x1b\[\?[0-9;]*c")


def choose_theme(wanted: str | None, stdin: int, stdout: int) -> Theme:
    """Return the theme: what the user wants (``auto`` by default), else as the terminal is."""
    wanted = wanted or os.environ.get("HOLDFAST_THEME") or "auto"
    if wanted in ("dark", "light"):
        return "light" if wanted == "light" else "dark"
    return theme_of_answer(_ask(stdin, stdout)) or theme_of_environment(os.environ.get("COLORFGBG", "")) or "dark"


def theme_of_answer(answer: bytes) -> Theme | None:
    """Return the theme that a terminal's answer means; None where it says none."""
    if (found := _COLOUR.search(answer)) is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
    return "light" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "dark"


def theme_of_environment(colours: str) -> Theme | None:
    """Return the theme that `COLORFGBG` means, as `15;0` or `0;default;15`; None where it says none."""
    background = colours.rpartition(";")[2]
    if not background.isdecimal():
        return None
    return "light" if int(background) in (7, *range(9, 16)) else "dark"


def _ask(stdin: int, stdout: int) -> bytes:
    """Ask a terminal for its background; return what it answers. What was typed meanwhile is lost."""
    if sys.platform == "win32" or not (os.isatty(stdin) and os.isatty(stdout)):
        return b""
    import termios  # noqa: PLC0415  (not on Windows)
    import tty  # noqa: PLC0415

    try:
        before = termios.tcgetattr(stdin)
    except termios.error:
        return b""
    try:
        tty.setcbreak(stdin, termios.TCSANOW)
        os.write(stdout, _QUESTION)
        return _read_answer(stdin)
    except OSError:
        return b""
    finally:
        termios.tcsetattr(stdin, termios.TCSANOW, before)


def _read_answer(stdin: int) -> bytes:
    answer, end = b"", time.monotonic() + PATIENCE
    while not _END.search(answer) and (left := end - time.monotonic()) > 0:
        if not select.select([stdin], [], [], left)[0] or not (piece := os.read(stdin, 1024)):
            break
        answer += piece
    return answer
