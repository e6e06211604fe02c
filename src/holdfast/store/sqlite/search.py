"""Finding words, newest first. Hits are taken one by one until there are enough: nothing is ranked over all of them."""

from __future__ import annotations

import re
import unicodedata
from itertools import takewhile
from typing import TYPE_CHECKING

import msgspec

from holdfast.format import event_in, searchable
from holdfast.model.kinds import DAMAGED
from holdfast.store.port import Hit
from holdfast.store.sqlite.rows import DocRow, SessionRow, read_body
from holdfast.store.sqlite.scopes import covers_all, scope_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.model import Event, Scope, SessionInfo
    from holdfast.store.sqlite.database import Database

MANY = 2_000
"""So many hits are looked at one by one before the database is asked for those of a scope or directory alone."""

_WORD = re.compile("(?:[^\\W_]|[\u0300-\u036f])+")
"""A word as the tokenizer of the database sees it: letters and digits, with their accents."""


def find(db: Database, words: str, scope: Scope, cwd: str | None, limit: int) -> list[Hit]:
    """Find the newest texts of a scope that have all of the words."""
    asked = dict.fromkeys(_WORD.findall(words))
    if not asked:
        return []
    match = " ".join(f'"{word}"' for word in asked)
    wanted = {_without_accents(word) for word in asked}
    hits: list[Hit] = []
    sessions = _Sessions(db, scope, cwd)
    for doc in _docs(db, match, scope, cwd):
        info = sessions.having(doc)
        if info is not None:
            hits.append(_title_hit(info, wanted) if doc.segment is None else _line_hit(db, info, doc, wanted))
        if len(hits) == limit:
            break
    return hits


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


def _title_hit(info: SessionInfo, wanted: set[str]) -> Hit:
    title = info.title or ""
    return Hit(info, "title", "", title, marks(title, wanted))


def _line_hit(db: Database, info: SessionInfo, doc: DocRow, wanted: set[str]) -> Hit:
    body = read_body(db, doc.segment or 0)
    stored = [] if body is None else body.split(b"\n")[doc.line :]
    if not stored:  # the index says that the words are there, and nobody can say more
        return Hit(info, DAMAGED, "", "This part of the session is damaged", ())
    first = event_in(stored[0])
    text = searchable(takewhile(lambda line: _is_same(event_in(line), first), stored))
    return Hit(info, first.kind, first.key, text, marks(text, wanted))


def _is_same(event: Event, other: Event) -> bool:
    """Return whether two events are about the same entry: one may be stored on several lines, one after the other."""
    return (event.rule.entity, event.key) == (other.rule.entity, other.key)


def marks(text: str, wanted: set[str]) -> tuple[tuple[int, int], ...]:
    """Find words in a text, however they are written there."""
    return tuple(found.span() for found in _WORD.finditer(text) if _without_accents(found.group()) in wanted)


def _without_accents(word: str) -> str:
    """Write a word without accents and capitals."""
    if not word.isascii():
        word = "".join(char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char))
    return word.lower()
