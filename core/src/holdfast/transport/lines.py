"""Chunks of bytes to lines, with a limit, in bounded memory (A4). Pure."""

from __future__ import annotations

from typing import NamedTuple, Self, final

MAX_LINE_BYTES = 16 << 20
"""The longest line accepted unless told otherwise."""

EDGE_BYTES = 4_096
"""How much of either end of a line that is too long is kept, so that its sender can be told which request it was."""

SMALL_PIECE_BYTES = 512
"""Shorter pieces are joined as they come: held apart, each would cost many times its bytes."""


@final
class Oversized(NamedTuple):
    """Stands for a line that was longer than `limit`; what was between its ends was skipped."""

    head: bytes
    tail: bytes
    limit: int
    size: int
    """How long it was."""

    @classmethod
    def of(cls, line: bytes, limit: int) -> Self:
        """Keep only the ends of a line."""
        edge = min(EDGE_BYTES, limit)
        return cls(line[:edge], line[-edge:], limit, len(line))


class LineSplitter:
    """Cuts a stream of bytes at its newlines, whatever the chunks it arrives in."""

    __slots__ = ("_held", "_limit", "_size", "_skipping")

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._held: list[bytes] = []  # the unfinished line, in pieces: joining it once keeps this linear
        self._size = 0
        self._skipping: Oversized | None = None  # what is known of an unfinished line that is too long already

    @property
    def held(self) -> int:
        """How many bytes of an unfinished line it holds."""
        return self._size

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """Take a chunk; return the lines that are complete now."""
        pieces = chunk.split(b"\n")
        rest = pieces.pop()
        lines: list[bytes | Oversized] = []
        if pieces and (self._held or self._skipping):
            self._hold(pieces.pop(0))
            lines.append(self._release())
        limit = self._limit
        if len(chunk) <= limit:
            lines += pieces
        else:
            lines += [line if len(line) <= limit else Oversized.of(line, limit) for line in pieces]
        if rest:
            self._hold(rest)
        return lines

    def end(self) -> list[bytes | Oversized]:
        """Return what is left when the stream ends: a last line may lack its newline."""
        return [last] if (last := self._release()) else []

    def _hold(self, piece: bytes) -> None:
        if self._skipping is not None:
            recent = Oversized.of(self._skipping.tail + piece, self._limit)
            size = self._skipping.size + len(piece)
            self._skipping = self._skipping._replace(tail=recent.tail, size=size)
            return
        if self._held and len(self._held[-1]) < SMALL_PIECE_BYTES:
            self._held[-1] += piece
        else:
            self._held.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            self._skipping = Oversized.of(self._join(), self._limit)

    def _release(self) -> bytes | Oversized:
        if (line := self._skipping) is not None:
            self._skipping = None
            return line
        return self._join()

    def _join(self) -> bytes:
        joined = b"".join(self._held)
        self._held.clear()
        self._size = 0
        return joined
