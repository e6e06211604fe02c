"""Agents written with Pydantic AI, in any editor: ``agent = acp_agent(my_pydantic_agent)``.

`acp_agent` makes a Holdfast agent of one; `respond` answers a single turn with one, for authors who decide more.
A tool may say how it is shown (``metadata=tool_display(kind="edit", title="Edit {path}")``) and, while it runs, show
more (`current_call`). What the model remembers lives in the session (`memory`); the tools of the session's MCP servers
are the model's tools too (`mcp_tools`). Only public names of Pydantic AI are used; nothing else in Holdfast imports it.
"""

from holdfast.integrations.pydantic_ai.adapter import acp_agent, respond, thinking_settings
from holdfast.integrations.pydantic_ai.display import tool_display
from holdfast.integrations.pydantic_ai.mcp_tools import McpPolicy, ask_unless_read_only
from holdfast.integrations.pydantic_ai.run_display import current_call, current_turn
from holdfast.integrations.tool_display import ToolDisplay

__all__ = [
    "McpPolicy",
    "ToolDisplay",
    "acp_agent",
    "ask_unless_read_only",
    "current_call",
    "current_turn",
    "respond",
    "thinking_settings",
    "tool_display",
]
