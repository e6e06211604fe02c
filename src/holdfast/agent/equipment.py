"""What a client gives to a session, made into what its agent can use: MCP servers into a toolbox.

Holds the toolbox with the live session, puts questions of servers to the user of the running turn, and tells the
client of servers that fail. What a server is and how it is talked to is the business of `holdfast.mcp`, which is not
even loaded for a session without servers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from holdfast.errors import TurnOver
from holdfast.model import ElicitationAnswer

if TYPE_CHECKING:
    from holdfast.engine import LiveSession
    from holdfast.mcp import Server, ServerStatus, Toolbox
    from holdfast.model import Elicitation, Update

NOTICE_CHARACTERS = 1_000
"""How much of a server's failure a notice tells; the log has more."""


class Equipment(NamedTuple):
    """What a client gives to a session for as long as it is open."""

    servers: tuple[Server, ...] = ()
    modes: frozenset[str] = frozenset()
    """How the client can show its user a question that a server has: `form`, `url`."""


async def equip(session: LiveSession, own: tuple[Server, ...]) -> None:
    """Let a session have the servers its client named and those of the agent's own, and no others."""
    given = _equipment(session)
    if session.extension is None and not (given.servers or own):
        return
    from holdfast.mcp.servers import unique  # noqa: PLC0415  (not everybody needs it)

    await toolbox_of(session).change(unique((*given.servers, *own)))


async def unequip(session: LiveSession) -> None:
    """End a session's connections."""
    if session.extension is not None:
        await toolbox_of(session).close()


def toolbox_of(session: LiveSession) -> Toolbox:
    """Get the toolbox of a session; it is empty where nobody put anything into it."""
    kept = cast("Toolbox | None", session.extension)
    return _empty(session) if kept is None else kept


def _empty(session: LiveSession) -> Toolbox:
    from holdfast.mcp import Toolbox  # noqa: PLC0415

    session.extension = box = Toolbox(
        cwd=session.cwd,
        roots=lambda: session.roots,
        elicit=partial(_elicit, session),
        modes=lambda: _equipment(session).modes,
        on_failure=lambda status: session.publish(_notice(status)),
    )
    return box


def troubles(session: LiveSession) -> list[Update]:
    """Tell which servers have failed, to somebody who was not there."""
    if session.extension is None:
        return []
    return [_notice(it) for it in toolbox_of(session).servers if it.state == "failed"]


async def _elicit(session: LiveSession, question: Elicitation) -> ElicitationAnswer | None:
    """Ask the user, if a turn runs in which one can be asked."""
    turn = session.turn
    if turn is None:
        return None
    try:
        answer = await turn.ask(question)
    except TurnOver:
        return None
    return answer if isinstance(answer, ElicitationAnswer) else None


def _equipment(session: LiveSession) -> Equipment:
    return session.equipment if isinstance(session.equipment, Equipment) else Equipment()


def _notice(status: ServerStatus) -> Update:
    title = f"MCP server {status.name} is not available"
    reason = (status.reason or "")[-NOTICE_CHARACTERS:]
    return {"sessionUpdate": "notice", "severity": "warning", "title": title, "description": reason}
