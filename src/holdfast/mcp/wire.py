"""Opening a connection with the official SDK. Loaded late: with it comes half a second of imports.

All of the SDK that the rest needs is here, in `pipes` and in `web`: clients, its errors, and its values made ours.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from httpx2 import SSEError
from mcp import Client, MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    ListRootsResult,
    Root,
    RootsListChangedNotification,
)
from pydantic import BaseModel, FileUrl, ValidationError

from holdfast.mcp.pipes import open_pipes
from holdfast.mcp.servers import StdioServer
from holdfast.mcp.values import Progress, Prompt, Resource, Tool, ToolResult
from holdfast.mcp.web import open_web
from holdfast.model import Elicitation, new_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from mcp.client.session import ClientRequestContext

    from holdfast.mcp.connection import Surroundings
    from holdfast.mcp.pipes import ProcessWatch
    from holdfast.mcp.servers import Server
    from holdfast.mcp.values import Limits

PAGES = 100
"""A list that has more pages than this is cut: one that never ends must not keep a turn."""

QUESTIONS = 8
"""A server that has so many questions open gets no answer to more: nobody would read them."""

_US = Implementation(name="holdfast", version="1")


class Link:
    """An open connection to a server."""

    def __init__(self, client: Client, server: str) -> None:
        self._client = client
        self._server = server

    async def tools(self) -> list[Tool]:
        """List the tools."""
        if self._client.server_capabilities.tools is None:
            return []
        found: list[Tool] = []
        async for page in _pages(self._client.list_tools):
            for it in page.tools:
                hints = it.annotations
                title = it.title or (hints.title if hints else None) or it.name
                read_only = bool(hints and hints.read_only_hint)
                found.append(
                    Tool(
                        self._server, it.name, title, it.description or "", it.input_schema, it.output_schema, read_only
                    )
                )
        return found

    async def call(
        self, tool: str, arguments: dict[str, Any], on_progress: Callable[[Progress], Awaitable[None]]
    ) -> tuple[ToolResult, bool]:
        """Call a tool; say what it gave, and whether that is an error."""

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            await on_progress(Progress(progress, total, message))

        result = await self._client.call_tool(tool, arguments, progress_callback=heard)
        return ToolResult(tuple(_plain(it) for it in result.content), result.structured_content), result.is_error

    async def resources(self) -> list[Resource]:
        """List what can be read."""
        if self._client.server_capabilities.resources is None:
            return []
        return [
            Resource(self._server, it.uri, it.name, it.description or "", it.mime_type)
            async for page in _pages(self._client.list_resources)
            for it in page.resources
        ]

    async def read(self, uri: str) -> list[dict[str, Any]]:
        """Read something: its contents, as MCP has them."""
        return [_plain(it) for it in (await self._client.read_resource(uri)).contents]

    async def prompts(self) -> list[Prompt]:
        """List the prompts."""
        if self._client.server_capabilities.prompts is None:
            return []
        return [
            Prompt(self._server, it.name, it.description or "", tuple(_plain(arg) for arg in it.arguments or ()))
            async for page in _pages(self._client.list_prompts)
            for it in page.prompts
        ]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[dict[str, Any]]:
        """Get a prompt: its messages, each with role and content."""
        return [_plain(it) for it in (await self._client.get_prompt(name, arguments)).messages]

    async def tell_roots_changed(self) -> None:
        """Tell that the roots are others now."""
        await self._client.session.send_notification(RootsListChangedNotification())


@asynccontextmanager
async def open_link(
    server: Server, around: Surroundings, limits: Limits, watch: ProcessWatch, *, newest: bool
) -> AsyncGenerator[Link]:
    """Connect to a server.

    `newest` speaks the protocol that begins without a handshake where the server does; it is for servers that refuse
    one. The other way round would lose servers of before that die of a question they do not know, or never answer it.
    """

    @asynccontextmanager
    async def streams() -> AsyncGenerator[Any]:
        if isinstance(server, StdioServer):
            async with open_pipes(server, around.cwd, limits, watch) as pipes:
                yield pipes, pipes
        else:
            async with open_web(server, limits, watch) as pair:
                yield pair

    asking = 0

    async def list_roots(context: ClientRequestContext) -> ListRootsResult:  # noqa: ARG001
        paths = [Path(it) for it in around.roots()]
        return ListRootsResult(roots=[Root(uri=FileUrl(it.as_uri()), name=it.name or str(it)) for it in paths])

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG001
        nonlocal asking
        if params.mode not in around.modes():
            return ElicitResult(action="decline")  # the SDK says of whoever can be asked at all that all can be asked
        if asking >= QUESTIONS:
            return ElicitResult(action="cancel")
        asking += 1
        try:
            filled = await around.elicit(_elicitation(params))
        finally:
            asking -= 1
        if filled is None:
            return ElicitResult(action="cancel")
        accepted = filled.content if filled.action == "accept" else None
        return ElicitResult(action=filled.action, content=accepted)

    client = Client(
        streams(),
        mode="auto" if newest else "legacy",
        client_info=_US,
        list_roots_callback=list_roots,
        elicitation_callback=elicit if around.modes() else None,
        cache=None,
    )
    async with client:
        yield Link(client, server.name)


def is_lost(error: Exception) -> bool:
    """Whether an error says that the connection is over, not that a call failed."""
    if not isinstance(error, MCPError):
        return False
    # The code alone says nothing: servers use it for errors of their own.
    said = error.message.startswith(("Connection closed", "SSE stream ended", "SSE stream failed"))
    return (error.code == CONNECTION_CLOSED and said) or error.message == "Session terminated"


def wants_newest(error: BaseException) -> bool:
    """Whether an error says that the server does not know the handshake."""
    return isinstance(error, MCPError) and error.code in (UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND)


def fault_in(error: BaseException) -> str | None:
    """Tell what was wrong with a stream of events, where that is why a connection ended."""
    return str(error) if isinstance(error, SSEError) else None


def said_by(error: Exception) -> str | None:
    """Tell what the server said, where an error is its answer; None where it is something else."""
    if isinstance(error, MCPError):
        return error.message
    if isinstance(error, ValidationError | RuntimeError):
        return "it answered something that does not fit the question"
    return None


async def _pages(fetch: Callable[..., Awaitable[Any]]) -> AsyncGenerator[Any]:
    cursor: str | None = None
    for _ in range(PAGES):
        page = await fetch(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return


def _plain(it: BaseModel) -> dict[str, Any]:
    return it.model_dump(by_alias=True, mode="json", exclude_none=True)


def _elicitation(params: ElicitRequestParams) -> Elicitation:
    asked: dict[str, Any] = {"mode": params.mode, "message": params.message}
    if isinstance(params, ElicitRequestFormParams):
        return Elicitation("form", {**asked, "requestedSchema": _jsonable(params.requested_schema)})
    return Elicitation("url", {**asked, "url": params.url, "elicitationId": params.elicitation_id or new_id("elicit")})


def _jsonable(schema: Any) -> Any:
    return _plain(schema) if isinstance(schema, BaseModel) else schema
