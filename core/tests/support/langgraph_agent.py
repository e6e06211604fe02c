"""A small agent written with LangGraph. (Its annotations are read at run time.)"""

# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2 as httpx
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import ToolRuntime

from core.tests.support.libraries import Tools
from holdfast import Agent
from holdfast.integrations.langgraph import ToolDisplay, acp_agent, current_call, current_turn
from holdfast.testing.model_server import ModelServer


def model_on(server: ModelServer) -> tuple[ChatOpenAI, Callable[[], Awaitable[None]]]:
    client = httpx.AsyncClient()
    key: Any = "sk-for-nobody"
    model = ChatOpenAI(model="gpt-5.2", base_url=server.url, api_key=key, max_retries=0, http_async_client=client)
    return model, client.aclose


def make_agent(model: ChatOpenAI, tools: Tools) -> Agent:
    @tool
    async def look(place: str, runtime: ToolRuntime) -> str:
        """Look."""
        return await tools.run("look", current_turn(), current_call(runtime.tool_call_id or ""))

    @tool
    async def launch(target: str) -> str:
        """Launch."""
        return await tools.run(f"launch {target}", current_turn(), None)

    asking = HumanInTheLoopMiddleware(interrupt_on={"launch": True})
    graph: Any = create_agent(model, [look, launch], middleware=[asking], name="pilot")
    shown = {"launch": ToolDisplay(kind="execute", title="Launch to the {target}"), "look": ToolDisplay(kind="read")}
    return acp_agent(graph, tools=shown, context_window=1000)
