"""Segments of a history made into the blocks of lines that `Store.read` promises: checked, cut, gaps noticed (P11)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import StoreDamaged
from holdfast.format.segments import damaged_line, is_whole, some_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FIRST_READ_BYTES = 32 << 10
"""How much of a history is read first: a little, so that something can be shown soon; then much at a time."""

KEPT_BYTES = 2 << 20
"""So much freed memory is worth keeping: what is read, and what is being sent."""


PART_BYTES = 896 << 10
"""How much of a history whoever reads it is given at a time."""


class Segment(msgspec.Struct, frozen=True):
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
        self.passed: int = start
        """Where the segment begins that was read last."""
        self._session = session
        self._marks = marks
        _keep_freed_memory()

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
            if self.passed < row.position < self.line:
                # The segment before says that it has more lines than it has; none of this one's may be lost by that.
                self.line = row.position
            if row.end <= self.line:
                continue
            self.passed = row.position
            if row.position > self.line and not self._pass_damaged(blocks, row.position):
                return blocks
            end = min(row.end, self.end)
            if row.is_whole():
                if end == self.end:  # nothing may be behind it, so it had better have as many lines as it says
                    end = min(row.position + row.body.count(b"\n") + 1, end)
                # Segments may have been made into one while the history was read, and it may have grown.
                is_all = row.position == self.line and row.end <= self.end
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


def parts(blocks: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Cut what was read into parts of about `PART_BYTES`."""
    part: list[bytes] = []
    size = 0
    for block in blocks:
        part.append(block)
        size += len(block)
        if size >= PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def damaged(session: str, first: int, end: int) -> StoreDamaged:
    """Make the error that says which lines of a history cannot be read, and what to do."""
    return StoreDamaged(
        f"Lines {first + 1} to {end} of session {session} are damaged in the store. The rest of it is whole: "
        "`holdfast sessions show` and `holdfast sessions export` give all that can be read"
    )


@cache
def _keep_freed_memory() -> None:
    """Let the C library keep what is freed for what is read next.

    glibc gives freed memory back to the system from 128 KiB on, until a larger piece was freed once: twice the size of
    that piece is kept from then on. Else each block would be read into new pages, which the system has to find and to
    clear first; that took a quarter of a long load. Elsewhere this does nothing: the piece is never touched.
    """
    bytes(KEPT_BYTES)
