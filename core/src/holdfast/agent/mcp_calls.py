"""Calls to tools of MCP servers, shown to the user as tool calls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from holdfast.errors import McpError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.agent.tools import ToolCall
    from holdfast.agent.turn import Turn
    from holdfast.mcp import Progress, ToolResult
    from holdfast.model import ToolKind

PROGRESS_SECONDS = 0.1
"""Progress is shown no more often than this: all that is shown is stored."""


PROGRESS_CHARACTERS = 200
"""What is longer is no title any more."""


async def call_tool(
    turn: Turn,
    server: str,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    title: str,
    kind: ToolKind,
    timeout: float | None,  # noqa: ASYNC109
) -> ToolResult:
    """Call a tool of an MCP server, in a tool call of its own; raise what `session.mcp.call` raises."""
    async with turn.tool(title, kind=kind, input=dict(arguments)) as call:
        try:
            return await call_tool_in(turn, call, server, tool, arguments, timeout=timeout)
        except McpError as e:
            await call.fail(str(e))
            raise


async def call_tool_in(
    turn: Turn,
    call: ToolCall,
    server: str,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    timeout: float | None,  # noqa: ASYNC109
) -> ToolResult:
    """Call a tool of an MCP server and show it in a tool call: its progress in the title, then content and output."""
    loop = asyncio.get_running_loop()
    shown_at = float("-inf")

    async def show(progress: Progress) -> None:
        nonlocal shown_at
        if loop.time() - shown_at >= PROGRESS_SECONDS and not turn.is_over:
            shown_at = loop.time()
            call.update({"title": f"{call.title} ({str(progress)[:PROGRESS_CHARACTERS]})"})

    try:
        result = await turn.session.mcp.call(server, tool, arguments, timeout=timeout, on_progress=show)
    finally:
        if shown_at > 0 and not turn.is_over:
            call.update({"title": call.title})
    for block in result.content:
        await call.content(block)
    if result.structured is not None:
        await call.output(result.structured)
    return result
