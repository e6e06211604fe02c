"""Chunks of bytes to lines, with a limit, in bounded memory (A4). Pure."""

from __future__ import annotations

from typing import NamedTuple, final

MAX_LINE_BYTES = 16 << 20
"""The longest line accepted unless told otherwise."""

HEAD_BYTES = 4_096
"""How much of a line that is too long is kept, so that its sender can be told which request it was."""


@final
class Oversized(NamedTuple):
    """Stands for a line that was longer than `limit`; the rest of it was skipped."""

    head: bytes
    limit: int


class LineSplitter:
    """Cuts a stream of bytes at its newlines, whatever the chunks it arrives in."""

    __slots__ = ("_head", "_held", "_limit", "_size")

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._held: list[bytes] = []  # the unfinished line, in pieces: joining it once keeps this linear
        self._size = 0
        self._head: bytes | None = None  # set while an oversized line is being skipped

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """Take a chunk; give the lines that are complete now."""
        pieces = chunk.split(b"\n")
        rest = pieces.pop()
        lines: list[bytes | Oversized] = []
        if pieces and (self._held or self._head is not None):
            self._hold(pieces.pop(0))
            lines.append(self._release())
        limit = self._limit
        if len(chunk) <= limit:
            lines += pieces
        else:
            lines += [line if len(line) <= limit else Oversized(line[:HEAD_BYTES], limit) for line in pieces]
        if rest:
            self._hold(rest)
        return lines

    def end(self) -> list[bytes | Oversized]:
        """Give what is left when the stream ends: a last line may lack its newline."""
        return [last] if (last := self._release()) else []

    def _hold(self, piece: bytes) -> None:
        if self._head is not None:
            return
        self._held.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            self._head = b"".join(self._held[:HEAD_BYTES])[:HEAD_BYTES]
            self._held.clear()
            self._size = 0

    def _release(self) -> bytes | Oversized:
        if self._head is not None:
            line = Oversized(self._head, self._limit)
            self._head = None
            return line
        joined = b"".join(self._held)
        self._held.clear()
        self._size = 0
        return joined
