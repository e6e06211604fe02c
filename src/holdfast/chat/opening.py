"""Which session a chat is about: a new one, the newest of this directory, or one that was named.

A conversation that cannot be restored is an error that says so; it is never replaced by a new one (P11).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from holdfast.errors import AuthRequired, RemoteError, UsageError

if TYPE_CHECKING:
    from holdfast.client import ClientSession, Connection, ListedSession

AUTH_REQUIRED = AuthRequired.code

Permissions: TypeAlias = Literal["ask", "allow", "deny"]


@dataclass(frozen=True, slots=True)
class Start:
    """What the user wants: which agent, where, and which of its sessions."""

    command: tuple[str, ...]
    """How the agent is started."""
    named: tuple[str, ...]
    """How the user named it on the command line."""
    cwd: str
    newest: bool = False
    resume: str | None = None
    permissions: Permissions | None = None
    """What to do when the agent asks; where nothing was said, ask if somebody is there, and deny if not."""
    protocol: Literal["auto", 1, 2] = "auto"

    @property
    def restores(self) -> bool:
        """Whether it is about a session that exists."""
        return self.newest or self.resume is not None

    def coming_back(self, session_id: str) -> str:
        """Say which command goes on with a session."""
        return shlex.join(("holdfast", "chat", "--resume", session_id, *self.named))


async def open_session(connection: Connection, start: Start) -> ClientSession:
    """Open the session that is wanted."""
    if start.resume is not None:
        return await restore(connection, *await _named(connection, start.resume, start.cwd))
    if start.newest:
        if not connection.can("list"):
            raise UsageError(f"{connection.agent.name} cannot list its sessions; name one with --resume ID")
        async for it in connection.sessions(start.cwd):
            return await restore(connection, it.id, it.cwd)
        raise UsageError(f"{connection.agent.name} has no session in {start.cwd}; begin one without --continue")
    return await connection.new_session(start.cwd)


async def restore(connection: Connection, session_id: str, cwd: str) -> ClientSession:
    """Go on with a session, with its past if the agent can tell it."""
    name = connection.agent.name
    if not restorable(connection):
        raise UsageError(f"{name} cannot restore sessions; begin a new one without --continue or --resume")
    try:
        if connection.can("load"):
            return await connection.load(session_id, cwd)
        return await connection.resume(session_id, cwd)
    except RemoteError as e:
        if e.code == AUTH_REQUIRED:
            raise
        raise UsageError(f"{name} cannot restore session {session_id}: {e.message}") from None


def restorable(connection: Connection) -> bool:
    """Say whether the agent can go on with a session later."""
    return connection.can("load") or connection.can("resume")


async def _named(connection: Connection, name: str, cwd: str) -> tuple[str, str]:
    """Find a session by its id or by the beginning of it; give its id and its directory."""
    if not connection.can("list"):
        return name, cwd
    found: list[ListedSession] = []
    async for it in connection.sessions():
        if it.id == name:
            return it.id, it.cwd
        if it.id.startswith((name, f"sess_{name}")):  # as `holdfast sessions` shows them
            found.append(it)
    if len(found) > 1:
        some = "\n".join(f"  {it.id}  {it.title or ''}" for it in found[:10])
        raise UsageError(f"several sessions begin with {name}; name one of them whole:\n{some}")
    if found:
        return found[0].id, found[0].cwd
    return name, cwd  # one without a prompt is not listed, and can be restored nevertheless
