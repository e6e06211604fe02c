"""Finding words, newest first. Hits are taken one by one until there are enough: nothing is ranked over all of them."""

from __future__ import annotations

from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING

import msgspec

from holdfast.format import event_in, searchable
from holdfast.model.kinds import DAMAGED
from holdfast.store.port import Hit
from holdfast.store.sqlite.rows import DocRow, SessionRow, read_body
from holdfast.store.sqlite.scopes import covers_all, scope_numbers
from holdfast.store.sqlite.search_index import has_new_texts, new_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.model import Event, SessionInfo
    from holdfast.store.port import SearchArea
    from holdfast.store.sqlite.database import Database
    from holdfast.store.words import Query

MANY = 2_000
"""So many hits are looked at one by one before the database is asked for those of a scope or directory alone."""


def find(db: Database, words: str, area: SearchArea, limit: int) -> list[Hit]:
    """Find the newest texts of an area that have all that is asked for."""
    from holdfast.store.words import parse_query  # noqa: PLC0415  (people search; an agent that starts does not)

    query, segments = parse_query(words), _Segments(db)
    return [
        _title_hit(info, query) if doc.segment is None else _line_hit(segments, info, doc, query)
        for doc, info in islice(_found(db, query, area), limit)
    ]


def count(db: Database, words: str, area: SearchArea, most: int) -> int:
    """Count the texts of an area that have all that is asked for, but only to `most`; no text is read for that."""
    from holdfast.store.words import parse_query  # noqa: PLC0415

    return sum(1 for _ in islice(_found(db, parse_query(words), area), most))


def _found(db: Database, query: Query, area: SearchArea) -> Iterator[tuple[DocRow, SessionInfo]]:
    """Find the texts of an area that have all that is asked for, newest first, each with its session."""
    if not query.terms:
        return
    sessions = _Sessions(db, area)
    for doc in chain(_new_docs(db, query), _docs(db, _match(query), area)):
        if (info := sessions.having(doc)) is not None:
            yield doc, info


def _match(query: Query) -> str:
    """Return a query as the index takes it. Words hold no character that means anything there."""
    return " ".join(f'"{" ".join(term.written)}"{" *" if term.is_prefix else ""}' for term in query.terms)


def _new_docs(db: Database, query: Query) -> Iterator[DocRow]:
    """Find what has all that is asked for and could not be indexed yet, as on a full disk, newest first."""
    if has_new_texts(db):
        for segment, line, text in reversed(list(new_texts(db))):
            if query.is_in(text):
                yield DocRow(0, segment, line, None)


def _docs(db: Database, match: str, area: SearchArea) -> Iterator[DocRow]:
    """Find what has all that is asked for, newest first.

    Where only a part of the sessions counts and none of it is among the newest, the database passes over the others.
    """
    is_part = area.is_part or not covers_all(db, area.scope)
    for looked, row in enumerate(db.rows("find_words", words=match)):
        doc = DocRow(*row)
        if is_part and looked == MANY:
            yield from _docs_of_part(db, match, area, doc.id + 1)
            return
        yield doc


def _docs_of_part(db: Database, match: str, area: SearchArea, before: int) -> Iterator[DocRow]:
    bindings = {
        "words": match,
        "scopes": msgspec.json.encode(list(scope_numbers(db, area.scope))).decode(),
        "archived": msgspec.json.encode(list(area.archived_values)).decode(),
        "since": area.since,
        "before": before,
    }
    if area.cwd is None:
        return (DocRow(*row) for row in db.rows("find_words_in_scopes", **bindings))
    return (DocRow(*row) for row in db.rows("find_words_in_directory", cwd=area.cwd, **bindings))


class _Sessions:
    """The sessions that count, by what they have; neighbouring hits are often in the same."""

    def __init__(self, db: Database, area: SearchArea) -> None:
        self._db = db
        self._area = area
        self._last: tuple[int | None, SessionInfo | None] = (None, None)

    def having(self, doc: DocRow) -> SessionInfo | None:
        """Find the session that has a text; None where it is none that counts."""
        if doc.segment is None:
            return self._first([doc.session])
        if doc.segment != self._last[0]:
            numbers = (n for (n,) in self._db.rows("sessions_with_segment", segment=doc.segment))
            self._last = doc.segment, self._first(numbers)
        return self._last[1]

    def _first(self, numbers: Iterable[int | None]) -> SessionInfo | None:
        for n in numbers:
            row = self._db.first(SessionRow, "get_session_by_number", n=n)
            if row is not None and self._area.covers(info := row.info()):
                return info
        return None


class _Segments:
    """The lines of segments; neighbouring hits are often in the same."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._last: tuple[int | None, list[bytes]] = (None, [])

    def lines(self, segment: int | None) -> list[bytes]:
        """Return the lines of a segment; none of one that is damaged."""
        if segment != self._last[0]:
            body = None if segment is None else read_body(self._db, segment)
            self._last = segment, [] if body is None else body.split(b"\n")
        return self._last[1]


def _title_hit(info: SessionInfo, query: Query) -> Hit:
    title = info.title or ""
    return Hit(info, "title", "", title, query.marks(title))


def _line_hit(segments: _Segments, info: SessionInfo, doc: DocRow, query: Query) -> Hit:
    stored = segments.lines(doc.segment)[doc.line :]
    if not stored:  # the index says that the words are there, and nobody can say more
        return Hit(info, DAMAGED, "", "This part of the session is damaged", ())
    first = event_in(stored[0])
    text = searchable(takewhile(lambda line: _is_same(event_in(line), first), stored))
    return Hit(info, first.rule.entity or first.kind, first.key, text, query.marks(text))


def _is_same(event: Event, other: Event) -> bool:
    """Return whether two events are about the same entry: one may be stored on several lines, one after the other."""
    return (event.rule.entity, event.key) == (other.rule.entity, other.key)
