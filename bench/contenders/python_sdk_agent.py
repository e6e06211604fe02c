"""The official Python SDK as an agent. The prompt says what to do, as in `ours_agent.py`."""

# pyright: reportAbstractUsage=false, reportIncompatibleMethodOverride=false
# The SDK calls an agent by keyword and does without the methods it lacks; its types do not say so.

from __future__ import annotations

import asyncio
import statistics
import time
from typing import TYPE_CHECKING, Any

from acp import (
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    update_agent_message_text,
)
from acp.schema import TextContentBlock
from meter import Meter

if TYPE_CHECKING:
    from acp.interfaces import Client

BURST = 256
TEXT = "a few words of an answer, say 32"


class BenchAgent(Agent):
    client: Client

    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_others: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, **_others: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="sess_0123456789abcdef")

    async def prompt(self, prompt: list[Any], session_id: str, **_others: Any) -> PromptResponse:
        block = prompt[0]
        assert isinstance(block, TextContentBlock)
        if block.text == "nothing":
            return PromptResponse(stop_reason="end_turn")
        self.meter.lap(block.text)
        what, _, count = block.text.partition(" ")
        if what == "burst":
            await self.burst(session_id, int(count))
        elif what == "tick":
            await self.tick(session_id, int(count))
        elif what == "ask":
            await self.ask(session_id, int(count))
        return PromptResponse(stop_reason="end_turn")

    async def burst(self, session: str, count: int) -> None:
        # Awaiting one after the other is no cheaper: each wait is a turn of the loop.
        for _ in range(count // BURST):
            await asyncio.gather(
                *(self.client.session_update(session, update_agent_message_text(TEXT)) for _ in range(BURST))
            )

    async def tick(self, session: str, count: int) -> None:
        for _ in range(count):
            await self.client.session_update(session, update_agent_message_text(TEXT))  # lets the loop turn by itself

    async def ask(self, session: str, count: int) -> None:
        took: list[float] = []
        for _ in range(count):
            asked = time.perf_counter()
            answer = await self.client.read_text_file(session_id=session, path="/notes.txt")
            took.append(time.perf_counter() - asked)
            assert answer.content
        self.meter.more[f"p50 of {count}"] = statistics.median(took)


async def main() -> None:
    meter = Meter()
    await run_agent(BenchAgent(meter))
    meter.report()


if __name__ == "__main__":
    asyncio.run(main())
