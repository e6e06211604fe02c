"""A session as JSON: everything there is, to be read again by `read_document`.

The history is a list of updates in the shape of the newest protocol version; read in order and folded they make the
same history. What could widen the rights of an agent is written, and is not read again (P13): a file must not give
rights that its user never gave here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from holdfast.document import times
from holdfast.errors import InvalidParams, UsageError
from holdfast.model import History, SessionInfo, SessionState, check_update, checked_roots, event_from
from holdfast.model.kinds import LOG_ONLY
from holdfast.view.safe_text import safe_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model import Entry

FORMAT = "holdfast-session"
VERSION = 1

_encode = msgspec.json.Encoder().encode


class SessionSummary(msgspec.Struct, rename="camel"):
    """What a list shows of a session, in the words of the protocol."""

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
    model: str | None = None
    """What its last turn was done with."""
    usage: dict[str, Any] | None = None
    """What its agent said last of context and cost, as in `usage_update`, and of tokens in all."""


class _Kind(msgspec.Struct):
    format: Literal["holdfast-session"]
    version: int


class _Document(msgspec.Struct):
    session: SessionSummary
    state: SessionState
    history: list[dict[str, Any]]


def session_summary(info: SessionInfo, state: SessionState | None = None) -> SessionSummary:
    """Return what a list shows of a session, ready to be written as JSON; with its state also model and usage."""
    return SessionSummary(
        session_id=info.id,
        cwd=info.cwd,
        created_at=times.written(info.created_at),
        updated_at=times.written(info.updated_at),
        title=info.title,
        additional_directories=list(info.additional),
        archived=info.archived,
        message_count=info.messages,
        agent=info.agent,
        model=None if state is None else state.model or None,
        usage=None if state is None else _usage(state),
    )


def _usage(state: SessionState) -> dict[str, Any] | None:
    told: dict[str, Any] = state.latest.get("usage_update", {})
    usage = {name: told[name] for name in ("used", "size", "cost") if told.get(name) is not None}
    return {**usage, **({"tokens": state.tokens} if state.tokens else {})} or None


class DocumentWriter:
    """Writes a document piece by piece."""

    def __init__(self) -> None:
        self._between = "\n"

    def opening(self, info: SessionInfo, state: SessionState) -> str:
        """Return what comes before the history."""
        members = {"format": FORMAT, "version": VERSION, "session": session_summary(info), "state": state}
        lines = [f"{_text(name)}: {_text(value)}" for name, value in members.items()]
        return "{\n" + ",\n".join(lines) + ',\n"history": ['

    def entry(self, entry: Entry) -> str:
        """Return an entry as it is written."""
        written: list[str] = []
        for update in entry.updates():
            written.append(f"{self._between}{_text(update)}")
            self._between = ",\n"
        return "".join(written)

    def closing(self, redacted: int) -> str:
        """Return what comes after the history."""
        return f'\n],\n"redacted": {redacted}\n}}\n'


class ReadSession(NamedTuple):
    """A session read from a document."""

    info: SessionInfo
    state: SessionState
    history: History
    cwd: str
    """The directory that the document names. The session gets another one where the reader says so."""
    reset: tuple[str, ...]
    """What the document has and the session has not: `options`, `permissions`, `memory`, `additionalDirectories`."""


def read_document(data: bytes, cwd: str) -> ReadSession:
    """Read a document as a session of the directory `cwd`; raise `UsageError` for one that cannot be read.

    A mode, a remembered permission, another directory or something in an agent's memory could let an agent do what
    nobody has allowed here, so none of them is taken over (P13).
    """
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
    info = SessionInfo(
        id=document.session.session_id,
        cwd=cwd,
        additional=(),
        title=document.session.title,
        created_at=min(created, updated),
        updated_at=updated,
        archived=document.session.archived,
        messages=sum(entry.entity in ("user_message", "agent_message") for entry in history),
    )
    state = document.state
    lost = {
        "options": state.options,
        "permissions": state.permissions,
        "memory": state.memory,
        "additionalDirectories": others,
    }
    kept = SessionState(
        latest={kind: update for kind, update in state.latest.items() if kind == "usage_update"},
        title_by=state.title_by,
        forked_from=state.forked_from,
        interrupted=state.interrupted,
        model=state.model,
        tokens=state.tokens,
    )
    return ReadSession(info, kept, history, path, tuple(name for name, value in lost.items() if value))


def _history(updates: list[dict[str, Any]]) -> History:
    history = History()
    for number, update in enumerate(updates, start=1):
        kind = update.get("sessionUpdate")
        if isinstance(kind, str) and kind in LOG_ONLY:
            continue
        try:
            check_update(update)
            history.apply(event_from(update))
        except UsageError as e:
            raise UsageError(f"the file is damaged: update {number} of its history: {e}") from None
    return history


def encoded(entry: Entry) -> Iterator[bytes]:
    """Yield the updates of an entry, encoded, to compare it with another."""
    return map(_encode, entry.updates())


def _text(value: Any) -> str:
    return safe_json(_encode(value))
