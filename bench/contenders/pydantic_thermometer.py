"""An agent written with Pydantic AI: it reads a thermometer, and says what it has read. Its model needs no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai import Agent, ModelRequest, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic_ai import ModelMessage
    from pydantic_ai.models.function import DeltaToolCalls


async def stream(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    last = messages[-1]
    if isinstance(last, ModelRequest) and any(isinstance(part, ToolReturnPart) for part in last.parts):
        for _ in range(5):
            yield "a few words of an answer, say 32"
    else:
        yield {0: DeltaToolCall("temperature", '{"place": "garden"}', tool_call_id=f"call_{len(messages)}")}


thermometer = Agent(FunctionModel(stream_function=stream), name="thermometer")


@thermometer.tool_plain
def temperature(place: str) -> str:
    return f"It is 21 °C in the {place}."
