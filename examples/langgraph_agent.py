"""An agent written with LangGraph: `holdfast run examples/langgraph_agent.py`, with OPENAI_API_KEY set.

The graph knows nothing of editors, and has no checkpointer. `acp_agent` gives it sessions that hold and tool calls that
are shown, and asks the user where the graph wants a human in the loop.

    pip install 'holdfast[langgraph]' langchain langchain-openai
"""

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from holdfast.integrations.langgraph import ToolDisplay, acp_agent


@tool
def temperature(place: str) -> float:
    """Measure how warm it is, in degrees Celsius."""
    return 21.0 if place == "shade" else 34.5


@tool
def water(minutes: int) -> str:
    """Open the tap."""
    return f"The tap was open for {minutes} minutes."


gardener = create_agent(
    ChatOpenAI(model="gpt-5.2"),
    [temperature, water],
    system_prompt="You look after a garden with one thermometer and one tap.",
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"water": True})],
)

agent = acp_agent(
    gardener,
    name="gardener",
    title="Gardener",
    version="1.0",
    context_window=400_000,
    tools={
        "temperature": ToolDisplay(kind="read", title="Read the thermometer in the {place}"),
        "water": ToolDisplay(kind="execute", title="Water for {minutes} minutes"),
    },
)
