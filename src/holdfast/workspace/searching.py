"""Finding lines in files.

Owns what a search looks at (text; binary files and links are passed over) and how far it goes: so many matches, so many
bytes, lines shown in part when they are long. It looks at one line at a time, as `grep` does.
"""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.errors import FileRefused, UsageError
from holdfast.workspace.listing import Sweep, entry
from holdfast.workspace.patterns import Pattern
from holdfast.workspace.reading import HEAD_BYTES, open_regular
from holdfast.workspace.results import Match, Results

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterable, Iterator

    from holdfast.workspace.opening import Opener
    from holdfast.workspace.roots import Place

MAX_SEARCH_BYTES = 1 << 30
"""A search that has read as much is over."""

MAX_LINE_BYTES = 1 << 20
"""A longer line is looked at in pieces of this size."""

MAX_SHOWN = 500
"""Of a longer line that many characters are shown."""

_BLOCK = 256 << 10


def search(
    opener: Opener,
    text: str,
    place: Place,
    *,
    glob: str,
    regex: bool,
    ignore_case: bool,
    limit: int,
    skip: Collection[str],
    stopped: threading.Event | None = None,
) -> Results[Match]:
    """Find the lines that hold a text, in one file or in the files beneath a directory that a pattern fits."""
    needle = _needle(text, regex=regex, ignore_case=ignore_case)
    plain = None if regex or ignore_case else text
    sweep = Sweep(opener, place, Pattern.compile(glob if "/" in glob else f"**/{glob}"), skip, stopped, links=False)
    files: Iterable[Place] = sweep if entry(opener, place).kind == "directory" else (place,)
    allowance = _Allowance(MAX_SEARCH_BYTES, stopped)
    found: list[Match] = []
    for file in files:
        try:
            with open_regular(opener, file) as fd:
                for number, line, at in _matches(_blocks(fd, allowance), needle, plain):
                    if len(found) == limit:
                        return Results(tuple(found), truncated=True)
                    found.append(Match(file.asked, number, _shown(line, at)))
        except (OSError, FileRefused):
            if file is place:
                raise
            # One of many that is closed to us or gone by now is passed over.
        if allowance.used_up:
            return Results(tuple(found), truncated=True)
    return Results(tuple(found), sweep.truncated)


@dataclass(slots=True)
class _Allowance:
    """How much may still be read."""

    left: int
    stopped: threading.Event | None

    @property
    def used_up(self) -> bool:
        return self.left < 0 or (self.stopped is not None and self.stopped.is_set())


def _needle(text: str, *, regex: bool, ignore_case: bool) -> re.Pattern[str]:
    if not text or "\n" in text:
        raise UsageError(f"{text!r} cannot be searched for: give some text without a line break")
    try:
        return re.compile(text if regex else re.escape(text), re.IGNORECASE if ignore_case else 0)
    except (re.error, RecursionError, OverflowError) as e:
        raise UsageError(f"{text!r} is not a regular expression: {e}") from e


def _matches(blocks: Iterable[str], needle: re.Pattern[str], plain: str | None) -> Iterator[tuple[int, str, int]]:
    """Give number, text and column of the match of each line that has one."""
    number = 1
    for block in blocks:
        # Most blocks hold nothing: one look tells, where what is looked for can be told by a look.
        if plain is None or plain in block:
            for offset, line in enumerate(block.removesuffix("\n").split("\n")):
                match = needle.search(line.removesuffix("\r"))
                if match:
                    yield number + offset, line.removesuffix("\r"), match.start()
        number += block.count("\n")


def _blocks(fd: int, allowance: _Allowance) -> Iterator[str]:
    """Read whole lines, many at a time. A binary file has none."""
    data = os.read(fd, _BLOCK)
    if b"\0" in data[:HEAD_BYTES]:
        return
    data = data.removeprefix(codecs.BOM_UTF8)
    while data and not allowance.used_up:
        more = os.read(fd, _BLOCK)
        allowance.left -= len(data)
        end = data.rfind(b"\n") + 1 if more else len(data)
        if not end and len(data) >= MAX_LINE_BYTES:
            end = len(data)
        if end:
            yield data[:end].decode(errors="replace")
        data = data[end:] + more


def _shown(line: str, at: int) -> str:
    if len(line) <= MAX_SHOWN:
        return line
    start = max(0, min(at - MAX_SHOWN // 4, len(line) - MAX_SHOWN))
    return f"{'…' if start else ''}{line[start : start + MAX_SHOWN]}{'…' if start + MAX_SHOWN < len(line) else ''}"
