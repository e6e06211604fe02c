"""Pydantic AI by itself: takes a turn for each line it reads, and prints an empty one when it is done."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from pydantic_thermometer import thermometer

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from pydantic_ai import AgentStreamEvent, ModelMessage, RunContext


async def watch(_context: RunContext[object], events: AsyncIterable[AgentStreamEvent]) -> None:
    async for _ in events:
        pass


async def main() -> None:
    past: list[ModelMessage] = []
    while sys.stdin.readline():
        result = await thermometer.run("a question of a few words", message_history=past, event_stream_handler=watch)
        past = result.all_messages()
        print(flush=True)


if __name__ == "__main__":
    asyncio.run(main())
