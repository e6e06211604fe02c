"""The same small agent, written with each of the libraries that have an integration, on a scripted model."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from core.tests.support.acp import serving
from holdfast.testing.model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from core.tests.support.acp import Serving
    from holdfast import Agent
    from holdfast.agent import Turn
    from holdfast.testing.model_server import Reply

LIBRARIES = ["langgraph", "openai_agents"]


@dataclass
class Tools:
    """What the tools of the agent do, and what they did."""

    done: list[str] = field(default_factory=list[str])
    look: Callable[[Turn, Any], Awaitable[str]] | None = None
    """Is given the turn and the tool call that shows it."""

    async def run(self, name: str, turn: Turn, call: Any) -> str:
        self.done.append(name)
        return await self.look(turn, call) if name == "look" and self.look is not None else f"{name} is done"


@asynccontextmanager
async def library_agent(library: str, server: ModelServer, tools: Tools | None = None) -> AsyncGenerator[Agent]:
    """An agent with the tools `look` (of a place) and `launch` (at a target), which needs the user's permission."""
    module = import_module(f"core.tests.support.{library}_agent")  # each takes a while to import
    model, close = module.model_on(server)
    try:
        yield module.make_agent(model, tools or Tools())
    finally:
        await close()


@asynccontextmanager
async def library_host(
    library: str, script: Sequence[Reply], tools: Tools | None = None
) -> AsyncGenerator[tuple[ModelServer, Serving]]:
    """Serve that agent, whose model says what the script says."""
    async with ModelServer(script) as server, library_agent(library, server, tools) as agent, serving(agent) as host:
        yield server, host


def told(server: ModelServer, request: int = -1) -> list[tuple[str, Any]]:
    """What the model was told, as pairs of who said something and what, whatever protocol it was told by."""
    body = server.requests[request]
    said: list[tuple[str, Any]] = []
    for item in body["messages"] if "messages" in body else body["input"]:
        if item.get("type") == "function_call":
            said.append(("call", item["name"]))
        elif item.get("type") == "function_call_output":
            said.append(("result", item["output"]))
        else:
            if item.get("content") is not None and item["content"] != "":
                role = "result" if item["role"] == "tool" else item["role"]
                said.append((role, _text(item["content"])))
            said += [("call", it["function"]["name"]) for it in item.get("tool_calls") or ()]
    return said


def _text(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or f"<{part['type']}>" for part in content)
