"""An agent written with the OpenAI Agents SDK: `holdfast run examples/openai_agents_agent.py`, with OPENAI_API_KEY set.

The agent knows nothing of editors, and has no session of the SDK. `acp_agent` gives it sessions that hold, tool calls
that are shown, permission questions, and a choice of models.

    pip install 'holdfast[openai-agents]'
"""

from agents import Agent, function_tool

from holdfast.integrations.openai_agents import ToolDisplay, acp_agent


@function_tool
def temperature(place: str) -> float:
    """Measure how warm it is, in degrees Celsius."""
    return 21.0 if place == "shade" else 34.5


@function_tool(needs_approval=True)
def water(minutes: int) -> str:
    """Open the tap."""
    return f"The tap was open for {minutes} minutes."


gardener = Agent(
    name="gardener",
    instructions="You look after a garden with one thermometer and one tap.",
    tools=[temperature, water],
)

agent = acp_agent(
    gardener,
    title="Gardener",
    version="1.0",
    models={"GPT-5.2": "gpt-5.2", "GPT-5.2 mini": "gpt-5.2-mini"},
    context_window=400_000,
    tools={
        "temperature": ToolDisplay(kind="read", title="Read the thermometer in the {place}"),
        "water": ToolDisplay(kind="execute", title="Water for {minutes} minutes"),
    },
)
