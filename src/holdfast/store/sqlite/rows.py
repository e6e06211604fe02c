"""Rows of the database to values of the model."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.model import SessionInfo, SessionState
from holdfast.store.port import Record

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
