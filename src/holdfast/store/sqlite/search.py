"""Finding words, newest first. Hits are taken one by one until there are enough: nothing is ranked over all of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from holdfast.model import event_from, searchable
from holdfast.store.port import Hit
from holdfast.store.sqlite.rows import read_session

if TYPE_CHECKING:
    from holdfast.model import SessionInfo
    from holdfast.store.sqlite.database import Database

_WORD = re.compile(r"\w+")


def find(db: Database, words: str, cwd: str | None, limit: int) -> list[Hit]:
    """Find the newest texts that have all of the words."""
    wanted = _WORD.findall(words)
    if not wanted:
        return []
    hits: list[Hit] = []
    match = " ".join(f'"{word}"' for word in wanted)
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


def _title_hit(info: SessionInfo, wanted: list[str]) -> Hit:
    title = info.title or ""
    return Hit(info, "title", "", title, marks(title, wanted))


def _line_hit(db: Database, info: SessionInfo, segment: int, line: int, wanted: list[str]) -> Hit:
    row = db.row("get_segment", id=segment)
    assert row
    stored: bytes = row[0].split(b"\n")[line]
    event = event_from(msgspec.json.decode(stored), stored)
    text = searchable([stored])
    return Hit(info, event.kind, event.key, text, marks(text, wanted))


def marks(text: str, wanted: list[str]) -> tuple[tuple[int, int], ...]:
    """Find the words in a text as a reader would see them."""
    pattern = "|".join(rf"\b{re.escape(word)}\b" for word in wanted)
    return tuple(found.span() for found in re.finditer(pattern, text, re.IGNORECASE))
