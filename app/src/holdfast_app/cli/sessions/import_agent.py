"""`holdfast sessions import --from AGENT`: what an agent has kept of its sessions itself becomes sessions of ours."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import HoldfastError
from holdfast_app.cli import output
from holdfast_app.cli.store_arguments import LOCAL

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.store import SessionStore
    from holdfast_app.importers import FoundSession

_UNREADABLE = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError),
    *(sqlite3.Error, HoldfastError),
)
"""What reading a file of an unknown version can raise."""


class Imported(NamedTuple):
    """What became of an agent's sessions."""

    agent: str
    imported: list[dict[str, Any]]
    present: list[str]
    """The agent's ids of those that are here already, or were and are deleted."""
    errors: list[dict[str, str]]


async def import_agent(store: SessionStore, source: str, home: Path | None, agent: str | None) -> Imported:
    """Add the sessions that an agent keeps itself and that are not here yet.

    `source` is one of `holdfast_app.importers.AGENTS`, `home` where it keeps them if not in the usual place, `agent`
    the name they get here if not `source`.
    """
    from holdfast_app.importers import open_agent_store  # noqa: PLC0415
    from holdfast_app.known_agents import one_name  # noqa: PLC0415

    theirs = open_agent_store(source, home)
    done = Imported(one_name(agent or source), [], [], [])
    places = theirs.locate()
    with output.working(f"Reading what {source} has kept", len(places)) as advance:
        for place in reversed(places):  # the oldest first, so that the newest is at the top of lists
            try:
                found = theirs.read(place)
                if found is not None:
                    await _import_found(store, found, done)
            except _UNREADABLE as e:
                done.errors.append({"place": str(place), "error": f"{type(e).__name__}: {e}"})
            advance(1)
    return done


async def _import_found(store: SessionStore, found: FoundSession, done: Imported) -> None:
    """Add a session, unless it is here, wrapped or imported, or was and is deleted.

    The agent's id leads to ours before the session is there: an import that was interrupted in between goes on with it.
    """
    from holdfast.errors import SessionNotFound  # noqa: PLC0415
    from holdfast.model import Scope, new_session_id  # noqa: PLC0415

    scope = Scope(LOCAL, done.agent)
    names = await store.find_aliases(scope, [found.id])
    session = names.get(found.id, new_session_id())
    if session is None:
        done.present.append(found.id)
        return
    try:
        await store.get(session)
    except SessionNotFound:
        await store.set_alias(scope, found.id, session)
        await _add(store, found, session, done.agent)
        done.imported.append({"sessionId": session, "agentSessionId": found.id, "cwd": found.cwd})
    else:
        done.present.append(found.id)


def tell_imported(source: str, done: Imported, *, as_json: bool) -> None:
    """Print what became of an agent's sessions."""
    for error in done.errors:
        output.tell(f"holdfast: {error['place']} was not imported: {error['error']}")
    if as_json:
        refused = [{"file": error["place"], "reason": error["error"]} for error in done.errors]
        about = {"agent": done.agent, "sessions": done.imported, "present": len(done.present), "refused": refused}
        output.say(output.json_text(about))
        return
    here = f"; {output.plural(len(done.present), 'session was', 'sessions were')} here already" if done.present else ""
    if not (done.imported or done.present or done.errors):
        output.say(f"{source} has kept no session here; --home names another directory of it")
        return
    output.say(f"{output.plural(len(done.imported), 'session was', 'sessions were')} imported for {done.agent}{here}")


async def _add(store: SessionStore, found: FoundSession, session: str, agent: str) -> None:
    """Add a session under an id. A turn that goes on in it asks the agent to bring back its own session (G4)."""
    from holdfast.format import lines_of  # noqa: PLC0415
    from holdfast.model import (  # noqa: PLC0415
        History,
        SessionInfo,
        SessionState,
        checked_cwd,
        event_from,
        text_without_lone_surrogates,
        title_from,
    )
    from holdfast_app.wrap.record import AgentRecord  # noqa: PLC0415

    history = History()
    for update in found.updates:
        history.apply(event_from(update))
    record = AgentRecord(session=found.id, knows=found.prompts[-1])
    state = SessionState(
        title_by="agent" if found.title else "prompt", model=found.spent.model, tokens=found.spent.tokens or None
    )
    if (usage := found.spent.usage) is not None:
        state.latest["usage_update"] = usage
    record.write(state.memory)
    entries = list(history)
    words = next(entry.text() for entry in entries if entry.entity == "user_message")
    messages = sum(entry.entity in ("user_message", "agent_message") for entry in entries)
    now = time.time_ns() // 1_000
    info = SessionInfo(
        id=session,
        cwd=checked_cwd(found.cwd),
        additional=(),
        title=text_without_lone_surrogates(found.title) if found.title else title_from(words),
        created_at=min(found.created_at or now, now),
        updated_at=min(found.updated_at or now, now),
        archived=False,
        messages=messages,
        principal=LOCAL,
        agent=agent,
    )
    await store.add(info, state, lines_of(entries))
