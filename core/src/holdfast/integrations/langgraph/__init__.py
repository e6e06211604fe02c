"""Agents written with LangGraph or LangChain, in any editor: ``agent = acp_agent(graph, name="gardener")``.

`acp_agent` makes a Holdfast agent of a compiled graph whose state has `messages`; `respond` answers a single turn with
one, for authors who decide more. What the model remembers lives in the session, so the graph needs no checkpointer.
Interrupts are questions to the user. While a tool runs, `current_turn` and `current_call` let it show more. Only public
names of LangGraph are used; nothing else in Holdfast imports it.
"""

from holdfast.integrations.langgraph.adapter import acp_agent, respond
from holdfast.integrations.langgraph.interrupts import ask_user
from holdfast.integrations.langgraph.run_display import current_call, current_turn
from holdfast.integrations.tool_display import ToolDisplay

__all__ = ["ToolDisplay", "acp_agent", "ask_user", "current_call", "current_turn", "respond"]
