"""The official Python SDK as an agent that replays a conversation it has at hand: ``ENTRIES`` of it."""

# pyright: reportAbstractUsage=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from acp import (
    LoadSessionResponse,
    run_agent,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_user_message_text,
)
from meter import Meter
from python_sdk_agent import BURST, BenchAgent

if TYPE_CHECKING:
    from acp.schema import AgentMessageChunk, ToolCallStart, UserMessageChunk

WORDS = "The quick brown fox jumps over the lazy dog and the dog does not mind at all. "


class ReplayingAgent(BenchAgent):
    def __init__(self, meter: Meter, entries: int) -> None:
        super().__init__(meter)
        self.entries = entries

    async def load_session(self, session_id: str, **_others: Any) -> LoadSessionResponse:
        for start in range(0, self.entries, BURST):
            await asyncio.gather(
                *(self.client.session_update(session_id, entry(n)) for n in range(start, start + BURST))
            )
        return LoadSessionResponse()


def entry(n: int) -> UserMessageChunk | AgentMessageChunk | ToolCallStart:
    text = f"{n}: {WORDS * (n % 3 + 1)}"
    if n % 3 == 1:
        content = [tool_content(text_block(text))]
        return start_tool_call(f"call_{n:016}", f"Read file {n}", kind="read", status="completed", content=content)
    return update_user_message_text(text) if n % 3 == 0 else update_agent_message_text(text)


async def main(entries: int) -> None:
    meter = Meter()
    await run_agent(ReplayingAgent(meter, entries))
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
