"""The rows of sessions, read and written.

All functions that write run inside a transaction of their caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from holdfast.errors import SessionNotFound
from holdfast.model import SessionInfo, SessionState
from holdfast.store.port import Claim, Record
from holdfast.store.sqlite import segments

if TYPE_CHECKING:
    from holdfast.store.port import Changes
    from holdfast.store.sqlite.database import Database

_read_paths = msgspec.json.Decoder(tuple[str, ...]).decode
_read_state = msgspec.json.Decoder(SessionState).decode


def read_info(row: tuple[Any, ...]) -> SessionInfo:
    """Read what a list shows: the first nine columns of a session."""
    _, id_, cwd, additional, title, created_at, updated_at, archived, messages = row[:9]
    return SessionInfo(
        id=id_,
        cwd=cwd,
        additional=_read_paths(additional),
        title=title,
        created_at=created_at,
        updated_at=updated_at,
        archived=bool(archived),
        messages=messages,
    )


def read_session(row: tuple[Any, ...]) -> Record:
    """Read a whole session."""
    return Record(read_info(row), _read_state(row[9]), lines=row[14], epoch=row[10])


def find_session(db: Database, session: str) -> tuple[Any, ...]:
    """Find the row of a session."""
    row = db.row("get_session", id=session)
    if row is None:
        raise SessionNotFound(session)
    return row


def add_session(db: Database, info: SessionInfo, state: bytes, owner: str) -> tuple[int, Claim]:
    """Add a session, claimed; give its number, too."""
    row = db.only(
        "add_session",
        id=info.id,
        cwd=info.cwd,
        additional=msgspec.json.encode(info.additional).decode(),
        title=None,
        created_at=info.created_at,
        updated_at=info.updated_at,
        listed=info.messages > 0,
        archived=info.archived,
        messages=info.messages,
        state=state,
        owner=owner,
    )
    if info.title:
        _set_title(db, row[0], info.title)
    return row[0], Claim(info.id, row[1])


def encoded(changes: Changes) -> bytes | None:
    """Encode a state before a thread has it: its owner may go on changing it."""
    return None if changes.state is UNSET else msgspec.json.encode(changes.state)


def change_session(db: Database, n: int, changes: Changes, state: bytes | None) -> None:
    """Change what is known of a session; its state is given as it was encoded."""
    if state is not None:
        db.run("set_state", n=n, state=state)
    if changes.title is not UNSET:
        _set_title(db, n, changes.title)
    if changes.archived is not UNSET:
        db.run("set_archived", n=n, archived=changes.archived)
    if changes.additional is not UNSET:
        db.run("set_additional", n=n, additional=msgspec.json.encode(changes.additional).decode())


def _set_title(db: Database, n: int, title: str | None) -> None:
    row = db.row("get_title_doc", n=n)
    if row and row[0] is not None:
        segments.delete_words(db, row[0])
    doc = segments.add_words(db, title, session=n) if title else None
    db.run("set_title", n=n, title=title, doc=doc)


def delete_session(db: Database, n: int) -> None:
    """Remove a session and all that only it has."""
    _set_title(db, n, None)
    segments.delete_history(db, n)
    db.run("delete_session", n=n)


def claim_of(claim: Claim) -> dict[str, Any]:
    """Give the bindings that check a claim."""
    return {"id": claim.session, "epoch": claim.epoch}


def check(db: Database, claim: Claim) -> tuple[Any, ...] | None:
    """Find the number of a session if the claim to it holds."""
    return db.row("check_claim", **claim_of(claim))
