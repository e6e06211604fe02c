"""Finding words, newest first. Hits are taken one by one until there are enough: nothing is ranked over all of them."""

from __future__ import annotations

import re
import unicodedata
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import apsw

from holdfast.format import event_in, searchable
from holdfast.store.port import Hit
from holdfast.store.sqlite.rows import read_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.model import Event, SessionInfo
    from holdfast.store.sqlite.database import Database

MANY = 2_000
"""So many hits are looked at one by one before the database is asked for those of one directory alone."""

_WORD = re.compile("(?:[^\\W_]|[\u0300-\u036f])+")
"""A word as the tokenizer of the database sees it: letters and digits, with their accents."""


def find(db: Database, words: str, cwd: str | None, limit: int) -> list[Hit]:
    """Find the newest texts that have all of the words."""
    asked = dict.fromkeys(_WORD.findall(words))
    if not asked:
        return []
    match = " ".join(f'"{word}"' for word in asked)
    wanted = {_plain(word) for word in asked}
    hits: list[Hit] = []
    sessions = _Sessions(db, cwd)
    for _, segment, line, session in _docs(db, match, cwd):
        info = sessions.of(segment, session)
        if info is not None:
            hits.append(_title_hit(info, wanted) if segment is None else _line_hit(db, info, segment, line, wanted))
        if len(hits) == limit:
            break
    return hits


def _docs(db: Database, match: str, cwd: str | None) -> Iterator[tuple[Any, ...]]:
    """Give what has all of the words, newest first.

    Where only one directory counts and it is not among the newest, the others are passed over by the database.
    """
    for looked, row in enumerate(db.rows("find_words", words=match)):
        if cwd is not None and looked == MANY:
            yield from db.rows("find_words_in", words=match, cwd=cwd, before=row[0] + 1)
            return
        yield row


class _Sessions:
    """The sessions of a directory, or of all, by what they have; neighbouring hits are often in the same."""

    def __init__(self, db: Database, cwd: str | None) -> None:
        self._db = db
        self._cwd = cwd
        self._last: tuple[int | None, SessionInfo | None] = (None, None)

    def of(self, segment: int | None, session: int | None) -> SessionInfo | None:
        """Find the session that has a segment, or has that number."""
        if segment is None:
            return self._first([session])
        if segment != self._last[0]:
            numbers = (n for (n,) in self._db.rows("sessions_with_segment", segment=segment))
            self._last = segment, self._first(numbers)
        return self._last[1]

    def _first(self, numbers: Iterable[int | None]) -> SessionInfo | None:
        for n in numbers:
            row = self._db.row("get_session_by_number", n=n)
            if row is not None and self._cwd in (None, row[2]):
                return read_session(row).info
        return None


def _title_hit(info: SessionInfo, wanted: set[str]) -> Hit:
    title = info.title or ""
    return Hit(info, "title", "", title, marks(title, wanted))


def _line_hit(db: Database, info: SessionInfo, segment: int, line: int, wanted: set[str]) -> Hit:
    stored: list[bytes] = db.only("get_segment", id=segment)[0].split(b"\n")[line:]
    if not stored:
        raise apsw.CorruptError("a line that words were found in is not there")
    first = event_in(stored[0])
    text = searchable(takewhile(lambda it: _is_same(event_in(it), first), stored))
    return Hit(info, first.kind, first.key, text, marks(text, wanted))


def _is_same(event: Event, other: Event) -> bool:
    """Say whether two events are about the same entry: one may be stored on several lines, one after the other."""
    return (event.rule.entity, event.key) == (other.rule.entity, other.key)


def marks(text: str, wanted: set[str]) -> tuple[tuple[int, int], ...]:
    """Find words in a text, however they are written there."""
    return tuple(found.span() for found in _WORD.finditer(text) if _plain(found.group()) in wanted)


def _plain(word: str) -> str:
    """Write a word without accents and capitals."""
    if not word.isascii():
        word = "".join(it for it in unicodedata.normalize("NFD", word) if not unicodedata.combining(it))
    return word.lower()
