"""Finding words, newest first. Hits are taken one by one until there are enough: nothing is ranked over all of them."""

from __future__ import annotations

from itertools import chain, takewhile
from typing import TYPE_CHECKING

import msgspec

from holdfast.format import event_in, searchable
from holdfast.model.kinds import DAMAGED
from holdfast.store.port import Hit
from holdfast.store.sqlite.rows import DocRow, SessionRow, read_body
from holdfast.store.sqlite.scopes import covers_all, scope_numbers
from holdfast.store.sqlite.search_index import has_new_texts, new_texts
from holdfast.store.words import marks, without_accents, words_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.model import Event, Scope, SessionInfo
    from holdfast.store.sqlite.database import Database

MANY = 2_000
"""So many hits are looked at one by one before the database is asked for those of a scope or directory alone."""


def find(db: Database, words: str, scope: Scope, cwd: str | None, limit: int) -> list[Hit]:
    """Find the newest texts of a scope that have all of the words."""
    asked = words_in(words)
    if not asked:
        return []
    match = " ".join(f'"{word}"' for word in asked)
    wanted = {without_accents(word) for word in asked}
    hits: list[Hit] = []
    sessions, segments = _Sessions(db, scope, cwd), _Segments(db)
    for doc in chain(_new_docs(db, wanted), _docs(db, match, scope, cwd)):
        info = sessions.having(doc)
        if info is not None:
            hits.append(_title_hit(info, wanted) if doc.segment is None else _line_hit(segments, info, doc, wanted))
        if len(hits) == limit:
            break
    return hits


def _new_docs(db: Database, wanted: set[str]) -> Iterator[DocRow]:
    """Find what has all of the words and could not be indexed yet, as on a full disk, newest first."""
    if has_new_texts(db):
        for segment, line, text in reversed(list(new_texts(db))):
            if wanted <= set(map(without_accents, words_in(text))):
                yield DocRow(0, segment, line, None)


def _docs(db: Database, match: str, scope: Scope, cwd: str | None) -> Iterator[DocRow]:
    """Find what has all of the words, newest first.

    Where only a part of the sessions counts and none of it is among the newest, the database passes over the others.
    """
    is_part = cwd is not None or not covers_all(db, scope)
    for looked, row in enumerate(db.rows("find_words", words=match)):
        doc = DocRow(*row)
        if is_part and looked == MANY:
            yield from _docs_of_part(db, match, scope, cwd, doc.id + 1)
            return
        yield doc


def _docs_of_part(db: Database, match: str, scope: Scope, cwd: str | None, before: int) -> Iterator[DocRow]:
    scopes = msgspec.json.encode(list(scope_numbers(db, scope))).decode()
    if cwd is None:
        found = db.rows("find_words_in_scopes", words=match, scopes=scopes, before=before)
    else:
        found = db.rows("find_words_in_directory", words=match, scopes=scopes, cwd=cwd, before=before)
    return (DocRow(*row) for row in found)


class _Sessions:
    """The sessions that count, by what they have; neighbouring hits are often in the same."""

    def __init__(self, db: Database, scope: Scope, cwd: str | None) -> None:
        self._db = db
        self._scope = scope
        self._cwd = cwd
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
            if row is not None and self._cwd in (None, row.cwd):
                info = row.info()
                if self._scope.covers(info.principal, info.agent):
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


def _title_hit(info: SessionInfo, wanted: set[str]) -> Hit:
    title = info.title or ""
    return Hit(info, "title", "", title, marks(title, wanted))


def _line_hit(segments: _Segments, info: SessionInfo, doc: DocRow, wanted: set[str]) -> Hit:
    stored = segments.lines(doc.segment)[doc.line :]
    if not stored:  # the index says that the words are there, and nobody can say more
        return Hit(info, DAMAGED, "", "This part of the session is damaged", ())
    first = event_in(stored[0])
    text = searchable(takewhile(lambda line: _is_same(event_in(line), first), stored))
    return Hit(info, first.kind, first.key, text, marks(text, wanted))


def _is_same(event: Event, other: Event) -> bool:
    """Return whether two events are about the same entry: one may be stored on several lines, one after the other."""
    return (event.rule.entity, event.key) == (other.rule.entity, other.key)
