"""The rows that queries give, by the names of their columns, and what they are outside of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import SessionNotFound, StoreDamaged
from holdfast.format.segments import is_whole
from holdfast.model import SessionInfo, SessionState
from holdfast.store.port import Record

if TYPE_CHECKING:
    from holdfast.store.sqlite.database import Database

_read_paths = msgspec.json.Decoder(tuple[str, ...]).decode
_read_state = msgspec.json.Decoder(SessionState).decode


class SessionRow(msgspec.Struct, frozen=True):
    """All that is known of a session besides its history."""

    n: int
    id: str
    cwd: str
    additional: str
    title: str | None
    title_doc: int | None
    created_at: int
    updated_at: int
    archived: int
    messages: int
    lines: int
    state: bytes
    epoch: int
    owner: str | None
    turn: int
    accepted: bytes | None
    """What its unsealed turn began with; None where all is sealed, or where that is in the log of the turn alone."""
    principal: str
    agent: str

    def info(self) -> SessionInfo:
        """Return it as a list shows it."""
        return _info(self, self.principal, self.agent)

    def record(self) -> Record:
        """Return it as the ports do; raise `StoreDamaged` where it is damaged."""
        if not self._is_sound():
            raise StoreDamaged(
                f"What the store knows of session {_text(self.id)} is damaged. Other sessions are not concerned; "
                "`holdfast sessions doctor` says more"
            )
        return Record(self.info(), self.read_state(), lines=self.lines, epoch=self.epoch, turn=self.turn)

    def _is_sound(self) -> bool:
        try:
            _read_paths(self.additional)
            self.read_state()
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
            return False
        texts = (self.cwd, self.additional, "" if self.title is None else self.title)
        numbers = (self.created_at, self.updated_at, self.messages, self.lines, self.epoch, self.turn)
        return set(map(type, texts)) == {str} and set(map(type, numbers)) == {int}

    def read_state(self) -> SessionState:
        """Decode its state."""
        return _read_state(self.state)


class ListedRow(msgspec.Struct, frozen=True):
    """A session as a list reads it from an index."""

    updated_at: int
    n: int
    id: str
    cwd: str
    additional: str
    title: str | None
    created_at: int
    archived: int
    messages: int

    def info(self, principal: str, agent: str) -> SessionInfo:
        """Return it as a list shows it; whose it is the index does not say."""
        return _info(self, principal, agent)


class ClaimedRow(msgspec.Struct, frozen=True):
    """What a writer needs to know of a session that its claim holds."""

    n: int
    scope: int
    turn: int
    lines: int
    tail: int
    tail_bytes: int
    title: str | None
    title_doc: int | None


class BegunRow(msgspec.Struct, frozen=True):
    """A turn that was begun."""

    n: int
    turn: int
    title: str | None
    title_doc: int | None


class AddedRow(msgspec.Struct, frozen=True):
    """A session that was added."""

    n: int
    epoch: int


class ReleasedRow(msgspec.Struct, frozen=True):
    """A session that was released."""

    n: int
    is_unsealed: int


class BodyRow(msgspec.Struct, frozen=True):
    """What is in a segment, whoever has it."""

    lines: int
    body: bytes
    checksum: int | None


class DocRow(msgspec.Struct, frozen=True):
    """Something a search can find: a line of a segment, or the title of a session."""

    id: int
    segment: int | None
    line: int | None
    session: int | None


class UnsealedRow(msgspec.Struct, frozen=True):
    """A session with an unsealed turn."""

    n: int
    id: str
    turn: int
    owner: str | None


class TotalRow(msgspec.Struct, frozen=True):
    """Sessions, counted."""

    sessions: int
    messages: int
    oldest: int | None
    newest: int | None


def _info(row: SessionRow | ListedRow, principal: str, agent: str) -> SessionInfo:
    """Return a session as a list shows it: a damaged one as far as it can be read, so that the others are there."""
    return SessionInfo(
        id=_text(row.id),
        cwd=_text(row.cwd),
        additional=_paths(row.additional),
        title=None if row.title is None else _text(row.title),
        created_at=_number(row.created_at),
        updated_at=_number(row.updated_at),
        archived=bool(row.archived),
        messages=_number(row.messages),
        principal=principal,
        agent=agent,
    )


def _text(value: object) -> str:
    """Return a text of a row; where the row is damaged, what can be read of it."""
    if isinstance(value, str):
        return value
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _paths(value: str) -> tuple[str, ...]:
    try:
        return _read_paths(value)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
        return ()


def find_session(db: Database, session: str) -> SessionRow:
    """Find a session; raise `SessionNotFound` if there is none."""
    row = db.first(SessionRow, "get_session", id=session)
    if row is None:
        raise SessionNotFound(session)
    return row


def find_by_prefix(db: Database, prefix: str, limit: int, after: str) -> list[SessionInfo]:
    """Find the sessions whose ids begin so and come behind `after`, in the order of their ids."""
    found = db.rows("find_sessions", first=prefix, end=prefix + "\U0010ffff", after=after, limit=limit)
    return [SessionRow(*row).info() for row in found]


def read_body(db: Database, segment: int) -> bytes | None:
    """Return what is in a segment, or None if it is damaged or not there."""
    row = db.first(BodyRow, "get_segment", id=segment)
    return row.body if row is not None and is_whole(row.body, row.lines, row.checksum) else None
