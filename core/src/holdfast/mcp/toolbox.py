"""`Toolbox`: all MCP servers of one session. Two sessions never share a connection (E6)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.errors import McpError, ServerUnavailable, ToolFailed
from holdfast.mcp.connection import ServerConnection, SessionAccess
from holdfast.mcp.secrets import redacted
from holdfast.mcp.types import McpLimits, text_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from holdfast.mcp.sdk_client import SdkClient
    from holdfast.mcp.servers import Server
    from holdfast.mcp.types import Progress, Prompt, Resource, ServerStatus, Tool, ToolResult
    from holdfast.model import Elicitation, ElicitationAnswer

log: logging.Logger = logging.getLogger(__name__)

T = TypeVar("T")

DEFAULT = -1.0
"""Stands for the default time limit of a call."""


class Toolbox:
    """The servers of a session: what they offer, under their names, and the state of each.

    All servers connect at once, in the background; a request waits for the servers it needs. A server that fails is
    left out of lists, `servers` says why, and a call to it raises `ServerUnavailable`.

    Args:
        cwd: The directory in which servers are started.
        roots: Returns the session's roots, which servers may ask for.
        elicit: Asks the user a server's question; without it servers cannot ask.
        modes: Returns how the user can be asked now: `form`, `url`.
        on_failure: Is called with the status of a server that has failed.
        limits: How long servers may take, and how much they may send.

    """

    def __init__(
        self,
        *,
        cwd: str,
        roots: Callable[[], Sequence[str]],
        elicit: Callable[[Elicitation], Awaitable[ElicitationAnswer | None]] | None = None,
        modes: Callable[[], Collection[str]] = lambda: ("form", "url"),
        on_failure: Callable[[ServerStatus], None] | None = None,
        limits: McpLimits | None = None,
    ) -> None:
        self._session = SessionAccess(cwd, roots, elicit or _ask_nobody, modes if elicit is not None else tuple)
        self._limits = limits or McpLimits()
        self._on_failure = on_failure or _ignore
        self._connections: dict[str, ServerConnection] = {}
        self._roots = tuple(roots())

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        """The servers, and the state of each."""
        return tuple(connection.status for connection in self._connections.values())

    async def ready(self) -> tuple[ServerStatus, ...]:
        """Wait until every server is ready or has failed.

        Returns:
            The state of each.

        """
        for connection in self._connections.values():
            await connection.settled()
        return self.servers

    # Tools

    async def tools(self) -> list[Tool]:
        """Return the tools of all servers that are ready.

        Returns:
            The tools.

        """
        return await self._ask_all("listing tools", lambda client: client.tools())

    async def call(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = DEFAULT,  # noqa: ASYNC109  (progress restarts the clock)
        on_progress: Callable[[Progress], Awaitable[None]] | None = None,
    ) -> ToolResult:
        """Call a tool.

        Args:
            server: The name of the server.
            tool: The name of the tool.
            arguments: What the tool is called with.
            timeout: How many seconds the server may be silent; None is for ever.
            on_progress: Is called with the progress that the server tells.

        Returns:
            What the tool returned.

        Raises:
            ToolFailed: The tool gave an error.
            ToolTimeout: The server was silent for too long.
            ServerUnavailable: The server is not there.

        """
        connection = self._get(server)
        limit = self._limits.call if timeout == DEFAULT else timeout
        result, failed = await connection.call_tool(tool, arguments or {}, limit, on_progress)
        if failed:
            said = redacted(text_of(result.content), connection.server.secrets)
            raise ToolFailed(server, f"tool {tool!r} failed: {said or 'it did not say why'}", result.content)
        return result

    # Resources and prompts

    async def resources(self) -> list[Resource]:
        """Return the resources of all servers that are ready.

        Returns:
            The resources.

        """
        return await self._ask_all("listing resources", lambda client: client.resources())

    async def read(self, server: str, uri: str) -> list[dict[str, Any]]:
        """Read a resource.

        Args:
            server: the name of the server.
            uri: the address of the resource.

        Returns:
            Its contents, each with `uri` and `text` or `blob`.

        Raises:
            ServerUnavailable: the server is not there.
            McpError: the server refuses, or is silent for too long.

        """
        return await self._ask(server, f"reading {uri!r}", lambda client: client.read(uri))

    async def prompts(self) -> list[Prompt]:
        """Return the prompts of all servers that are ready.

        Returns:
            The prompts.

        """
        return await self._ask_all("listing prompts", lambda client: client.prompts())

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Fetch a prompt.

        Args:
            server: the name of the server.
            name: the name of the prompt.
            arguments: what is filled into it.

        Returns:
            Its messages, each with `role` and `content`.

        Raises:
            ServerUnavailable: the server is not there.
            McpError: the server refuses, or is silent for too long.

        """
        return await self._ask(server, f"prompt {name!r}", lambda client: client.prompt(name, dict(arguments or {})))

    # For the session

    async def change(self, servers: Iterable[Server]) -> None:
        """Have these servers and no others. Those that stay the same stay connected, and are told of other roots."""
        wanted = {server.name: server for server in servers}
        gone = [old for name, old in self._connections.items() if wanted.get(name) != old.server]
        kept = {old.server.name: old for old in self._connections.values() if old not in gone}
        new: list[ServerConnection] = []
        self._connections = {}
        for name, server in wanted.items():
            if name not in kept:
                new.append(ServerConnection(server, self._session, self._limits, self._on_failure))
            self._connections[name] = kept.get(name) or new[-1]
        for connection in new:
            connection.start()
        await asyncio.gather(*(connection.close() for connection in gone))
        if self._roots != (roots := tuple(self._session.roots())):
            self._roots = roots
            await asyncio.gather(*(connection.tell_roots_changed() for connection in kept.values()))

    async def close(self) -> None:
        """End all connections. Afterwards no process of theirs is left."""
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))

    # Inside

    def _get(self, server: str) -> ServerConnection:
        try:
            return self._connections[server]
        except KeyError:
            known = ", ".join(self._connections) or "none"
            raise ServerUnavailable(server, f"this session has no such server; it has: {known}") from None

    async def _ask(self, server: str, what: str, question: Callable[[SdkClient], Awaitable[T]]) -> T:
        return await self._get(server).ask(what, self._limits.call, question, restart=True)

    async def _ask_all(self, what: str, question: Callable[[SdkClient], Awaitable[list[T]]]) -> list[T]:
        """Ask all servers at once and join their lists. A server that was never ready is not restarted for it."""

        async def ask(connection: ServerConnection) -> list[T]:
            try:
                return await connection.ask(what, self._limits.listing, question, restart=connection.was_ready)
            except ServerUnavailable:
                return []  # `servers` says why
            except McpError as e:
                log.warning("%s", e)
                return []

        lists = await asyncio.gather(*(ask(connection) for connection in self._connections.values()))
        return [item for items in lists for item in items]


def _ignore(_: ServerStatus) -> None: ...


async def _ask_nobody(_: Elicitation) -> ElicitationAnswer | None: ...
