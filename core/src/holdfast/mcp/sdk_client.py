"""A client of the official SDK, with plain values instead of the SDK's. Loaded late: the SDK takes half a second.

All that the rest of the package needs of the SDK is here and in `streams`: its client, its errors, its types.
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

from holdfast.mcp.servers import StdioServer
from holdfast.mcp.streams import open_http, open_process
from holdfast.mcp.types import Progress, Prompt, Resource, Tool, ToolResult
from holdfast.model import Elicitation, new_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from mcp.client.session import ClientRequestContext
    from mcp_types import Tool as SdkTool

    from holdfast.mcp.connection import SessionAccess
    from holdfast.mcp.servers import Server
    from holdfast.mcp.streams import EndListener
    from holdfast.mcp.types import McpLimits

MAX_PAGES = 100
"""A list with more pages is cut: one that never ends must not keep a turn."""

MAX_QUESTIONS = 8
"""While so many questions of a server are open, more are cancelled: nobody would read them."""

_US = Implementation(name="holdfast", version="1")


class SdkClient:
    """An open connection to a server."""

    def __init__(self, client: Client, server: str) -> None:
        self._client = client
        self._server = server

    async def tools(self) -> list[Tool]:
        """Return the tools of the server."""
        if self._client.server_capabilities.tools is None:
            return []
        return [_tool(self._server, tool) async for page in _pages(self._client.list_tools) for tool in page.tools]

    async def call(
        self, tool: str, arguments: dict[str, Any], on_progress: Callable[[Progress], Awaitable[None]]
    ) -> tuple[ToolResult, bool]:
        """Call a tool; return its result, and whether that is an error."""

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            await on_progress(Progress(progress, total, message))

        result = await self._client.call_tool(tool, arguments, progress_callback=progressed)
        content = tuple([_plain(block) for block in result.content])
        return ToolResult(content, result.structured_content), result.is_error

    async def resources(self) -> list[Resource]:
        """Return the resources of the server."""
        if self._client.server_capabilities.resources is None:
            return []
        return [
            Resource(self._server, resource.uri, resource.name, resource.description or "", resource.mime_type)
            async for page in _pages(self._client.list_resources)
            for resource in page.resources
        ]

    async def read(self, uri: str) -> list[dict[str, Any]]:
        """Return the contents of a resource, as MCP has them."""
        return [_plain(content) for content in (await self._client.read_resource(uri)).contents]

    async def prompts(self) -> list[Prompt]:
        """Return the prompts of the server."""
        if self._client.server_capabilities.prompts is None:
            return []
        return [
            Prompt(
                self._server,
                prompt.name,
                prompt.description or "",
                tuple(_plain(argument) for argument in prompt.arguments or ()),
            )
            async for page in _pages(self._client.list_prompts)
            for prompt in page.prompts
        ]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[dict[str, Any]]:
        """Return the messages of a prompt, each with role and content."""
        return [_plain(message) for message in (await self._client.get_prompt(name, arguments)).messages]

    async def tell_roots_changed(self) -> None:
        """Notify the server that the roots have changed."""
        await self._client.session.send_notification(RootsListChangedNotification())


@asynccontextmanager
async def open_client(
    server: Server, session: SessionAccess, limits: McpLimits, listener: EndListener, *, newest: bool
) -> AsyncGenerator[SdkClient]:
    """Connect to a server.

    `newest` speaks the protocol version that begins without a handshake; it is for servers that refuse the handshake.
    Trying it first would lose older servers, which may exit at a request they do not know, or never answer it.
    """

    @asynccontextmanager
    async def streams() -> AsyncGenerator[Any]:
        if isinstance(server, StdioServer):
            async with open_process(server, session.cwd, limits, listener) as both:
                yield both, both
        else:
            async with open_http(server, limits, listener) as pair:
                yield pair

    questions = 0

    async def list_roots(context: ClientRequestContext) -> ListRootsResult:  # noqa: ARG001
        roots = [Path(root) for root in session.roots()]
        return ListRootsResult(roots=[Root(uri=FileUrl(root.as_uri()), name=root.name or str(root)) for root in roots])

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG001
        nonlocal questions
        if params.mode not in session.modes():
            return ElicitResult(action="decline")  # the SDK advertises both modes where it advertises one
        if questions >= MAX_QUESTIONS:
            return ElicitResult(action="cancel")
        questions += 1
        try:
            answer = await session.elicit(_elicitation(params))
        finally:
            questions -= 1
        if answer is None:
            return ElicitResult(action="cancel")
        accepted = answer.content if answer.action == "accept" else None
        return ElicitResult(action=answer.action, content=accepted)

    client = Client(
        streams(),
        mode="auto" if newest else "legacy",
        client_info=_US,
        list_roots_callback=list_roots,
        elicitation_callback=elicit if session.modes() else None,
        cache=None,
    )
    async with client:
        yield SdkClient(client, server.name)


def is_connection_lost(error: Exception) -> bool:
    """Return whether an error says that the connection is over, not that a call failed."""
    if not isinstance(error, MCPError):
        return False
    # The code alone says nothing: servers use it for errors of their own.
    lost = error.message.startswith(("Connection closed", "SSE stream ended", "SSE stream failed"))
    return (error.code == CONNECTION_CLOSED and lost) or error.message == "Session terminated"


def refuses_handshake(error: BaseException) -> bool:
    """Return whether an error says that the server does not know the handshake."""
    return isinstance(error, MCPError) and error.code in (UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND)


def stream_fault(error: BaseException) -> str | None:
    """Return what was wrong with a stream of events, where that is why a connection ended."""
    return str(error) if isinstance(error, SSEError) else None


def server_message(error: Exception) -> str | None:
    """Return what the server said, where an error is its response; None where it is something else."""
    if isinstance(error, MCPError):
        return error.message
    if isinstance(error, ValidationError | RuntimeError):
        return "it answered something that does not fit the question"
    return None


async def _pages(fetch: Callable[..., Awaitable[Any]]) -> AsyncGenerator[Any]:
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await fetch(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return


def _tool(server: str, tool: SdkTool) -> Tool:
    hints = tool.annotations
    destructive = bool(hints and hints.destructive_hint)
    return Tool(
        server,
        tool.name,
        tool.title or (hints.title if hints else None) or tool.name,
        tool.description or "",
        tool.input_schema,
        tool.output_schema,
        # A server that says both is not believed in what would spare the user a question (P13).
        read_only=bool(hints and hints.read_only_hint) and not destructive,
        destructive=destructive,
    )


def _plain(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


def _elicitation(params: ElicitRequestParams) -> Elicitation:
    asked: dict[str, Any] = {"mode": params.mode, "message": params.message}
    if isinstance(params, ElicitRequestFormParams):
        schema: Any = params.requested_schema
        plain = _plain(schema) if isinstance(schema, BaseModel) else schema
        return Elicitation("form", {**asked, "requestedSchema": plain})
    return Elicitation("url", {**asked, "url": params.url, "elicitationId": params.elicitation_id or new_id("elicit")})
