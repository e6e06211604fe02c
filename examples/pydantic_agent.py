"""An agent written with Pydantic AI: `holdfast run examples/pydantic_agent.py`, with OPENAI_API_KEY set.

The agent knows nothing of editors. `acp_agent` gives it sessions, permission questions, tool calls that are shown, a
choice of models, and the tools of the session's MCP servers.
"""

from pydantic_ai import Agent

from holdfast.integrations.pydantic_ai import acp_agent, tool_display

gardener = Agent(name="gardener", instructions="You look after a garden with one thermometer and one tap.")


@gardener.tool_plain(metadata=tool_display(kind="read", title="Read the thermometer in the {place}"))
def temperature(place: str) -> dict[str, float]:
    """Measure how warm it is, in degrees Celsius."""
    return {"celsius": 21.0 if place == "shade" else 34.5}


@gardener.tool_plain(requires_approval=True, metadata=tool_display(kind="execute", title="Water for {minutes} minutes"))
def water(minutes: int) -> str:
    """Open the tap."""
    return f"The tap was open for {minutes} minutes."


models = {"GPT-5.2": "openai-chat:gpt-5.2", "Claude": "anthropic:claude-opus-4-7"}
agent = acp_agent(gardener, title="Gardener", version="1.0", models=models, thinking=True)
