"""The index of words made anew from what is stored. What a search finds, and in what order, stays as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.format import event_in, searchable
from holdfast.store.sqlite import segments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.store.sqlite.database import Database


def rebuild(db: Database) -> int:
    """Forget all words and read all texts again; say how many there were. Runs inside a transaction of its caller's."""
    db.run("delete_all_words")
    db.run("delete_lost_docs")
    count = 0
    for segment, line, text in texts(db):
        known = dict(db.rows("docs_of_segment", segment=segment))
        if line in known:  # later docs are newer: whatever has its place there keeps it
            db.run("add_words", id=known[line], text=text)
        else:
            segments.add_words(db, text, segment=segment, line=line)
        count += 1
    new: list[tuple[int, str]] = []
    for n, title, doc in db.rows("every_title"):
        count += 1
        if doc is not None and db.row("has_doc", id=doc, session=n):
            db.run("add_words", id=doc, text=title)
        else:
            new.append((n, title))
    for n, title in new:
        db.run("set_title", n=n, title=title, doc=segments.add_words(db, title, session=n))
    db.run("delete_docs_without_words")
    return count


def texts(db: Database) -> Iterator[tuple[int, int, str]]:
    """Give every text that a search should find in histories: its segment, its line there, and the text."""
    done: set[int] = set()
    entry: list[bytes] = []  # its lines so far: it may be stored on several, and they may be in several segments
    place, about = (0, 0), ("", "")
    session = None
    for n, segment in db.rows("every_history"):
        if n != session and entry:
            yield from _text(place, entry)
            entry, about = [], ("", "")
        session = n
        body = db.row("get_segment", id=segment)
        for at, line in enumerate(body[0].split(b"\n") if body else ()):
            event = event_in(line)
            now_about = event.rule.entity, event.key
            if entry and now_about == about and event.key:
                entry.append(line)
                continue
            yield from _text(place, entry)
            entry = [] if segment in done else [line]  # forks share segments
            about, place = now_about, (segment, at)
        done.add(segment)
    yield from _text(place, entry)


def _text(place: tuple[int, int], entry: list[bytes]) -> Iterator[tuple[int, int, str]]:
    if entry and (text := searchable(entry)):
        yield *place, text
