"""Holdfast with ``COUNT`` live sessions that do nothing: how much memory does each take, garbage not counted?

The store is in memory too, because so many commits to a disk take a while; what it keeps counts.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

from meter import Meter

from holdfast import Agent, Turn
from holdfast.agent.port import AuthorAgent
from holdfast.server import Host

WARM_UP = 200

agent = Agent("bench")


@agent.prompt
async def answer(turn: Turn) -> None:
    await turn.say("hello")


def memory() -> int:
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


async def main(count: int) -> None:
    meter = Meter()
    engine = await Host(AuthorAgent(agent), store=":memory:").engine()
    for n in range(WARM_UP):
        await engine.create(f"/home/somebody/project-{n}")
    before = memory()
    for n in range(count):
        await engine.create(f"/home/somebody/project-{n}")
    meter.more["memory"] = (memory() - before) / count
    await engine.shut_down()
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
