"""Finding words, newest first. Hits are taken one by one until there are enough: nothing is ranked over all of them."""

from __future__ import annotations

import re
import unicodedata
from itertools import takewhile
from typing import TYPE_CHECKING

import apsw

from holdfast.model import event_in, searchable
from holdfast.store.port import Hit
from holdfast.store.sqlite.rows import read_session

if TYPE_CHECKING:
    from holdfast.model import Event, SessionInfo
    from holdfast.store.sqlite.database import Database

_WORD = re.compile("(?:[^\\W_]|[\u0300-\u036f])+")
"""A word as the tokenizer of the database sees it: letters and digits, with their accents."""


def find(db: Database, words: str, cwd: str | None, limit: int) -> list[Hit]:
    """Find the newest texts that have all of the words."""
    asked = dict.fromkeys(_WORD.findall(words))
    if not asked:
        return []
    hits: list[Hit] = []
    match = " ".join(f'"{word}"' for word in asked)
    wanted = {_plain(word) for word in asked}
    for _, segment, line, session in db.rows("find_words", words=match):
        owners = [session] if segment is None else _sessions_with(db, segment)
        infos = (_info(db, n) for n in owners)
        info = next((it for it in infos if it and cwd in (None, it.cwd)), None)
        if info is None:
            continue
        hits.append(_title_hit(info, wanted) if segment is None else _line_hit(db, info, segment, line, wanted))
        if len(hits) == limit:
            break
    return hits


def _sessions_with(db: Database, segment: int) -> list[int]:
    return [n for (n,) in db.rows("sessions_with_segment", segment=segment)]


def _info(db: Database, n: int) -> SessionInfo | None:
    row = db.row("get_session_by_number", n=n)
    return read_session(row).info if row else None


def _title_hit(info: SessionInfo, wanted: set[str]) -> Hit:
    title = info.title or ""
    return Hit(info, "title", "", title, marks(title, wanted))


def _line_hit(db: Database, info: SessionInfo, segment: int, line: int, wanted: set[str]) -> Hit:
    row = db.row("get_segment", id=segment)
    assert row
    stored: list[bytes] = row[0].split(b"\n")[line:]
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
