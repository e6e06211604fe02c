"""Holdfast's engine takes ``COUNT`` messages one by one into ``STORE``, and loads them.

Each turn is two: the prompt, on disk for good before it is acknowledged, and the answer, on disk for good before its
end is told.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec
from meter import Meter

from holdfast import Agent, Turn
from holdfast.server import Host

TEXT = "a few words of an answer, say 32"

agent = Agent("bench")


@agent.prompt
async def answer(turn: Turn) -> None:
    await turn.say(TEXT)


async def main(count: int, store: str) -> None:
    meter = Meter()
    engine = await Host(agent, store=store).engine()
    session = await engine.create("/")
    meter.lap("append")
    for _ in range(count // 2):
        turn = engine.prompt(session, [{"type": "text", "text": TEXT}])
        await turn.accepted
        await turn.ended
    meter.lap("load")
    items: list[object] = []
    async for blocks in engine.store.read(session.id, session.lines):
        items += [msgspec.json.decode(line) for block in blocks for line in block.split(b"\n")]
    assert len(items) == count
    meter.lap(None)
    await engine.shut_down()
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
