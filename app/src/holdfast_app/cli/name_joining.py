"""Sessions that were stored under another name of a known agent go to its one name, once, and the user is told.

A name was once what the agent called itself, or what an editor's settings said. What was allowed "always" under one
name is not allowed under another (P13): such answers are forgotten, and the questions come again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

from holdfast.engine import claim_session
from holdfast.errors import HoldfastError, SessionBusy, SessionElsewhere, SessionNotFound
from holdfast.model import Scope
from holdfast.store import Changes
from holdfast_app.known_agents import one_name
from holdfast_app.wrap.record import KEY, AgentRecord

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.model import SessionInfo
    from holdfast.store import SessionStore

log: logging.Logger = logging.getLogger(__name__)

_AT_ONCE = 100
"""So many sessions are changed at once: the store writes what waits together."""


class Joined(NamedTuple):
    """How many sessions went from one name of an agent to its one name."""

    old: str
    new: str
    sessions: int

    def __str__(self) -> str:
        """Say it to the user."""
        were = "1 session was" if self.sessions == 1 else f"{self.sessions:,} sessions were"
        return (
            f"{were} listed under {self.old} and {'is' if self.sessions == 1 else 'are'} listed under {self.new} now: "
            'it is one agent. What you allowed "always" there is asked again.'
        )


async def join_names(store: SessionStore) -> list[Joined]:
    """Give the sessions of known agents their one name; return what changed.

    A session that a living process has open keeps its name until the next time. Agents of authors are left alone,
    whatever they are called: only sessions of wrapped agents are joined.
    """
    done: list[Joined] = []
    for scope in await store.scopes():
        old = scope.agent or ""
        if (new := one_name(old)) == old:
            continue
        doubled = await _join_aliases(store, scope, Scope(scope.principal, new))
        sessions = [info.id async for info in _sessions(store, scope)]
        joined = 0
        for at in range(0, len(sessions), _AT_ONCE):
            some = sessions[at : at + _AT_ONCE]
            joined += sum(await asyncio.gather(*(_join(store, session, new, doubled) for session in some)))
        if joined:
            done.append(Joined(old, new, joined))
    return done


async def join_and_log(store: SessionStore) -> None:
    """Join the names, and log what changed; a store that cannot do it now is used as it is."""
    try:
        for joined in await join_names(store):
            log.warning("%s", joined)
    except HoldfastError as e:
        log.warning("Sessions of one agent may still be listed under several names: %s", e)


async def _join_aliases(store: SessionStore, old: Scope, new: Scope) -> frozenset[str]:
    """Let the agent's own ids lead to the same sessions under the new name.

    Return the sessions whose agent's id leads to another session there: the conversation was adopted twice, and only
    one of the two histories can go on in the agent's own session.
    """
    mine = [alias for alias in await store.aliases() if Scope(alias.principal, alias.agent) == old]
    there = await store.find_aliases(new, [alias.name for alias in mine]) if mine else {}
    doubled: set[str] = set()
    for alias in mine:
        if alias.name not in there:
            await store.set_alias(new, alias.name, alias.session)
        elif alias.session is not None and there[alias.name] != alias.session:
            doubled.add(alias.session)
    return frozenset(doubled)


async def _sessions(store: SessionStore, scope: Scope) -> AsyncIterator[SessionInfo]:
    cursor = None
    while True:
        page = await store.list(scope, cwd=None, archived="include", cursor=cursor, limit=200)
        for info in page.sessions:
            if info.agent == scope.agent:
                yield info
        if (cursor := page.cursor) is None:
            return


async def _join(store: SessionStore, session: str, name: str, doubled: frozenset[str]) -> bool:
    """Give a session its agent's one name; return whether it was done."""
    try:
        if KEY not in (await store.get(session)).state.memory:
            return False
        claim, record, _ = await claim_session(store, session, begins_entries=False, take_over=False)
    except (SessionBusy, SessionElsewhere, SessionNotFound):
        return False
    try:
        record.state.permissions = {}
        if session in doubled:
            AgentRecord().write(record.state.memory)
        await store.save(claim, Changes(state=record.state, agent=name))
    finally:
        await store.release(claim)
    return True
