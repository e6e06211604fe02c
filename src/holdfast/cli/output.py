"""How things look to people, and to programs: columns, times, sizes, colours, JSON.

Everything that strangers said must have gone through `holdfast.view.safe_text` before it is put here.
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
    """Write a line for whoever reads."""
    sys.stdout.write(f"{text}\n")


def write(text: str) -> None:
    """Write a part of what is for whoever reads."""
    sys.stdout.write(text)


def tell(text: str) -> None:
    """Write a line about what is going on, beside what was asked for."""
    sys.stderr.write(f"{text}\n")


def json_text(value: Any) -> str:
    """Encode as JSON. What could steer a terminal is escaped: it may be one that reads it."""
    import msgspec  # noqa: PLC0415  (help needs none)

    from holdfast.view.safe_text import safe_json  # noqa: PLC0415

    return safe_json(msgspec.json.encode(value))


def is_coloured() -> bool:
    """Say whether there is somebody who sees colours: https://no-color.org."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def painter() -> Callable[..., str]:
    """Give what paints text, or leaves it as it is where colours are not wanted."""
    return click.style if is_coloured() else _unpainted


def _unpainted(text: str, **_: object) -> str:
    return text


def width() -> int | None:
    """Give how wide lines may be; None where nobody looks at them."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return max(shutil.get_terminal_size().columns, 20)
    return None


def cells(text: str) -> int:
    """Say how wide a text is in a terminal."""
    if text.isascii():
        return len(text)
    return sum(_cells(it) for it in text)


def _cells(it: str) -> int:
    if unicodedata.combining(it) or it in "\u200b\u200c\u200d\u2060\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(it) in "WF" else 1


def cut(text: str, room: int | None) -> str:
    """Cut a text to the room there is."""
    if room is None or cells(text) <= room:
        return text
    kept, used = "", 0
    for it in text:
        used += _cells(it)
        if used >= room:
            break
        kept += it
    return f"{kept.rstrip()}…"


def padded(text: str, room: int, *, right: bool = False) -> str:
    """Fill a text up to the room there is."""
    space = " " * max(0, room - cells(text))
    return space + text if right else text + space


def wrapped(text: str, room: int | None) -> list[str]:
    """Break a line where it would be too long, at a space if there is one."""
    if room is None or cells(text) <= room:
        return [text]
    lines: list[str] = []
    line, used, space = "", 0, 0
    for it in text.replace("\t", "    "):
        if used + _cells(it) > room:
            at = space if 0 < space < len(line) else len(line)
            lines.append(line[:at].rstrip())
            line = line[at:].lstrip() if at == space else line[at:]
            used, space = cells(line), 0
        line += it
        used += _cells(it)
        if it == " ":
            space = len(line)
    return [*lines, line]


def ago(microseconds: int, now: float | None = None) -> str:
    """Say when something was, as people do."""
    seconds = (time.time() if now is None else now) - microseconds / 1e6
    if seconds < 60:
        return "just now"
    for unit, size, until in (("min", 60, 3_600), ("h", 3_600, 86_400), ("days", 86_400, 14 * 86_400)):
        if seconds < until:
            count = int(seconds // size)
            return "1 day ago" if (unit, count) == ("days", 1) else f"{count} {unit} ago"
    return time.strftime("%Y-%m-%d", time.localtime(microseconds / 1e6))


def moment(microseconds: int) -> str:
    """Say when something was, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(microseconds / 1e6))


def size(count: int) -> str:
    """Say how much that is."""
    if count < 1_000:
        return f"{count} B"
    power = min(len(str(count)) // 3 if len(str(count)) % 3 else len(str(count)) // 3 - 1, 4)
    amount = count / 1_000**power
    return f"{amount:.{1 if amount < 100 else 0}f} {'kMGT'[power - 1]}B"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Say how many."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def columns(rows: Sequence[Sequence[str]], right: Sequence[bool] = ()) -> list[list[str]]:
    """Align the columns of a table; the last one is left as it is."""
    if not rows:
        return []
    room = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    last = len(room) - 1
    return [
        [it if at == last else padded(it, room[at], right=at < len(right) and right[at]) for at, it in enumerate(row)]
        for row in rows
    ]


@contextmanager
def working(what: str, total: int | None = None) -> Generator[Callable[[int], None]]:
    """Show that something goes on, and how far it is where that is known; only to somebody who looks."""
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
