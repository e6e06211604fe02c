"""The sessions that a wrapped agent keeps itself: listed, read whole when one is adopted, deleted (G9)."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from holdfast.client.listed_session import read_session_page
from holdfast.errors import AgentRefused, AuthRequired, RemoteError
from holdfast.model import Fold, OwnSession
from holdfast_app.wrap.process import as_object
from holdfast_app.wrap.record import AgentRecord
from holdfast_app.wrap.restore import TOLD_AGAIN, load, roots_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.client import ListedSession
    from holdfast.engine import SessionClient
    from holdfast.model import Event, Update
    from holdfast_app.wrap.process import AgentProcess

log: logging.Logger = logging.getLogger(__name__)

LIST_SECONDS = 5.0
"""An agent has so many seconds to list its sessions; after that only ours are listed."""

MAX_LISTED = 1_000
"""So many of an agent's own sessions are listed, the first that it names."""


async def own_sessions(process: AgentProcess, cwd: str | None) -> list[OwnSession]:
    """List what the agent has; as much as it has told where it fails or takes too long."""
    listed: dict[str, OwnSession] = {}
    try:
        async with asyncio.timeout(LIST_SECONDS):
            await _list(process, cwd, listed)
    except (AgentRefused, RemoteError, TimeoutError) as e:
        log.info("The agent does not list its sessions: %s", e)
    return list(listed.values())


async def _list(process: AgentProcess, cwd: str | None, listed: dict[str, OwnSession]) -> None:
    params: Update = {} if cwd is None else {"cwd": cwd}
    cursors: set[str] = set()
    while len(listed) < MAX_LISTED:
        page = as_object(await process.request("session/list", params))
        for session in read_session_page(page):
            if session.cwd and cwd in (None, session.cwd):  # not every agent heeds the filter
                listed.setdefault(session.id, _own(session))
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or cursor in cursors:
            return
        cursors.add(cursor)
        params = {**params, "cursor": cursor}


async def adopt(process: AgentProcess, own_id: str, client: SessionClient) -> tuple[OwnSession, Sequence[Event]] | None:
    """Load a session of the agent, and return all that was said in it; None where there is none."""
    if not process.can("load") or own_id in process.sessions:
        return None
    cwd = client.roots[0]
    try:
        back = await load(process, own_id, roots_for(process, client, cwd))
    except AgentRefused as e:
        if e.code == AuthRequired.code or not process.alive:
            raise
        return None
    events = [event for event in back.replayed or () if event.rule.fold is not Fold.STATE]
    back.remote.tell([event for event in back.replayed or () if event.kind in TOLD_AGAIN])
    if not any(event.key for event in events):
        process.forget(back.remote)  # agents exist that load what they do not have
        return None
    back.remote.answer = back.answer
    users = [event.key for event in events if event.kind.startswith("user_message")]
    record = AgentRecord(session=own_id, knows=users[-1] if users else None)
    return OwnSession(own_id, cwd, None, _now(), _memory(record)), events


async def delete(process: AgentProcess, own_id: str) -> None:
    """Delete a session of the agent, if it can."""
    process.sessions.pop(own_id, None)
    if process.can("delete"):
        try:
            async with asyncio.timeout(LIST_SECONDS):
                await process.request("session/delete", {"sessionId": own_id})
        except (AgentRefused, TimeoutError) as e:
            log.info("The agent does not delete its session: %s", e)


def _own(session: ListedSession) -> OwnSession:
    return OwnSession(
        session.id, session.cwd, session.title, _microseconds(session.updated_at), _memory(AgentRecord(session.id))
    )


def _memory(record: AgentRecord) -> dict[str, Any]:
    memory: dict[str, Any] = {}
    record.write(memory)
    return memory


def _microseconds(time: datetime | None) -> int:
    return 0 if time is None else int(time.timestamp() * 1_000_000)


def _now() -> int:
    return int(datetime.now(UTC).timestamp() * 1_000_000)
