"""Pydantic AI by itself: ``EARLY LATE MEASURED`` are after how many turns so many are measured; medians are told."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from typing import TYPE_CHECKING

from meter import Meter
from pydantic_thermometer import thermometer

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from pydantic_ai import AgentStreamEvent, ModelMessage, RunContext


async def watch(_context: RunContext[object], events: AsyncIterable[AgentStreamEvent]) -> None:
    async for _ in events:
        pass


async def main(early: int, late: int, measured: int) -> None:
    past: list[ModelMessage] = []
    took: list[tuple[float, float]] = []
    for _ in range(late + measured):
        cpu, wall = time.process_time(), time.perf_counter()
        result = await thermometer.run("a question of a few words", message_history=past, event_stream_handler=watch)
        took.append((time.process_time() - cpu, time.perf_counter() - wall))
        past = result.all_messages()
    meter = Meter()
    for name, some in (("early", took[early : early + measured]), ("late", took[late:])):
        cpu, wall = (statistics.median(figures) for figures in zip(*some, strict=True))
        meter.laps[name] = {"cpu": cpu, "wall": wall}
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
