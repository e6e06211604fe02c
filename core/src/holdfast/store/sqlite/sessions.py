"""Sessions written: added, changed, handed over, deleted; their private entries too.

All functions run inside a transaction of their caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.format import Line, stored
from holdfast.model import SessionState, encode_state
from holdfast.model.kinds import HAND_OVER
from holdfast.store.port import Claim, PrivateEntry
from holdfast.store.sqlite import histories
from holdfast.store.sqlite.rows import AddedRow, ClaimedRow
from holdfast.store.sqlite.scopes import scope_number
from holdfast.store.sqlite.search_index import add_title, delete_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model import SessionInfo
    from holdfast.store.port import Changes
    from holdfast.store.sqlite.database import Database
    from holdfast.store.sqlite.histories import HistoryEnd
    from holdfast.store.sqlite.rows import BegunRow, SessionRow


def add_session(db: Database, info: SessionInfo, state: bytes, owner: str | None) -> tuple[int, Claim]:
    """Add a session, claimed by its owner; return its number and the claim."""
    row = db.first(
        AddedRow,
        "add_session",
        id=info.id,
        cwd=info.cwd,
        additional=_encode_paths(info.additional),
        created_at=info.created_at,
        updated_at=info.updated_at,
        listed=info.messages > 0,
        archived=info.archived,
        messages=info.messages,
        state=state,
        owner=owner,
        scope=scope_number(db, info.principal, info.agent),
    )
    assert row is not None
    if info.title:
        db.run("set_title", n=row.n, title=info.title, doc=add_title(db, info.title, row.n))
    return row.n, Claim(info.id, row.epoch)


def private_entries(db: Database, n: int) -> list[PrivateEntry]:
    """Read the private entries of a session, in order."""
    return [PrivateEntry(*row) for row in db.rows("private_entries", n=n)]


def find_claimed(db: Database, claim: Claim) -> ClaimedRow | None:
    """Find a session if the claim to it holds."""
    return db.first(ClaimedRow, "get_claimed", id=claim.session, epoch=claim.epoch)


def change_session(db: Database, row: ClaimedRow | BegunRow | SessionRow, changes: Changes) -> None:
    """Change what is known of a session besides its state."""
    if changes.title is not UNSET and changes.title != row.title:
        _set_title(db, row.n, row.title_doc, changes.title)
    if changes.archived is not UNSET:
        db.run("set_archived", n=row.n, archived=changes.archived)
    if changes.additional is not UNSET:
        db.run("set_additional", n=row.n, additional=_encode_paths(changes.additional))
    if changes.agent is not UNSET:
        set_agent(db, row.n, changes.agent)


def set_agent(db: Database, n: int, agent: str) -> None:
    """Bind a session to an agent, whoever it belonged to."""
    principal = db.value("get_principal", n=n)
    db.run("set_scope", n=n, scope=scope_number(db, principal, agent))


def hand_over(db: Database, row: SessionRow, agent: str) -> None:
    """Let a session belong to another agent; what it knew and was allowed goes, and its history says so (F2)."""
    update = {"sessionUpdate": HAND_OVER, "from": row.agent, "to": agent}
    end = histories.get_end(db, row.n)
    set_end(db, row.n, histories.extend_history(db, row.n, end, [Line(stored(update), "")]))
    old = row.read_state()
    kept = SessionState(title_by=old.title_by, forked_from=old.forked_from, interrupted=old.interrupted)
    db.run("set_state", n=row.n, state=encode_state(kept))
    db.run("delete_private", n=row.n)
    set_agent(db, row.n, agent)
    db.run("take_session", n=row.n, owner=None)


def set_end(db: Database, n: int, end: HistoryEnd) -> None:
    """Store where a history ends."""
    db.run("set_end", n=n, **end._asdict())


def delete_session(db: Database, row: SessionRow) -> None:
    """Remove a session and all that only it has."""
    if row.title_doc is not None:
        delete_text(db, row.title_doc)
    histories.delete_history(db, row.n)
    db.run("delete_private", n=row.n)
    db.run("bury_aliases", session=row.id)
    db.run("delete_session", n=row.n)


def add_private(db: Database, n: int, start: int, position: int, entries: Sequence[bytes]) -> None:
    """Store the private entries of a turn; the history had `start` lines before it and has `position` behind it."""
    for data in entries:
        db.run("add_private", n=n, start=start, position=position, data=data)


def read_private(db: Database, n: int) -> list[bytes]:
    """Return the private entries of a session, in order."""
    return [data for (data,) in db.rows("read_private", n=n)]


def copy_private(db: Database, n: int, copy: int, end: int) -> None:
    """Copy the private entries of the turns that are wholly in the first `end` lines to a new session."""
    db.run("copy_private", n=n, copy=copy, end=end)


def cuts_private(db: Database, n: int, end: int) -> bool:
    """Return whether a cut behind so many lines is inside a turn that has private entries."""
    return bool(db.value("cuts_private", n=n, end=end))


def encoded_state(changes: Changes) -> bytes | None:
    """Encode a state before a thread has it: its owner may go on changing it."""
    return None if isinstance(changes.state, UnsetType) else encode_state(changes.state)


def _set_title(db: Database, n: int, doc: int | None, title: str | None) -> None:
    if doc is not None:
        delete_text(db, doc)
    db.run("set_title", n=n, title=title, doc=add_title(db, title, n) if title else None)


def _encode_paths(paths: tuple[str, ...]) -> str:
    return msgspec.json.encode(paths).decode()
