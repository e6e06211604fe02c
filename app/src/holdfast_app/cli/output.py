"""What the command line prints: columns, times, sizes, colours, JSON.

The text of strangers must have gone through `holdfast.view.safe_text` before it is printed here.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence


def say(text: str = "") -> None:
    """Print a line of the result to stdout."""
    sys.stdout.write(f"{text}\n")


def write(text: str) -> None:
    """Print a part of the result to stdout."""
    sys.stdout.write(text)


def tell(text: str) -> None:
    """Print a line about what is going on to stderr."""
    sys.stderr.write(f"{text}\n")


def json_text(value: Any) -> str:
    """Return a value as JSON, with everything escaped that could steer a terminal."""
    import msgspec  # noqa: PLC0415  (help needs none)

    from holdfast.view.safe_text import safe_json  # noqa: PLC0415

    return safe_json(msgspec.json.encode(value))


def is_coloured() -> bool:
    """Return whether colours are wanted: https://no-color.org."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def painter() -> Callable[..., str]:
    """Return a function that colours text, or leaves it as it is where colours are not wanted."""
    return click.style if is_coloured() else _unpainted


def _unpainted(text: str, **_: object) -> str:
    return text


def width() -> int | None:
    """Return how wide lines may be; None where the output is no terminal."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return max(shutil.get_terminal_size().columns, 20)
    return None


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200b\u200c\u200d\u2060\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, room: int | None) -> str:
    """Return a text cut to a width."""
    if room is None or cells(text) <= room:
        return text
    kept, used = "", 0
    for character in text:
        used += _cells(character)
        if used >= room:
            break
        kept += character
    return f"{kept.rstrip()}…"


def padded(text: str, room: int, *, right: bool = False) -> str:
    """Return a text filled up to a width."""
    space = " " * max(0, room - cells(text))
    return space + text if right else text + space


def wrapped(text: str, room: int | None) -> list[str]:
    """Return a line broken where it would be too long, at a space if there is one."""
    if room is None or cells(text) <= room:
        return [text]
    lines: list[str] = []
    line, used, space = "", 0, 0
    for character in text.replace("\t", "    "):
        while line and used + _cells(character) > room:
            at = space if 0 < space < len(line) else len(line)
            lines.append(line[:at].rstrip())
            line = line[at:].lstrip() if at == space else line[at:]
            used, space = cells(line), 0
        line += character
        used += _cells(character)
        if character == " ":
            space = len(line)
    return [*lines, line]


def ago(microseconds: int, now: float | None = None) -> str:
    """Return how long ago a moment was."""
    seconds = (time.time() if now is None else now) - microseconds / 1e6
    if seconds < 60:
        return "just now"
    for unit, size, until in (("min", 60, 3_600), ("h", 3_600, 86_400), ("days", 86_400, 14 * 86_400)):
        if seconds < until:
            count = int(seconds // size)
            return "1 day ago" if (unit, count) == ("days", 1) else f"{count} {unit} ago"
    return time.strftime("%Y-%m-%d", time.localtime(microseconds / 1e6))


def moment(microseconds: int) -> str:
    """Return a moment to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(microseconds / 1e6))


def size(count: int) -> str:
    """Return a number of bytes as people write it."""
    if count < 1_000:
        return f"{count} B"
    power = min(len(str(count)) // 3 if len(str(count)) % 3 else len(str(count)) // 3 - 1, 4)
    amount = count / 1_000**power
    return f"{amount:.{1 if amount < 100 else 0}f} {'kMGT'[power - 1]}B"


def money(amount: float, currency: str) -> str:
    """Return an amount as people write it."""
    digits = 2 if amount >= 1 or amount == 0 else 4
    return f"${amount:,.{digits}f}" if currency == "USD" else f"{amount:,.{digits}f} {currency}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a count and the word for what was counted."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def columns(rows: Sequence[Sequence[str]], right: Sequence[bool] = ()) -> list[list[str]]:
    """Return the rows of a table with aligned columns; the last column is left as it is."""
    if not rows:
        return []
    room = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    last = len(room) - 1
    return [
        [
            cell if at == last else padded(cell, room[at], right=at < len(right) and right[at])
            for at, cell in enumerate(row)
        ]
        for row in rows
    ]


@contextmanager
def working(what: str, total: int | None = None) -> Generator[Callable[[int], None]]:
    """Show progress on stderr while the block runs, if that is a terminal; yields a function that adds to it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  (takes a while to load)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    known = (BarColumn(), MofNCompleteColumn()) if total is not None else ()
    looks = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *known, TimeElapsedColumn())
    with Progress(*looks, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, advance=done)
