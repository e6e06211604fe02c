"""Opening the session a chat is about: a new one, the newest of the directory, or one the user named.

A conversation that cannot be restored is an error that says so; it is never replaced by a new one (P11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import AuthRequired, RemoteError, UsageError
from holdfast_app.known_agents import one_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.client import ClientSession, Connection, ListedSession
    from holdfast_app.chat.settings import ChatSettings

AUTH_REQUIRED = AuthRequired.code


async def open_session(connection: Connection, settings: ChatSettings) -> ClientSession:
    """Open the session the settings ask for. Raises `UsageError` if it cannot be found or restored."""
    if settings.resume is not None:
        _check_whose(connection, settings)
        return await restore_session(connection, settings, *await _find(connection, settings.resume, settings.cwd))
    if settings.newest:
        if not connection.can("list"):
            raise UsageError(f"{connection.agent.name} cannot list its sessions; name one with --resume ID")
        async for listed in connection.sessions(settings.cwd):
            return await restore_session(connection, settings, listed.id, listed.cwd)
        raise UsageError(f"{connection.agent.name} has no session in {settings.cwd}; begin one without --continue")
    return await begin_session(connection, settings, settings.cwd)


def _check_whose(connection: Connection, settings: ChatSettings) -> None:
    """Raise `UsageError` if the store has the session to resume for another agent: this one would not know it."""
    whose = settings.belongs_to
    if whose is not None and connection.agent.name not in (whose.agent, one_name(whose.agent)):
        raise UsageError(
            f"session {settings.resume} belongs to the agent {whose.agent}, not to {connection.agent.name}. "
            f"Type: {whose.line}"
        )


async def begin_session(
    connection: Connection, settings: ChatSettings, cwd: str, additional: Sequence[str] = ()
) -> ClientSession:
    """Create a session, with the MCP servers of the chat."""
    return await connection.new_session(cwd, additional=additional, mcp_servers=_servers(connection, settings))


async def fork_session(
    connection: Connection, settings: ChatSettings, session: ClientSession, up_to: str | None = None
) -> ClientSession:
    """Create a session with the history of another, in the same directories, with the MCP servers of the chat."""
    return await connection.fork(
        session.id, session.cwd, additional=session.additional, mcp_servers=_servers(connection, settings), up_to=up_to
    )


async def restore_session(connection: Connection, settings: ChatSettings, session_id: str, cwd: str) -> ClientSession:
    """Restore a session, with its past if the agent can replay it."""
    name = connection.agent.name
    if not can_restore(connection):
        raise UsageError(f"{name} cannot restore sessions; begin a new one without --continue or --resume")
    try:
        if connection.can("load"):
            return await connection.load(session_id, cwd, mcp_servers=_servers(connection, settings))
        return await connection.resume(session_id, cwd, mcp_servers=_servers(connection, settings))
    except RemoteError as e:
        if e.code == AUTH_REQUIRED:
            raise
        why = f"{e.message}: {e.reason}" if e.reason else e.message
        raise UsageError(f"{name} cannot restore session {session_id}: {why}") from None


def _servers(connection: Connection, settings: ChatSettings) -> list[dict[str, Any]]:
    """Return the MCP servers of the chat as the protocol has them: version 1 gives programs no type (B2)."""
    return [
        {name: value for name, value in server.items() if name != "type"}
        if connection.protocol == 1 and server["type"] == "stdio"
        else server
        for server in settings.mcp_servers
    ]


def can_restore(connection: Connection) -> bool:
    """Return whether the agent can restore sessions."""
    return connection.can("load") or connection.can("resume")


async def _find(connection: Connection, name: str, cwd: str) -> tuple[str, str]:
    """Find a session by its id or by the beginning of it; return its id and its directory."""
    if not connection.can("list"):
        return name, cwd
    found: list[ListedSession] = []
    async for listed in connection.sessions():
        if listed.id == name:
            return listed.id, listed.cwd
        if listed.id.startswith((name, f"sess_{name}")):  # as `holdfast sessions` shows them
            found.append(listed)
    if len(found) > 1:
        some = "\n".join(f"  {listed.id}  {listed.title or ''}" for listed in found[:10])
        raise UsageError(f"several sessions begin with {name}; name one of them whole:\n{some}")
    if found:
        return found[0].id, found[0].cwd
    return name, cwd  # one without a prompt is not listed, and can be restored nevertheless
