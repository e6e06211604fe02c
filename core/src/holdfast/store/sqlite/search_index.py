"""The index of words: texts put in and taken out, and the whole of it made anew from what is stored.

Titles are indexed as they are given. What histories say is indexed later, many texts at once, and before any search
(docs/decisions/008): the setting `indexed segment` is the id of the last segment whose texts are in the index. Later
segments have larger ids.

All functions but `has_new_texts` and `index_now` run inside a transaction of their caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.format import event_in, searchable
from holdfast.store.sqlite.rows import read_body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.store.sqlite.database import Database


def add_title(db: Database, title: str, session: int) -> int:
    """Add the title of a session to the index, behind all that was said before; return its number."""
    index_new_texts(db)
    return _add_text(db, title, session=session)


def _add_text(
    db: Database, text: str, *, segment: int | None = None, line: int | None = None, session: int | None = None
) -> int:
    doc = db.insert("add_doc", segment=segment, line=line, session=session)
    db.run("add_words", id=doc, text=text)
    return doc


def has_new_texts(db: Database) -> bool:
    """Return whether there are segments whose texts are not in the index."""
    return bool(db.value("has_new_segments"))


def index_new_texts(db: Database) -> None:
    """Add the texts of all segments to the index that are not in it."""
    if not has_new_texts(db):
        return
    segments = [(segment, body_sum) for segment, body_sum in db.rows("new_segments")]
    if db.new_texts.keys() >= set(segments):
        found = [(key[0], line, text) for key in segments for line, text in db.new_texts[key]]
    else:  # another process has stored some of them, or this one before it was started again
        found = list(new_texts(db))
    for segment, line, text in found:
        _add_text(db, text, segment=segment, line=line)
    db.new_texts.clear()
    db.run("all_indexed")


def index_now(db: Database) -> None:
    """Do the same, in a transaction of its own."""
    with db.transaction():
        index_new_texts(db)


def new_texts(db: Database) -> Iterator[tuple[int, int, str]]:
    """Find the texts that are not in the index, the oldest first: the segment of each, its line there, and the text."""
    return _texts(db, "new_history")


def segments_deleted(db: Database) -> None:
    """Note that segments were deleted: their ids may be given to new ones, which are not in the index."""
    db.run("indexed_at_most")


def delete_text(db: Database, doc: int) -> None:
    """Remove a text from the index."""
    db.run("delete_words", id=doc)
    db.run("delete_doc", id=doc)


def rebuild(db: Database) -> int:
    """Forget all words and read all texts again; return how many there were."""
    db.run("delete_all_words")
    db.run("delete_lost_docs")
    count = 0
    for segment, line, text in _texts(db, "every_history"):
        known = dict(db.rows("docs_of_segment", segment=segment))
        if line in known:  # later docs are newer: whatever has its place there keeps it
            db.run("add_words", id=known[line], text=text)
        else:
            _add_text(db, text, segment=segment, line=line)
        count += 1
    new: list[tuple[int, str]] = []
    for n, title, doc in db.rows("every_title"):
        count += 1
        if doc is not None and list(db.rows("has_doc", id=doc, session=n)):
            db.run("add_words", id=doc, text=title)
        else:
            new.append((n, title))
    for n, title in new:
        db.run("set_title", n=n, title=title, doc=_add_text(db, title, session=n))
    db.run("delete_docs_without_words")
    db.run("all_indexed")
    return count


def _texts(db: Database, segments: str) -> Iterator[tuple[int, int, str]]:
    """Find every text that a search should find in histories: its segment, its line there, and the text.

    `segments` is the query that gives the segments, each with a session that has it.
    """
    done: set[int] = set()
    entry: list[bytes] = []  # its lines so far: it may be stored on several, and they may be in several segments
    place, identity = (0, 0), ("", "")
    session = None
    for n, segment in db.rows(segments):
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
