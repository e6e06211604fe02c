"""Finds lines in files.

Owns which files are searched (text; binary files and links are skipped) and the limits: so many matches, so many bytes,
long lines shown in part. It matches one line at a time, as `grep` does.
"""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.errors import FileRefused, RootReplaced, UsageError
from holdfast.workspace.glob_pattern import GlobPattern
from holdfast.workspace.list_files import TreeScan, entry
from holdfast.workspace.read_files import HEAD_BYTES, open_regular
from holdfast.workspace.results import Match, Results

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterable, Iterator

    from holdfast.workspace.roots import RootedPath
    from holdfast.workspace.safe_open import SafeOpener

MAX_SEARCH_BYTES = 1 << 30
"""A search ends when it has read so much."""

MAX_LINE_BYTES = 1 << 20
"""A longer line is searched in pieces of this size."""

MAX_SHOWN = 500
"""How many characters of a longer line are shown."""

_BLOCK = 256 << 10


def search(
    opener: SafeOpener,
    text: str,
    path: RootedPath,
    *,
    glob: str,
    regex: bool,
    ignore_case: bool,
    limit: int,
    skip: Collection[str],
    stopped: threading.Event | None = None,
) -> Results[Match]:
    """Return the lines that hold a text, in one file or in the files beneath a directory that match a pattern."""
    needle = _needle(text, regex=regex, ignore_case=ignore_case)
    plain = None if regex or ignore_case else text
    scan = TreeScan(
        opener, path, GlobPattern.compile(glob if "/" in glob else f"**/{glob}"), skip, stopped, links=False
    )
    files: Iterable[RootedPath] = scan if entry(opener, path).kind == "directory" else (path,)
    read_limit = _ReadLimit(MAX_SEARCH_BYTES, stopped)
    found: list[Match] = []
    for file in files:
        try:
            with open_regular(opener, file) as fd:
                for number, line, at in _matches(_blocks(fd, read_limit), needle, plain):
                    if len(found) == limit:
                        return Results(tuple(found), truncated=True)
                    found.append(Match(file.original, number, _excerpt(line, at)))
        except (OSError, FileRefused) as e:
            if file is path or isinstance(e, RootReplaced):
                raise
            # One of many that we may not read, or that is gone by now, is skipped.
        if read_limit.reached:
            return Results(tuple(found), truncated=True)
    return Results(tuple(found), scan.truncated)


@dataclass(slots=True)
class _ReadLimit:
    """How much may still be read, and whether anybody still waits for it."""

    left: int
    stopped: threading.Event | None

    @property
    def reached(self) -> bool:
        return self.left < 0 or (self.stopped is not None and self.stopped.is_set())


def _needle(text: str, *, regex: bool, ignore_case: bool) -> re.Pattern[str]:
    if not text or "\n" in text:
        raise UsageError(f"{text!r} cannot be searched for: give some text without a line break")
    try:
        return re.compile(text if regex else re.escape(text), re.IGNORECASE if ignore_case else 0)
    except (re.error, RecursionError, OverflowError) as e:
        raise UsageError(f"{text!r} is not a regular expression: {e}") from e


def _matches(blocks: Iterable[str], needle: re.Pattern[str], plain: str | None) -> Iterator[tuple[int, str, int]]:
    """Yield number, text and column of the match of each line that has one."""
    number = 1
    for block in blocks:
        # Most blocks hold nothing, and for plain text that is found out quickly.
        if plain is None or plain in block:
            for offset, line in enumerate(block.removesuffix("\n").split("\n")):
                match = needle.search(line.removesuffix("\r"))
                if match:
                    yield number + offset, line.removesuffix("\r"), match.start()
        number += block.count("\n")


def _blocks(fd: int, read_limit: _ReadLimit) -> Iterator[str]:
    """Yield whole lines, many at a time. A binary file has none."""
    data = os.read(fd, _BLOCK)
    if b"\0" in data[:HEAD_BYTES]:
        return
    data = data.removeprefix(codecs.BOM_UTF8)
    while data and not read_limit.reached:
        more = os.read(fd, _BLOCK)
        read_limit.left -= len(data)
        end = data.rfind(b"\n") + 1 if more else len(data)
        if not end and len(data) >= MAX_LINE_BYTES:
            end = len(data)
        if end:
            yield data[:end].decode(errors="replace")
        data = data[end:] + more


def _excerpt(line: str, at: int) -> str:
    if len(line) <= MAX_SHOWN:
        return line
    start = max(0, min(at - MAX_SHOWN // 4, len(line) - MAX_SHOWN))
    return f"{'…' if start else ''}{line[start : start + MAX_SHOWN]}{'…' if start + MAX_SHOWN < len(line) else ''}"
