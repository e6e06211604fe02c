"""A session as JSON: everything there is, to be read again by `read_document`.

The history is a list of updates in the shape of the newest protocol version; read in order and folded they make the
same history. What a user has allowed for ever is written, and is not read again: a file must not give rights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.errors import InvalidParams, UsageError
from holdfast.export import times
from holdfast.model import History, SessionInfo, SessionState, check_update, checked_roots, event_from
from holdfast.view.safe_text import safe_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model import Entry

FORMAT = "holdfast-session"
VERSION = 1

_encode = msgspec.json.Encoder().encode


class About(msgspec.Struct, rename="camel"):
    """What is known of a session, in the words of the protocol."""

    session_id: str
    cwd: str
    created_at: str
    updated_at: str
    title: str | None = None
    additional_directories: list[str] = []
    archived: bool = False
    message_count: int = 0
    agent: str = ""
    """The agent it belongs to; a session that is imported belongs to none, until an agent is prompted in it."""


class _Kind(msgspec.Struct):
    format: Literal["holdfast-session"]
    version: int


class _Document(msgspec.Struct):
    session: About
    state: SessionState
    history: list[dict[str, Any]]


def about(info: SessionInfo) -> About:
    """Describe a session."""
    return About(
        session_id=info.id,
        cwd=info.cwd,
        created_at=times.written(info.created_at),
        updated_at=times.written(info.updated_at),
        title=info.title,
        additional_directories=list(info.additional),
        archived=info.archived,
        message_count=info.messages,
        agent=info.agent,
    )


class DocumentWriter:
    """Writes a document, piece by piece."""

    def __init__(self) -> None:
        self._between = "\n"

    def opening(self, info: SessionInfo, state: SessionState) -> str:
        """Write what comes before the history."""
        members = {"format": FORMAT, "version": VERSION, "session": about(info), "state": state}
        lines = [f"{_text(name)}: {_text(it)}" for name, it in members.items()]
        return "{\n" + ",\n".join(lines) + ',\n"history": ['

    def entry(self, entry: Entry) -> str:
        """Write an entry."""
        written: list[str] = []
        for update in entry.updates():
            written.append(f"{self._between}{_text(update)}")
            self._between = ",\n"
        return "".join(written)

    def closing(self, redacted: int) -> str:
        """Write what comes after the history."""
        return f'\n],\n"redacted": {redacted}\n}}\n'


def read_document(data: bytes) -> tuple[SessionInfo, SessionState, History]:
    """Read a document; `UsageError` says what is wrong with one that cannot be read."""
    try:
        kind = msgspec.json.decode(data, type=_Kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UsageError(
            "this is no session that Holdfast wrote; `holdfast sessions export --format json` writes one"
        ) from None
    if kind.version != VERSION:
        raise UsageError(f"it was written by a newer Holdfast (version {kind.version} of the format); upgrade Holdfast")
    try:
        document = msgspec.json.decode(data, type=_Document)
        path, others = checked_roots(document.session.cwd, document.session.additional_directories)
        created, updated = times.read(document.session.created_at), times.read(document.session.updated_at)
    except (ValueError, OverflowError, InvalidParams, RecursionError) as e:
        raise UsageError(f"the file is damaged: {e}") from None
    history = _history(document.history)
    document.state.permissions = {}
    info = SessionInfo(
        id=document.session.session_id,
        cwd=path,
        additional=others,
        title=document.session.title,
        created_at=min(created, updated),
        updated_at=updated,
        archived=document.session.archived,
        messages=sum(it.entity in ("user_message", "agent_message") for it in history),
    )
    return info, document.state, history


def _history(updates: list[dict[str, Any]]) -> History:
    history = History()
    for number, update in enumerate(updates, start=1):
        try:
            check_update(update)
            history.apply(event_from(update))
        except (UsageError, KeyError, TypeError, AttributeError, ValueError) as e:
            raise UsageError(f"the file is damaged: update {number} of its history: {e}") from None
    return history


def encoded(entry: Entry) -> Iterator[bytes]:
    """Encode an entry, to compare it with another."""
    return map(_encode, entry.updates())


def _text(value: Any) -> str:
    return safe_json(_encode(value))
