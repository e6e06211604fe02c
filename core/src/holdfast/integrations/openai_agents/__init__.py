"""Agents written with the OpenAI Agents SDK, in any editor: ``agent = acp_agent(my_agent)``.

`acp_agent` makes a Holdfast agent of one; `respond` answers a single turn with one, for authors who decide more. What
the model remembers lives in the session, so no `Session` of the SDK is needed. Tools that need approval are permission
questions. While a tool runs, `current_turn` and `current_call` let it show more. Only public names of the SDK are used;
nothing else in Holdfast imports it.
"""

from holdfast.integrations.openai_agents.adapter import acp_agent, respond
from holdfast.integrations.openai_agents.run_display import current_call, current_turn
from holdfast.integrations.tool_display import ToolDisplay

__all__ = ["ToolDisplay", "acp_agent", "current_call", "current_turn", "respond"]
