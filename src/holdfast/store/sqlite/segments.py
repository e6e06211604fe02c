"""Histories as segments: runs of stored lines, of a size that is quick to read and to send, shared between forks.

All functions here run inside a transaction of their caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.model import event_from, fold, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.model import Line
    from holdfast.store.sqlite.database import Database

_SAID = (b'{"sessionUpdate":"user_message"', b'{"sessionUpdate":"agent_message"')

SEGMENT_BYTES = 64 << 10
"""A segment grows to this size; a line that is longer has a segment of its own."""


def extend_history(db: Database, n: int, lines: Sequence[Line]) -> None:
    """Put lines behind a session's history, and what a search should find in each of them."""
    if not lines:
        return
    db.run("count_lines", n=n, lines=len(lines))
    last = db.row("last_segment", n=n)
    position = last[2] + 1 if last else 0
    room = SEGMENT_BYTES - last[3] if last and last[4] else 0
    for at, (start, end) in enumerate(_runs(lines, room)):
        run = lines[start:end]
        if not run:
            continue
        body = b"\n".join(line.body for line in run)
        if at == 0 and last and last[4]:  # what is shared with a fork is never changed
            segment, first_line = last[0], last[1]
            db.run("extend_segment", id=segment, body=b"\n" + body, lines=len(run))
        else:
            added = db.row("add_segment", lines=len(run), body=body)
            assert added
            segment, first_line = added[0], 0
            db.run("add_history", n=n, position=position, segment=segment)
            position += 1
        for at_line, line in enumerate(run, start=first_line):
            if line.text:
                add_words(db, line.text, segment=segment, line=at_line)


def _runs(lines: Sequence[Line], room: int) -> Iterator[tuple[int, int]]:
    """Cut lines into runs: the first fills the room that is left in the last segment, each of the others a segment."""
    start, size, limit = 0, 0, room
    for at, line in enumerate(lines):
        if size + len(line.body) + 1 > limit and (at > start or limit == room):
            yield start, at
            start, size, limit = at, 0, SEGMENT_BYTES
        size += len(line.body) + 1
    yield start, len(lines)


def read_some(db: Database, n: int, after: int, lines: int, size: int) -> tuple[int, int, list[bytes]]:
    """Read about `size` bytes of a history behind a position, and at most so many lines; say how far that went."""
    bodies: list[bytes] = []
    for position, count, body in db.rows("read_history", n=n, after=after):
        if lines <= 0:
            break
        bodies.append(body if count <= lines else b"\n".join(body.split(b"\n")[:lines]))
        after, lines, size = position, lines - count, size - len(body)
        if size <= 0:
            break
    return after, lines, bodies


def add_words(
    db: Database, text: str, *, segment: int | None = None, line: int | None = None, session: int | None = None
) -> int:
    """Let a search find a text."""
    doc = db.row("add_doc", segment=segment, line=line, session=session)
    assert doc
    db.run("add_words", id=doc[0], text=text)
    return doc[0]


def delete_words(db: Database, doc: int) -> None:
    """Let no search find a text any more."""
    db.run("delete_words", id=doc)
    db.run("delete_doc", id=doc)


def copy_history(db: Database, n: int, copy: int, up_to: str | None) -> bool:
    """Give a session the beginning of another's history. Say whether the entry to end with was found."""
    if up_to is None:
        db.run("copy_history", n=n, copy=copy, last=1 << 62)
        db.run("count_copied_lines", n=copy)
        return True
    end = _end_of(db, n, up_to)
    if end is None:
        return False
    position, lines = end
    db.run("copy_history", n=n, copy=copy, last=position - 1)
    db.run("count_copied_lines", n=copy)
    extend_history(db, copy, lines_of(fold(lines, complete=False)))
    return True


def _end_of(db: Database, n: int, key: str) -> tuple[int, list[bytes]] | None:
    """Find where an entry ends: the position of a segment, and the lines of it up to and with the entry's last."""
    needle = msgspec.json.encode(key)
    end = None
    for position, _, body in db.rows("read_history", n=n, after=-1):
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
    event = event_from(msgspec.json.decode(line), line)
    return event.key == key and event.rule.key in ("messageId", "toolCallId")


def count_messages(db: Database, n: int) -> int:
    """Count what was said in a history by the user and by the agent."""
    bodies = (body for _, _, body in db.rows("read_history", n=n, after=-1))
    return sum(line.startswith(_SAID) for body in bodies for line in body.split(b"\n"))


def delete_history(db: Database, n: int) -> None:
    """Take a session's history away, all of it that no fork shares."""
    # The words go in one statement: what writes between two of them makes the index sort itself out each time.
    db.run("delete_words_of", n=n)
    db.run("delete_docs_of", n=n)
    exclusive = [segment for (segment,) in db.rows("exclusive_segments", n=n)]
    db.run("delete_history", n=n)
    for segment in exclusive:
        db.run("delete_segment", id=segment)
