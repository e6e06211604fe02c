"""Histories as segments: runs of stored lines, of a size that is quick to read and to send, shared between forks.

A segment's position in a history is the number of lines before it. What a turn adds is a segment; small ones at the
end, the *tail*, are made into one before they would be too large together, so each line is written at most twice. A
tail is never shared: what a fork shares is never changed.

All functions here run inside a transaction of their caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.format import event_in, fold, lines_of, messages_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.format import Line
    from holdfast.store.sqlite.database import Database

SEGMENT_BYTES = 64 << 10
"""A segment grows to this size; a line that is longer has a segment of its own."""


def extend_history(db: Database, n: int, lines: Sequence[Line]) -> None:
    """Put lines behind a session's history, and what a search should find in each of them."""
    if not lines:
        return
    position, tail, tail_bytes = db.only("get_end", n=n)
    for run in _runs(lines):
        body = b"\n".join(line.body for line in run)
        if tail_bytes + len(body) > SEGMENT_BYTES:
            _merge(db, n, tail)
            tail, tail_bytes = position, 0
        (segment,) = db.only("add_segment", lines=len(run), body=body)
        db.run("add_history", n=n, position=position, segment=segment)
        for at, line in enumerate(run):
            if line.text:
                add_words(db, line.text, segment=segment, line=at)
        position, tail_bytes = position + len(run), tail_bytes + len(body)
    db.run("set_end", n=n, lines=position, tail=tail, tail_bytes=tail_bytes)


def _runs(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Cut lines into runs that each fit into a segment."""
    start, size = 0, 0
    for at, line in enumerate(lines):
        if size + len(line.body) >= SEGMENT_BYTES and at > start:
            yield lines[start:at]
            start, size = at, 0
        size += len(line.body) + 1
    yield lines[start:]


def _merge(db: Database, n: int, tail: int) -> None:
    """Make one segment of a history's tail."""
    small = list(db.rows("read_history", n=n, line=tail))
    if len(small) < 2:
        return
    first, *others = (segment for _, segment, _, _ in small)
    db.run("move_docs", n=n, tail=tail, segment=first)
    db.run("delete_history_behind", n=n, tail=tail)
    for segment in others:
        db.run("delete_segment", id=segment)
    body = b"\n".join(body for _, _, _, body in small)
    db.run("set_segment", id=first, body=body, lines=sum(lines for _, _, lines, _ in small))


def read_some(db: Database, n: int, line: int, end: int, size: int) -> tuple[int, list[bytes]]:
    """Read about `size` bytes of a history from a line on, and no line behind `end`; say how far that went."""
    bodies: list[bytes] = []
    for position, _, count, body in db.rows("read_history", n=n, line=line):
        if position >= end:
            break
        if position + count <= line:
            continue
        # Segments may have been made into one while the history was read, and it may have grown.
        is_whole = position == line and position + count <= end
        bodies.append(body if is_whole else b"\n".join(body.split(b"\n")[line - position : end - position]))
        line, size = min(position + count, end), size - len(body)
        if size <= 0:
            break
    return line, bodies


def add_words(
    db: Database, text: str, *, segment: int | None = None, line: int | None = None, session: int | None = None
) -> int:
    """Let a search find a text."""
    (doc,) = db.only("add_doc", segment=segment, line=line, session=session)
    db.run("add_words", id=doc, text=text)
    return doc


def delete_words(db: Database, doc: int) -> None:
    """Let no search find a text any more."""
    db.run("delete_words", id=doc)
    db.run("delete_doc", id=doc)


def copy_history(db: Database, n: int, copy: int, up_to: str | None) -> bool:
    """Give a session the beginning of another's history. Say whether the entry to end with was found."""
    end = db.only("get_end", n=n)
    position, lines = end[0], list[bytes]()
    if up_to is not None:
        found = _end_of(db, n, up_to)
        if found is None:
            return False
        position, lines = found
    db.run("copy_history", n=n, copy=copy, end=position)
    db.run("set_end", n=copy, lines=position, tail=position, tail_bytes=0)
    db.run("set_end", n=n, lines=end[0], tail=end[0], tail_bytes=0)  # from now on its tail is shared
    extend_history(db, copy, lines_of(fold(lines, complete=False)))
    return True


def _end_of(db: Database, n: int, key: str) -> tuple[int, list[bytes]] | None:
    """Find where an entry ends: the position of a segment, and the lines of it up to and with the entry's last."""
    needle = msgspec.json.encode(key)
    end = None
    for position, _, _, body in db.rows("read_history", n=n, line=0):
        lines: list[bytes] = body.split(b"\n") if needle in body else []
        about = [needle in line and _is_about(line, key) for line in lines]
        at = 0 if end else about.index(True) if True in about else len(lines)
        last = at
        while last < len(lines) and about[last]:
            last += 1
        if last > at:
            end = position, lines[:last]
        if end and (last < len(lines) or last == at):
            break  # otherwise it may go on in the next segment
    return end


def _is_about(line: bytes, key: str) -> bool:
    event = event_in(line)
    return event.key == key and event.rule.key in ("messageId", "toolCallId")


def count_messages(db: Database, n: int) -> int:
    """Count what was said in a history by the user and by the agent."""
    return sum(messages_in(body) for _, _, _, body in db.rows("read_history", n=n, line=0))


def delete_history(db: Database, n: int) -> None:
    """Take a session's history away, all of it that no fork shares."""
    # The words go in one statement: what writes between two of them makes the index sort itself out each time.
    db.run("delete_words_of", n=n)
    db.run("delete_docs_of", n=n)
    exclusive = [segment for (segment,) in db.rows("exclusive_segments", n=n)]
    db.run("delete_history", n=n)
    for segment in exclusive:
        db.run("delete_segment", id=segment)
