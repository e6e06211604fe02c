"""Segments: runs of stored lines of a size that is quick to read and to send, each with a checksum.

A segment's position in a history is the number of lines before it. This module knows how lines are cut into segments
and how an entry is found in them; it does not know where they are stored.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import TYPE_CHECKING, cast

import msgspec

from holdfast.format.lines import event_in, stored, updates_in
from holdfast.model.kinds import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from holdfast.format.lines import Line

SEGMENT_BYTES = 64 << 10
"""A segment grows to this size; a line that is longer has a segment of its own."""

LARGE_BYTES = SEGMENT_BYTES // 2
"""Histories with segments of this size are so long that it matters how fast they are checked."""

_decode_all = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Cut(msgspec.Struct, frozen=True):
    """Where a history is cut: at a segment's position, behind so many lines of that segment."""

    position: int
    lines: list[bytes]

    @property
    def end(self) -> int:
        """How many lines are before the cut."""
        return self.position + len(self.lines)


def runs(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Cut lines into runs that each fit into a segment."""
    start, size = 0, 0
    for at, line in enumerate(lines):
        if size + len(line.body) >= SEGMENT_BYTES and at > start:
            yield lines[start:at]
            start, size = at, 0
        size += len(line.body) + 1
    yield lines[start:]


def checksum(body: bytes) -> int:
    """Return the checksum of a segment."""
    return zlib.crc32(body)


def is_whole(body: bytes, lines: int, expected: int | None) -> bool:
    """Return whether a segment is as it was written.

    One that was written before there were checksums has none `expected`; its lines are counted and must be JSON.
    """
    if expected is not None:
        crc32 = zlib.crc32 if len(body) < LARGE_BYTES else fast_crc32()
        return crc32(body) == expected
    try:
        body.decode()
        return len(_decode_all(b"[%s]" % updates_in(body).replace(b"\n", b","))) == lines
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


@cache
def fast_crc32() -> Callable[[bytes], int]:
    """Return a CRC-32 that takes a tenth of the time of what most systems have as zlib, where it is installed.

    It is loaded when it is needed: most agents never load a long history.
    """
    try:
        from zlib_ng import zlib_ng  # noqa: PLC0415
    except ImportError:
        return zlib.crc32
    return cast("Callable[[bytes], int]", zlib_ng.crc32)


def some_lines(body: bytes, first: int, end: int) -> bytes:
    """Return the lines of a segment from one to before another."""
    return b"\n".join(body.split(b"\n")[first:end])


def damaged_line(first: int, end: int) -> bytes:
    """Return a line that stands for lines that cannot be read: from `first` to before `end`, counted from 0."""
    return stored({"sessionUpdate": DAMAGED, "lines": end - first, "firstLine": first})


def end_of_entry(segments: Iterable[tuple[int, bytes]], key: str) -> Cut | None:
    """Find where the message or tool call of that key ends; `segments` are positions and bodies, in order."""
    needle = msgspec.json.encode(key)
    cut: Cut | None = None
    for position, body in segments:
        lines = body.split(b"\n") if needle in body else []
        is_part = [needle in line and _is_about(line, key) for line in lines]
        first = 0 if cut else is_part.index(True) if True in is_part else len(lines)
        end = first
        while end < len(lines) and is_part[end]:
            end += 1
        if end > first:
            cut = Cut(position, lines[:end])
        if cut and (end < len(lines) or end == first):
            break  # otherwise it may go on in the next segment
    return cut


def _is_about(line: bytes, key: str) -> bool:
    event = event_in(line)
    return event.key == key and event.rule.key in ("messageId", "toolCallId")
