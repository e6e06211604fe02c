"""Which agent a stored session belongs to, and how that agent is started: for `holdfast chat --resume ID`."""

from __future__ import annotations

import shlex
from shutil import which
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import HoldfastError, UsageError
from holdfast.model import LOCAL, UNBOUND, Scope
from holdfast_app.chat.settings import Belonging
from holdfast_app.cli.remember import agents_file, wrapped_file
from holdfast_app.cli.store_arguments import find_session, here, is_there, opened
from holdfast_app.known_agents import KNOWN_AGENTS, one_name
from holdfast_app.wrap.record import KEY

if TYPE_CHECKING:
    from holdfast.model import SessionInfo
    from holdfast.store import SessionStore

BUILT_IN = {"holdfast-demo": "demo", "holdfast-code": "code"}
"""How the command line calls the agents that come with Holdfast, by the names of their sessions."""


class Start(NamedTuple):
    """What a command line says to start an agent."""

    agent: str | None
    """A file, or the name of an agent; None for an agent that is given by its command."""
    command: tuple[str, ...] | None = None
    name: str | None = None


class StoredSession(NamedTuple):
    """A session of the store, and how its agent is started."""

    id: str
    start: Start


async def session_to_resume(place: str | None, session: str) -> StoredSession:
    """Return the session that `--resume` means. Raises `UsageError` if its agent is unknown or cannot be started."""
    async with opened(place) as store:
        info = await find_session(store, session)
        return StoredSession(info.id, await _start(store, info, place))


async def newest_session(place: str | None, directory: str | None) -> StoredSession | None:
    """Return the newest session of a directory, or None if there is none. Raises `UsageError` as above."""
    try:
        is_there(place)
    except UsageError:
        return None
    async with opened(place) as store:
        page = await store.list(Scope(), cwd=directory or await here(store), archived="exclude", cursor=None, limit=1)
        return (
            StoredSession(page.sessions[0].id, await _start(store, page.sessions[0], place)) if page.sessions else None
        )


async def whose_session(place: str | None, session: str) -> tuple[str, Belonging] | None:
    """Return the id of a session of the user, and whose it is; None if the store has none of that name, or several."""
    try:
        async with opened(place) as store:
            info = await find_session(store, session)
            if info.principal != LOCAL or info.agent == UNBOUND:
                return None
            known = _known(info.agent, place) is not None
            line = _line(info.id, place) if known else await _line_with_agent(store, info, place)
            return info.id, Belonging(info.agent, line)
    except HoldfastError:
        return None


async def _start(store: SessionStore, info: SessionInfo, place: str | None) -> Start:
    if info.principal != LOCAL:
        raise UsageError(
            f"session {info.id} belongs to {info.principal}, who uses a server with this store; "
            f"to read it: holdfast sessions show {info.id}"
        )
    if info.agent == UNBOUND:
        raise UsageError(
            f"session {info.id} belongs to no agent yet. "
            f"Name the agent that goes on with it: {_line(info.id, place)} AGENT"
        )
    start = _known(info.agent, place)
    if start is None:
        raise UsageError(
            f"session {info.id} belongs to the agent {info.agent}, and Holdfast does not know how that is started. "
            f"Type: {await _line_with_agent(store, info, place)}"
        )
    return start


def _known(name: str, place: str | None) -> Start | None:
    """Return how an agent is started: as the user has said for the page, as everybody knows, or as it was wrapped."""
    entries = agents_file(place).entries()
    entry = entries.get(name) or entries.get(one_name(name))
    if entry is not None:
        return Start(entry.run, None, name) if entry.run is not None else Start(None, entry.command, one_name(name))
    if name in BUILT_IN:
        return Start(BUILT_IN[name])
    wrapped = wrapped_file(place).entries().get(one_name(name))
    known = KNOWN_AGENTS.get(one_name(name))
    if known is not None and (wrapped is None or which(known.command[0]) is not None):
        return Start(one_name(name))
    return None if wrapped is None else Start(None, wrapped.command, one_name(name))


def _line(session: str, place: str | None) -> str:
    return shlex.join(("holdfast", "chat", "--resume", session, *(("--store", place) if place is not None else ())))


async def _line_with_agent(store: SessionStore, info: SessionInfo, place: str | None) -> str:
    """Return what to type to go on with a session; the user writes how its agent is started."""
    if KEY in (await store.get(info.id)).state.memory:
        return f"{_line(info.id, place)} --name {shlex.quote(info.agent)} -- COMMAND"
    return f"{_line(info.id, place)} FILE.py"
