"""Holdfast as its users have it: an `Agent`, served over stdio, every update stored before it is sent.

``STORE`` is where. The prompt says what to do: ``burst 20000``, ``tick 5000``, or ``paced 5000 400``: so many updates a
second, so many in all.
"""

from __future__ import annotations

import asyncio
import sys
import time

from meter import Meter

from holdfast import Agent, Turn
from holdfast.agent.port import AuthorAgent
from holdfast.server import Host, serve_stdio

TEXT = "a few words of an answer, say 32"
PAUSE = 0.001

agent = Agent("bench")
meter = Meter()


@agent.prompt
async def answer(turn: Turn) -> None:
    meter.lap(turn.text)
    what, _, numbers = turn.text.partition(" ")
    if what == "burst":
        for _ in range(int(numbers)):
            await turn.say(TEXT)
    elif what == "tick":
        for _ in range(int(numbers)):
            await turn.say(TEXT)
            await asyncio.sleep(0)
    elif what == "paced":
        await paced(turn, *map(int, numbers.split()))


async def paced(turn: Turn, rate: int, count: int) -> None:
    began, said = time.perf_counter(), 0
    while said < count:
        while said < min(count, (time.perf_counter() - began) * rate):
            await turn.say(TEXT)
            said += 1
        await asyncio.sleep(PAUSE)


if __name__ == "__main__":

    async def main() -> None:
        await serve_stdio(Host(AuthorAgent(agent), store=sys.argv[1]))
        meter.report()

    asyncio.run(main())
