"""Sessions that an agent has itself: listed among ours, and adopted when a client loads one (G9)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.errors import InvalidParams
from holdfast.format import lines_of
from holdfast.model import History, Page, Scope, SessionInfo, SessionState

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.engine.ports import AgentPort, ConnectedClient, SessionClient
    from holdfast.model import OwnSession
    from holdfast.store import Store

log: logging.Logger = logging.getLogger(__name__)

_MESSAGES = frozenset({"user_message", "agent_message"})
_UNIQUE_CHARACTERS = 16
"""An id of so many characters is no counter: no other agent has the same."""
_SEPARATOR = "~"
"""Stands in a cursor between the store's own and the time where the next page begins."""


def adopted_id(scope: Scope, own_id: str) -> str:
    """Return the id that a session of the agent has among ours: the same whenever it is asked for."""
    from hashlib import sha256  # noqa: PLC0415  (an author's agent has all its sessions in our store)

    return "sess_" + sha256(f"{scope.principal}\0{scope.agent}\0{own_id}".encode()).hexdigest()[:40]


class OwnSessions:
    """The agent's own sessions, as clients of one engine see them."""

    def __init__(self, store: Store, port: AgentPort) -> None:
        self._store = store
        self._port = port

    async def unknown(self, scope: Scope, client: ConnectedClient, cwd: str | None) -> list[OwnSession]:
        """Return the agent's own sessions that are not ours, and were not deleted."""
        own = await self._port.own_sessions(client, cwd)
        names = [session.id for session in own]
        known = await self._store.find_aliases(scope, names) if own else {}
        elsewhere = await self._under_other_names(scope, names)
        return [session for session in own if session.id not in known and session.id not in elsewhere]

    async def _under_other_names(self, scope: Scope, names: Sequence[str]) -> Collection[str]:
        """Return those of the agent's ids whose sessions the principal has already, under another name of the agent.

        Adopted once more, one conversation would have two histories. An id that is short may be a counter, and those
        of two agents are the same by chance.
        """
        unique = [name for name in names if len(name) >= _UNIQUE_CHARACTERS]
        return await self._store.find_aliases(Scope(scope.principal), unique) if unique else ()

    async def find(self, name: str, scope: Scope, client: ConnectedClient) -> OwnSession | None:
        """Return the agent's own session of a name, which is its own id or the one it has in lists."""
        for session in await self.unknown(scope, client, None):
            if name in (session.id, adopted_id(scope, session.id)):
                return session
        return None

    async def infos(self, scope: Scope, client: ConnectedClient) -> list[SessionInfo]:
        """Return what lists show of the agent's own sessions."""
        return [_info(session, scope, 0) for session in await self.unknown(scope, client, None)]

    async def id_of(self, name: str, scope: Scope, client: SessionClient) -> str | None:
        """Return our id for a session that a client calls by another name; one of the agent's own is adopted."""
        known = await self._store.find_aliases(scope, [name])
        if name in known:
            return known[name]
        if name in await self._under_other_names(scope, [name]):
            log.warning("The agent's session %s belongs to another name of the agent here; hand it over", name)
            return None
        listed = await self.find(name, scope, client)
        adopted = await self._port.adopt(name if listed is None else listed.id, client)
        if adopted is None:
            return None
        found, events = adopted
        session = listed or found
        history = History()
        for event in events:
            history.apply(event)
        messages = sum(entry.entity in _MESSAGES for entry in history)
        info = _info(session, scope, messages)
        state = SessionState(memory=found.memory, title_by="agent" if session.title else "")
        await self._store.add(info, state, lines_of(history))
        await self._store.set_alias(scope, session.id, info.id)
        return info.id


def split_cursor(cursor: str | None) -> tuple[str | None, int | None]:
    """Return a cursor of the store, and the time before which the next page begins."""
    if cursor is None or _SEPARATOR not in cursor:
        return cursor, None
    ours, _, time = cursor.rpartition(_SEPARATOR)
    if not time.isdecimal() or len(time) > 20:
        raise InvalidParams("The cursor is not one that this agent gave out")
    return ours, int(time)


def merged(page: Page, own: Sequence[OwnSession], scope: Scope, before: int | None) -> Page:
    """Return a page of our sessions with those of the agent that belong between them, newest first."""
    last = page.sessions[-1].updated_at if page.cursor is not None else -1
    listed = [
        _info(session, scope, 0)
        for session in own
        if last <= session.updated_at and (before is None or session.updated_at < before)
    ]
    if not own:
        return page
    sessions = sorted((*page.sessions, *listed), key=lambda info: info.updated_at, reverse=True)
    cursor = None if page.cursor is None else f"{page.cursor}{_SEPARATOR}{last}"
    return Page(tuple(sessions), cursor)


def _info(session: OwnSession, scope: Scope, messages: int) -> SessionInfo:
    return SessionInfo(
        adopted_id(scope, session.id), session.cwd, (), session.title, session.updated_at, session.updated_at,
        archived=False, messages=messages, principal=scope.principal, agent=scope.agent or "",
    )  # fmt: skip
