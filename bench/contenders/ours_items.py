"""Holdfast's engine takes ``COUNT`` items one by one into ``STORE``, and loads them.

Each turn has ``SIZE`` of them: the prompt, and thoughts and answers, stored before anyone is shown them and synced to
the disk before the end of the turn is told. ``VERSION`` is that of the protocol: 2 acknowledges the prompt, once it is
synced to the disk, before the answer comes; 1 tells nobody of it before the turn has ended.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import msgspec
from meter import WARM_UP, Meter

from holdfast import Agent, Turn
from holdfast.agent.port import AuthorAgent
from holdfast.format import updates_in
from holdfast.server import Host

if TYPE_CHECKING:
    from holdfast.engine import LiveSession

TEXT = "a few words of an answer, say 32"

agent = Agent("bench")
decode_lines = msgspec.json.Decoder().decode_lines


@agent.prompt
async def answer(turn: Turn) -> None:
    for n in range(1, int(turn.text)):
        await (turn.say if n % 2 else turn.think)(TEXT)


async def append(session: LiveSession, count: int, size: int, *, acknowledged: bool) -> None:
    for _ in range(count // size):
        turn = session.prompt([{"type": "text", "text": str(size)}], acknowledged=acknowledged)
        await turn.accepted
        await turn.ended


async def main(count: int, store: str, size: int, version: int) -> None:
    meter = Meter()
    acknowledged = version == 2
    engine = await Host(AuthorAgent(agent), store=store).engine()
    await append(await engine.create("/"), WARM_UP, size, acknowledged=acknowledged)
    session = await engine.create("/")
    meter.lap("append")
    await append(session, count, size, acknowledged=acknowledged)
    meter.lap("load")
    items: list[object] = []
    async for blocks in engine.store.read(session.id, 0, session.journal.lines):
        for block in blocks:
            items += decode_lines(updates_in(block))
    assert len(items) == count
    meter.lap(None)
    await engine.shut_down()
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
