"""`Toolbox`: all MCP servers of one session. Two sessions never share a connection (E6)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.errors import McpError, ServerUnavailable, ToolFailed
from holdfast.mcp.connection import Connection, Surroundings
from holdfast.mcp.servers import redacted
from holdfast.mcp.values import Limits, text_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from holdfast.mcp.servers import Server
    from holdfast.mcp.values import Progress, Prompt, Resource, ServerStatus, Tool, ToolResult
    from holdfast.mcp.wire import Link
    from holdfast.model import Elicitation, ElicitationAnswer

log = logging.getLogger(__name__)

T = TypeVar("T")

DEFAULT = -1.0
"""Stands for the limit that holds unless one is given."""


class Toolbox:
    """The servers of a session: what they offer, under their names, and how they are doing.

    They connect side by side and behind one's back: whoever asks for something waits for those it needs. One that
    fails is missing, and `servers` says why; a call to it says so too.
    """

    def __init__(
        self,
        *,
        cwd: str,
        roots: Callable[[], Sequence[str]],
        elicit: Callable[[Elicitation], Awaitable[ElicitationAnswer | None]] | None = None,
        modes: Callable[[], Collection[str]] = lambda: ("form", "url"),
        on_failure: Callable[[ServerStatus], None] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._around = Surroundings(cwd, roots, elicit or _nobody, modes if elicit is not None else tuple)
        self._limits = limits or Limits()
        self._on_failure = on_failure or _nothing
        self._connections: dict[str, Connection] = {}
        self._roots = tuple(roots())

    @property
    def servers(self) -> tuple[ServerStatus, ...]:
        """The servers, and how each is doing."""
        return tuple(it.status for it in self._connections.values())

    async def ready(self) -> tuple[ServerStatus, ...]:
        """Wait until every server is ready or has failed; give how each is doing."""
        for connection in self._connections.values():
            await connection.settled()
        return self.servers

    # Tools

    async def tools(self) -> list[Tool]:
        """List the tools of all servers that are ready."""
        return await self._of_all("listing tools", lambda link: link.tools())

    async def call(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = DEFAULT,  # noqa: ASYNC109  (the clock starts again whenever progress is heard)
        on_progress: Callable[[Progress], Awaitable[None]] | None = None,
    ) -> ToolResult:
        """Call a tool; `ToolFailed` if it gives an error, `ToolTimeout`, `ServerUnavailable`.

        `timeout` is how many seconds the server may be silent; None is for ever.
        """
        connection = self._get(server)

        async def work(link: Link, alive: Callable[[], None]) -> tuple[ToolResult, bool]:
            over = telling = False
            latest: Progress | None = None

            async def heard(progress: Progress) -> None:
                """Tell one after the other; who is slow to listen misses what is outdated by then."""
                nonlocal latest, telling
                if over:  # the SDK may tell of it later than of the result
                    return
                alive()
                latest = progress
                if telling or on_progress is None:
                    return
                telling = True
                try:
                    while latest is not None and not over:
                        now, latest = latest, None
                        await on_progress(now)
                finally:
                    telling = False

            try:
                return await link.call(tool, dict(arguments or {}), heard)
            finally:
                over = True

        limit = self._limits.call if timeout == DEFAULT else timeout
        result, failed = await connection.use(f"tool {tool!r}", limit, work, revive=True)
        if failed:
            said = redacted(text_of(result.content), connection.server.secrets)
            raise ToolFailed(server, f"tool {tool!r} failed: {said or 'it did not say why'}", result.content)
        return result

    # Resources and prompts

    async def resources(self) -> list[Resource]:
        """List what the servers let one read."""
        return await self._of_all("listing resources", lambda link: link.resources())

    async def read(self, server: str, uri: str) -> list[dict[str, Any]]:
        """Read a resource: its contents, each with `uri` and `text` or `blob`."""
        return await self._of_one(server, f"reading {uri!r}", lambda link: link.read(uri))

    async def prompts(self) -> list[Prompt]:
        """List the prompts the servers have ready."""
        return await self._of_all("listing prompts", lambda link: link.prompts())

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Get a prompt: its messages, each with `role` and `content`."""
        return await self._of_one(server, f"prompt {name!r}", lambda link: link.prompt(name, dict(arguments or {})))

    # Its life; the session's business

    async def change(self, servers: Iterable[Server]) -> None:
        """Have these servers and no others. Those that stay the same stay connected, and hear of other roots."""
        wanted = {it.name: it for it in servers}
        gone = [it for name, it in self._connections.items() if wanted.get(name) != it.server]
        kept = {it.server.name: it for it in self._connections.values() if it not in gone}
        new: list[Connection] = []
        self._connections = {}
        for name, server in wanted.items():
            if name not in kept:
                new.append(Connection(server, self._around, self._limits, self._on_failure))
            self._connections[name] = kept.get(name) or new[-1]
        for connection in new:
            connection.start()
        await asyncio.gather(*(it.close() for it in gone))
        if self._roots != (roots := tuple(self._around.roots())):
            self._roots = roots
            await asyncio.gather(*(it.tell_roots_changed() for it in kept.values()))

    async def close(self) -> None:
        """End all connections; no process of theirs is left then."""
        await asyncio.gather(*(it.close() for it in self._connections.values()))

    # Inside

    def _get(self, server: str) -> Connection:
        try:
            return self._connections[server]
        except KeyError:
            known = ", ".join(self._connections) or "none"
            raise ServerUnavailable(server, f"this session has no such server; it has: {known}") from None

    async def _of_one(self, server: str, what: str, ask: Callable[[Link], Awaitable[T]]) -> T:
        return await self._get(server).use(what, self._limits.call, lambda link, _: ask(link), revive=True)

    async def _of_all(self, what: str, ask: Callable[[Link], Awaitable[list[T]]]) -> list[T]:
        """Ask all servers at once; one that cannot answer has nothing to offer. Who never was ready is let be."""

        async def one(connection: Connection) -> list[T]:
            try:
                revive = connection.was_ready
                return await connection.use(what, self._limits.listing, lambda link, _: ask(link), revive=revive)
            except ServerUnavailable:
                return []  # whoever asks for `servers` sees why
            except McpError as e:
                log.warning("%s", e)
                return []

        found = await asyncio.gather(*(one(it) for it in self._connections.values()))
        return [it for some in found for it in some]


def _nothing(_: ServerStatus) -> None: ...


async def _nobody(_: Elicitation) -> ElicitationAnswer | None: ...
