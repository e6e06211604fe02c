"""The tools of a session's MCP servers as tools of the model, through the session's own connections."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic_ai import AbstractToolset, BinaryContent, ToolDefinition, ToolFailed, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from holdfast.agent.mcp_calls import call_tool_in
from holdfast.agent.turn import DEFAULT
from holdfast.errors import McpError
from holdfast.integrations.pydantic_ai.display import tool_display
from holdfast.integrations.pydantic_ai.run_display import current_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai import RunContext

    from holdfast.agent import Turn
    from holdfast.mcp import Tool, ToolResult

McpPolicy: TypeAlias = Literal["ask", "allow", "hide"]
"""What is done with a tool of a server: the user is asked for each call, or not, or the model does not see it."""

MAX_TITLE = 200
"""A server may give its tools longer titles; the rest of one is left out."""

_object = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


def ask_unless_read_only(tool: Tool) -> McpPolicy:
    """Decide that the user is asked before a tool is called, unless its server says that it changes nothing.

    Args:
        tool: a tool of an MCP server.

    Returns:
        What is done with it.

    """
    return "allow" if tool.read_only else "ask"


class McpTools(AbstractToolset[Any]):
    """The tools of the servers of a session, as they are when a turn begins."""

    def __init__(self, turn: Turn, choose: Callable[[Tool], McpPolicy]) -> None:
        self._turn = turn
        self._choose = choose
        self._found: dict[str, Tool] | None = None

    @property
    def id(self) -> str | None:
        """The name of the toolset."""
        return "session-mcp"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools of all servers that are ready."""
        del ctx
        if self._found is None:
            self._found = {}
            for tool in await self._turn.session.mcp.tools() if self._turn.session.mcp.servers else ():
                self._found[_unique(f"mcp_{tool.server}_{tool.name}", self._found)] = tool
        return {
            name: ToolsetTool(
                toolset=self, tool_def=self._definition(name, tool), max_retries=1, args_validator=_object
            )
            for name, tool in self._found.items()
            if self._choose(tool) != "hide"
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool. The model is told what went wrong."""
        del ctx, tool
        assert self._found is not None
        server, tool_name = self._found[name].server, self._found[name].name
        try:
            return _result(
                await call_tool_in(self._turn, current_call(), server, tool_name, tool_args, timeout=DEFAULT)
            )
        except McpError as e:
            raise ToolFailed(str(e)) from None

    def _definition(self, name: str, tool: Tool) -> ToolDefinition:
        def asks(_: Turn) -> bool:
            return self._choose(tool) != "allow"  # as it is when the tool is called: modes change

        title = f"{tool.server}: {tool.title or tool.name}"[:MAX_TITLE].replace("{", "{{").replace("}", "}}")
        return ToolDefinition(
            name=name,
            description=tool.description,
            parameters_json_schema=tool.input_schema,
            metadata=tool_display(kind="read" if tool.read_only else "other", title=title, asks=asks),
            sequential=self._choose(tool) == "ask",
        )


def _result(result: ToolResult) -> Any:
    files = [
        BinaryContent(b64decode(block["data"]), media_type=block["mimeType"])
        for block in result.content
        if block.get("type") in ("image", "audio")
    ]
    said = result.text or result.structured
    return [said, *files] if files and said else files or said


def _unique(name: str, taken: dict[str, Tool]) -> str:
    """Return a name that every provider takes, and that no other tool has."""
    base = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:60]
    return base if base not in taken else next(other for n in range(2, 1000) if (other := f"{base}_{n}") not in taken)
