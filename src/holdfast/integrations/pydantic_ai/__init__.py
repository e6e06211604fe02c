"""Agents written with Pydantic AI, in any editor: ``agent = acp_agent(my_pydantic_agent)``.

`acp_agent` makes a Holdfast agent of one; `respond` answers a single turn with one, for whoever wants more say in it.
A tool may tell how it is to be shown (``metadata=shown(kind="edit", title="Edit {path}")``) and, while it runs, show
more (`current_call`). What the model remembers lives in the session (`memory`); tools of the session's MCP servers are
the model's tools too (`mcp`). Only public names of Pydantic AI are used; nothing else in Holdfast imports it.
"""

from holdfast.integrations.pydantic_ai.mcp import McpChoice, ask_unless_read_only
from holdfast.integrations.pydantic_ai.narrator import current_call, current_turn
from holdfast.integrations.pydantic_ai.responding import acp_agent, respond, thinking_settings
from holdfast.integrations.pydantic_ai.shown import Shown, shown

__all__ = [
    "McpChoice",
    "Shown",
    "acp_agent",
    "ask_unless_read_only",
    "current_call",
    "current_turn",
    "respond",
    "shown",
    "thinking_settings",
]
