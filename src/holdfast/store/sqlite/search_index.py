"""The index of words: texts put in and taken out, and the whole of it made anew from what is stored.

All functions run inside a transaction of their caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.format import event_in, searchable
from holdfast.store.sqlite.rows import read_body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.store.sqlite.database import Database


def add_text(
    db: Database, text: str, *, segment: int | None = None, line: int | None = None, session: int | None = None
) -> int:
    """Add a text to the index, that of a line of a segment or the title of a session; return its number."""
    doc = db.value("add_doc", segment=segment, line=line, session=session)
    db.run("add_words", id=doc, text=text)
    return doc


def delete_text(db: Database, doc: int) -> None:
    """Remove a text from the index."""
    db.run("delete_words", id=doc)
    db.run("delete_doc", id=doc)


def rebuild(db: Database) -> int:
    """Forget all words and read all texts again; return how many there were."""
    db.run("delete_all_words")
    db.run("delete_lost_docs")
    count = 0
    for segment, line, text in _texts(db):
        known = dict(db.rows("docs_of_segment", segment=segment))
        if line in known:  # later docs are newer: whatever has its place there keeps it
            db.run("add_words", id=known[line], text=text)
        else:
            add_text(db, text, segment=segment, line=line)
        count += 1
    new: list[tuple[int, str]] = []
    for n, title, doc in db.rows("every_title"):
        count += 1
        if doc is not None and list(db.rows("has_doc", id=doc, session=n)):
            db.run("add_words", id=doc, text=title)
        else:
            new.append((n, title))
    for n, title in new:
        db.run("set_title", n=n, title=title, doc=add_text(db, title, session=n))
    db.run("delete_docs_without_words")
    return count


def _texts(db: Database) -> Iterator[tuple[int, int, str]]:
    """Find every text that a search should find in histories: its segment, its line there, and the text."""
    done: set[int] = set()
    entry: list[bytes] = []  # its lines so far: it may be stored on several, and they may be in several segments
    place, identity = (0, 0), ("", "")
    session = None
    for n, segment in db.rows("every_history"):
        if n != session and entry:
            yield from _text(place, entry)
            entry, identity = [], ("", "")
        session = n
        body = read_body(db, segment)  # of one that is damaged nothing is found
        for at, line in enumerate(body.split(b"\n") if body else ()):
            event = event_in(line)
            if entry and event.key and (event.rule.entity, event.key) == identity:
                entry.append(line)
                continue
            yield from _text(place, entry)
            entry = [] if segment in done else [line]  # forks share segments
            identity, place = (event.rule.entity, event.key), (segment, at)
        done.add(segment)
    yield from _text(place, entry)


def _text(place: tuple[int, int], entry: list[bytes]) -> Iterator[tuple[int, int, str]]:
    if entry and (text := searchable(entry)):
        yield *place, text
