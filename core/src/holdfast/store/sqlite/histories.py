"""Histories in the database: segments, shared between forks, each with a checksum that is checked when it is read.

What a turn adds is a segment; small ones at the end, the *tail*, are made into one before they would be too large
together, so each line is written at most twice. A tail is never shared: what a fork shares is never changed.

All functions that write run inside a transaction of their caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import InvalidParams
from holdfast.format import messages_in, with_texts
from holdfast.format.segments import (
    SEGMENT_BYTES,
    Cut,
    checksum,
    end_of_entry,
    is_whole,
    runs,
)
from holdfast.store.history_blocks import FIRST_READ_BYTES, BlockReader, Segment, damaged
from holdfast.store.sqlite.rows import find_session
from holdfast.store.sqlite.search_index import index_new_texts, segments_deleted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.format import Line
    from holdfast.store.sqlite.database import Database


READ_BYTES = 1792 << 10
"""How much is read at a time. Each reading goes from one thread to another: 0.1 ms of processor time on two cores."""


class HistoryEnd(NamedTuple):
    """Where a history ends: how many lines it has, how many are before its tail, and how large that is."""

    lines: int
    tail: int
    tail_bytes: int


EMPTY = HistoryEnd(0, 0, 0)


def get_end(db: Database, n: int) -> HistoryEnd:
    """Return where the history of a session ends."""
    end = db.first(HistoryEnd, "get_end", n=n)
    return EMPTY if end is None else end


def extend_history(db: Database, n: int, end: HistoryEnd, lines: Sequence[Line]) -> HistoryEnd:
    """Put lines behind a session's history; return where it ends now, for the caller to store.

    What a search should find in them is not indexed yet; see `search_index.index_new_texts`.
    """
    if not lines:
        return end
    position, tail, tail_bytes = end
    for run in runs(lines):
        body = b"\n".join([line.body for line in run])
        if tail_bytes + len(body) > SEGMENT_BYTES:
            _merge_tail(db, n, tail)
            tail, tail_bytes = position, 0
        body_sum = checksum(body)
        segment = db.insert("add_segment", lines=len(run), checksum=body_sum, body=body)
        db.run("add_to_history", n=n, position=position, segment=segment)
        db.new_texts[segment, body_sum] = [(at, line.text) for at, line in enumerate(run) if line.text]
        position, tail_bytes = position + len(run), tail_bytes + len(body)
    return HistoryEnd(position, tail, tail_bytes)


def _merge_tail(db: Database, n: int, tail: int) -> None:
    """Make one segment of a history's tail. One that is damaged stays as it is: a new checksum would hide that."""
    small = list(_segments(db, n, tail))
    if len(small) < 2 or not all(segment.is_whole() for segment in small):
        return
    index_new_texts(db)  # while it is known which segments are new
    first, *others = small
    db.run("move_docs", n=n, tail=tail, segment=first.segment)
    db.run("cut_history", n=n, tail=tail)
    for segment in others:
        db.run("delete_segment", id=segment.segment)
    segments_deleted(db)
    body = b"\n".join([segment.body for segment in small])
    lines = sum(segment.lines for segment in small)
    db.run("set_segment", id=first.segment, body=body, checksum=checksum(body), lines=lines)


def copy_history(
    db: Database, session: str, source: HistoryEnd, n: int, copy: int, up_to: str | None
) -> tuple[HistoryEnd, int]:
    """Copy a history to a new session: all of it, or up to and with an entry.

    `source` is where the history of session number `n` ends. Return where that of the copy ends, and how many lines of
    the source are in it. Raise `InvalidParams` where the entry is not there.
    """
    cut: Cut | None = Cut(source.lines, [])
    if up_to is not None:
        cut = end_of_entry(((row.position, row.body) for row in _whole_segments(db, session, n)), up_to)
    if cut is None:
        raise InvalidParams(f"The session has no message or tool call {up_to!r}")
    db.run("copy_history", n=n, copy=copy, end=cut.position)
    if source.tail_bytes:
        db.run("set_end", n=n, **HistoryEnd(source.lines, source.lines, 0)._asdict())  # from now on its tail is shared
    end = extend_history(db, copy, HistoryEnd(cut.position, cut.position, 0), with_texts(cut.lines))
    return end, cut.end


def share_beginning(db: Database, n: int, copy: int, lines: int) -> HistoryEnd:
    """Let a new session begin with the segments that are wholly in the first lines of another; return its end."""
    source = get_end(db, n)
    if source.tail_bytes:
        db.run("set_end", n=n, **HistoryEnd(source.lines, source.lines, 0)._asdict())  # from now on its tail is shared
    end = max((row.end for row in _segments(db, n, 0) if row.end <= lines), default=0)
    db.run("copy_history", n=n, copy=copy, end=end)
    return HistoryEnd(end, end, 0)


def count_messages(db: Database, n: int) -> int:
    """Count what was said in a history by the user and by the agent."""
    return sum(messages_in(row.body) for row in _segments(db, n, 0))


def delete_history(db: Database, n: int) -> None:
    """Take a session's history away, all of it that no fork shares."""
    # The words go in one statement: what writes between two of them makes the index sort itself out each time.
    db.run("delete_words_of", n=n)
    db.run("delete_docs_of", n=n)
    exclusive = [segment for (segment,) in db.rows("exclusive_segments", n=n)]
    db.run("delete_history", n=n)
    for segment in exclusive:
        db.run("delete_segment", id=segment)
    segments_deleted(db)


class HistoryReader:
    """A history that is being read, a few segments at a time; `marks` puts a line in the place of what is damaged."""

    def __init__(self, session: str, start: int, end: int, *, marks: bool) -> None:
        self._session = session
        self._marks = marks
        self._reader = BlockReader(session, start, end, marks=marks)
        self._n: int | None = None
        self._size = FIRST_READ_BYTES

    @property
    def is_done(self) -> bool:
        """Whether all is read; known once something was."""
        return self._reader.is_done

    def next_blocks(self, db: Database) -> list[bytes]:
        """Read on; return blocks of lines joined by newlines, none where all is read.

        Raise `StoreDamaged` where the next lines are damaged, once those before them were read.
        """
        if self._n is None:
            self._n = self._begin(db)
        if self._reader.is_done:
            return []
        rows = _segments(db, self._n, self._reader.line, self._reader.passed)
        blocks = self._reader.blocks(rows, self._size)
        if not blocks:
            find_session(db, self._session)  # it may have been deleted meanwhile
            blocks = self._reader.missing()
        self._size = READ_BYTES
        return blocks

    def _begin(self, db: Database) -> int:
        """Find the session and where its history ends; return the session's number."""
        n = find_session(db, self._session).n
        lines, end = next(db.rows("get_history_end", n=n), (0, 0))
        if lines is None or end > lines <= self._reader.end:
            # There is more than there should be. What is there can be shown; nobody may take less for all of it (P11).
            if not self._marks:
                raise damaged(self._session, lines or 0, end)
            self._reader.end = end
        else:
            self._reader.end = min(self._reader.end, lines)
        return n


def find_damaged(db: Database) -> Iterator[tuple[str, int, int]]:
    """Find the segments that are damaged: a session that has it, its first line, and the one behind its last."""
    for segment, lines, body, expected in db.rows("every_segment"):
        if not is_whole(body or b"", lines, expected):
            for session, position in db.rows("place_of_segment", segment=segment):
                yield session, position, position + (lines or 0)


def _segments(db: Database, n: int, line: int, passed: int | None = None) -> Iterator[Segment]:
    """Read the segments of a history from the one with that line on; `passed` is where the one before begins."""
    rows = db.rows("read_history", n=n, line=line, passed=line if passed is None else passed)
    return (
        Segment(position, segment, lines or 0, expected, body or b"")
        for position, segment, lines, body, expected in rows
    )


def _whole_segments(db: Database, session: str, n: int) -> Iterator[Segment]:
    """Read the segments of a history; raise `StoreDamaged` at the first that is damaged."""
    for row in _segments(db, n, 0):
        if not row.is_whole():
            raise damaged(session, row.position, row.end)
        yield row
