"""A small agent written with the OpenAI Agents SDK. (Its annotations are read at run time.)"""

from collections.abc import Awaitable, Callable
from typing import Any

from agents import Agent, OpenAIResponsesModel, RunConfig, function_tool
from agents.tool_context import ToolContext
from openai import AsyncOpenAI

from core.tests.support.libraries import Tools
from holdfast import Agent as HoldfastAgent
from holdfast.integrations.openai_agents import ToolDisplay, acp_agent, current_call, current_turn
from holdfast.testing.model_server import ModelServer


def model_on(server: ModelServer) -> tuple[OpenAIResponsesModel, Callable[[], Awaitable[None]]]:
    client = AsyncOpenAI(base_url=server.url, api_key="sk-for-nobody", max_retries=0)
    return OpenAIResponsesModel("gpt-5.2", client), client.close


def make_agent(model: OpenAIResponsesModel, tools: Tools) -> HoldfastAgent:
    @function_tool
    async def look(context: ToolContext[Any], place: str) -> str:
        """Look."""
        return await tools.run("look", current_turn(), current_call(context.tool_call_id))

    @function_tool(needs_approval=True)
    async def launch(target: str) -> str:
        """Launch."""
        return await tools.run(f"launch {target}", current_turn(), None)

    agent = Agent("pilot", tools=[look, launch], model=model)
    shown = {"launch": ToolDisplay(kind="execute", title="Launch to the {target}"), "look": ToolDisplay(kind="read")}
    return acp_agent(agent, tools=shown, context_window=1000, run_config=RunConfig(tracing_disabled=True))
