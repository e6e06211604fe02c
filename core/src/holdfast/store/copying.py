"""All sessions of one store copied into another, of whatever kind. A copy that was stopped goes on where it was.

Each session is added whole, by one transaction, so what is there is done. Parents come before their forks, and what a
fork has in common with its parent is stored once there too. A session that is there already is left as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from holdfast.errors import SessionNotFound, StoreDamaged
from holdfast.format import Line, with_texts
from holdfast.model import Scope
from holdfast.store.port import Shared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.model import SessionInfo
    from holdfast.store.port import SessionStore

PAGE = 500

Outcome: TypeAlias = Literal["copied", "there", "differs", "busy", "damaged"]


class CopiedSession(NamedTuple):
    """A session that was looked at, and what became of it.

    ``there``: it was there, the same. ``differs``: one of its id is there and is another, or is not up to date.
    ``busy``: a turn of it runs, or broke and is not sealed. ``damaged``: a part of it cannot be read.
    """

    session: str
    outcome: Outcome


async def list_all(store: SessionStore) -> list[SessionInfo]:
    """Return all sessions of a store, those that never got a prompt too, the oldest first."""
    found: list[SessionInfo] = []
    while page := await store.find("", limit=PAGE, after=found[-1].id if found else ""):
        found += page
    return sorted(found, key=lambda info: (info.created_at, info.id))


async def copy_sessions(
    source: SessionStore, target: SessionStore, sessions: list[SessionInfo]
) -> AsyncIterator[CopiedSession]:
    """Copy sessions, the oldest first; tell what became of each."""
    for info in sessions:
        try:
            yield CopiedSession(info.id, await _copy(source, target, info.id))
        except SessionNotFound:  # it was deleted meanwhile
            continue
        except StoreDamaged:
            yield CopiedSession(info.id, "damaged")


async def copy_aliases(source: SessionStore, target: SessionStore) -> None:
    """Copy the other names of sessions, where the target does not know them."""
    for alias in await source.aliases():
        scope = Scope(alias.principal, alias.agent)
        if alias.name not in await target.find_aliases(scope, [alias.name]):
            await target.set_alias(scope, alias.name, alias.session)


async def _copy(source: SessionStore, target: SessionStore, session: str) -> Outcome:
    seen = await source.snapshot(session)
    if seen.unsealed is not None:
        return "busy"
    record = seen.record
    try:
        there = await target.get(session)
    except SessionNotFound:
        there = None
    if there is not None:
        is_same = (there.info, there.state, there.lines) == (record.info, record.state, record.lines)
        return "there" if is_same else "differs"
    bodies = await _bodies(source, session, record.lines)
    private = await source.private_entries(session)
    shared = await _shared(source, target, record.state.forked_from, bodies)
    lines: list[Line] = with_texts(bodies)
    await target.add(record.info, record.state, lines, private=private, shared=shared)
    return "copied"


async def _shared(source: SessionStore, target: SessionStore, parent: str | None, bodies: list[bytes]) -> Shared | None:
    """Find out how much of a fork is its parent's, where both are on their way."""
    if parent is None or not bodies:
        return None
    try:
        there = await target.get(parent)
        theirs = await _bodies(source, parent, min(there.lines, len(bodies)))
    except (SessionNotFound, StoreDamaged):
        return None
    common = next((at for at, pair in enumerate(zip(bodies, theirs, strict=False)) if pair[0] != pair[1]), len(theirs))
    return Shared(parent, common) if common else None


async def _bodies(store: SessionStore, session: str, lines: int) -> list[bytes]:
    blocks = [block async for some in store.read(session, 0, lines) for block in some]
    return [line for block in blocks for line in block.split(b"\n")]
