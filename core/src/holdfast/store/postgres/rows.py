"""What the rows of the database are outside of it, and how what is outside is written into them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.model import SessionInfo, SessionState, encode_state
from holdfast.store.port import Record
from holdfast.store.postgres.search_words import indexed_words

if TYPE_CHECKING:
    from holdfast.store.port import Changes

_read_paths = msgspec.json.Decoder(tuple[str, ...]).decode
_read_state = msgspec.json.Decoder(SessionState).decode
_read_text = msgspec.json.Decoder(str).decode


class HistoryEnd(NamedTuple):
    """Where a history ends: how many lines it has, how many are before its tail, and how large that is."""

    lines: int
    tail: int
    tail_bytes: int


EMPTY = HistoryEnd(0, 0, 0)


def info_of(row: Any) -> SessionInfo:
    """Return a session as a list shows it."""
    return SessionInfo(
        id=row["id"],
        cwd=_read_text(row["cwd"]),
        additional=_read_paths(row["additional"]),
        title=title_of(row["title"]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        archived=row["archived"],
        messages=row["messages"],
        principal=row["principal"],
        agent=row["agent"],
    )


def record_of(row: Any) -> Record:
    """Return a session as the ports do."""
    return Record(info_of(row), state_of(row), lines=row["lines"], epoch=row["epoch"], turn=row["turn"])


def state_of(row: Any) -> SessionState:
    """Decode the state of a session."""
    return _read_state(row["state"])


def end_of(row: Any) -> HistoryEnd:
    """Return where the history of a session ends."""
    return HistoryEnd(row["lines"], row["tail"], row["tail_bytes"])


def text_of(stored: str) -> str:
    """Decode a text that is stored as JSON."""
    return _read_text(stored)


def title_of(stored: str | None) -> str | None:
    """Decode a title."""
    return None if stored is None else _read_text(stored)


def encode(value: object) -> str:
    """Encode something as JSON, as text. It never holds the character that PostgreSQL cannot store."""
    return (encode_state(value) if isinstance(value, SessionState) else msgspec.json.encode(value)).decode()


def info_columns(info: SessionInfo, state: SessionState, scope: int) -> tuple[Any, ...]:
    """Return the columns of a new session, its title's words last."""
    return (
        info.id, scope, encode(info.cwd), encode(info.additional), None if info.title is None else encode(info.title),
        info.created_at, info.updated_at, info.messages > 0, info.archived, info.messages, encode(state),
        indexed_words(info.title, info.principal) if info.title else None,
    )  # fmt: skip


def change_columns(changes: Changes, principal: str, scope: int | None) -> tuple[Any, ...]:
    """Return what the queries that change a session take: None or false for what stays as it is."""
    title = changes.title
    return (
        None if isinstance(changes.state, UnsetType) else encode(changes.state),
        title is not UNSET,
        encode(title) if isinstance(title, str) else None,
        indexed_words(title, principal) if isinstance(title, str) and title else None,
        None if isinstance(changes.archived, UnsetType) else changes.archived,
        None if isinstance(changes.additional, UnsetType) else encode(changes.additional),
        scope,
    )
