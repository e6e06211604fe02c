"""Segments of a history made into the blocks of lines that `Store.read` promises: checked, cut, gaps noticed (P11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import StoreDamaged
from holdfast.format.segments import damaged_line, is_whole, some_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

FIRST_READ_BYTES, READ_BYTES = 32 << 10, 768 << 10
"""How much of a history is read at a time: a little, so that something can be shown soon, then much."""


class Segment(NamedTuple):
    """A segment of a history: how many lines come before it, and what is in it."""

    position: int
    segment: int
    lines: int
    checksum: int | None
    body: bytes

    @property
    def end(self) -> int:
        """How many lines are before the one behind it."""
        return self.position + self.lines

    def is_whole(self) -> bool:
        """Return whether it is as it was written."""
        return is_whole(self.body, self.lines, self.checksum)


class BlockReader:
    """Where a reading of a history is; `marks` puts a line in the place of what is damaged."""

    def __init__(self, session: str, start: int, end: int, *, marks: bool) -> None:
        self.line: int = start
        """The next line to read…"""
        self.end = end
        """…and the one to end before."""
        self._session = session
        self._marks = marks

    @property
    def is_done(self) -> bool:
        """Whether all is read."""
        return self.line >= self.end

    def blocks(self, segments: Iterable[Segment], size: int) -> list[bytes]:
        """Return the next lines as blocks joined by newlines, about `size` bytes of them.

        `segments` begin with the one that has the next line. Nothing is returned where there are none. Raise
        `StoreDamaged` where the next lines are damaged, once those before them were read.
        """
        blocks: list[bytes] = []
        for row in segments:
            if row.position >= self.end:
                break
            if row.end <= self.line:
                continue
            if row.position > self.line and not self._pass_damaged(blocks, row.position):
                return blocks
            end = min(row.end, self.end)
            if row.is_whole():
                # Segments may have been made into one while the history was read, and it may have grown.
                is_all = row.position == self.line and row.end == end
                body = row.body if is_all else some_lines(row.body, self.line - row.position, end - row.position)
                blocks.append(body)
                self.line, size = end, size - len(row.body)
                if size <= 0:
                    break
            elif not self._pass_damaged(blocks, end):
                return blocks
        return blocks

    def missing(self) -> list[bytes]:
        """Return what stands for the rest of the lines, which are not there; raise `StoreDamaged` unless it marks."""
        blocks: list[bytes] = []
        self._pass_damaged(blocks, self.end)
        return blocks

    def _pass_damaged(self, blocks: list[bytes], end: int) -> bool:
        """Pass over lines that cannot be read; return whether to read on now."""
        end = min(end, self.end)
        if self._marks:
            blocks.append(damaged_line(self.line, end))
            self.line = end
            return True
        if not blocks:
            raise damaged(self._session, self.line, end)
        return False


def damaged(session: str, first: int, end: int) -> StoreDamaged:
    """Make the error that says which lines of a history cannot be read, and what to do."""
    return StoreDamaged(
        f"Lines {first + 1} to {end} of session {session} are damaged in the store. The rest of it is whole: "
        "`holdfast sessions show` and `holdfast sessions export` give all that can be read"
    )
