"""Holdfast with many connections in one process: ``COUNT ACTIVE FD …`` streams to every descriptor.

The first ACTIVE ones get COUNT updates each, twice (to warm up, then measured); the others get updates for ever.
"""

from __future__ import annotations

import asyncio
import os
import sys

from meter import Meter
from ours_types import AgentMessageChunk, SessionNotification, TextContent

from holdfast.peer import Peer, Routes
from holdfast.transport.pipes import PipeTransport

BURST = 16
TEXT = "a few words of an answer, say 32"


async def stream(peer: Peer, transport: PipeTransport, count: int) -> None:
    for _ in range(count // BURST):
        for _ in range(BURST):
            peer.notify(
                "session/update",
                SessionNotification("sess_0123456789abcdef", AgentMessageChunk(TextContent(TEXT))),
            )
        await peer.drain()
        await asyncio.sleep(0)
    await transport.drain(1)


async def main(count: int, active: int, fds: list[int]) -> None:
    meter = Meter()
    silent, _held = os.pipe()  # nobody says anything to us
    transports = [PipeTransport(os.dup(silent), fd) for fd in fds]
    peers = [Peer(transport, Routes()) for transport in transports]
    serving = [asyncio.create_task(peer.run()) for peer in peers]
    both = list(zip(peers, transports, strict=True))
    endless = [asyncio.create_task(stream(*it, sys.maxsize)) for it in both[active:]]
    for name, how_many in (("warm up", count), (f"stream {count}", count)):
        meter.lap(name)
        await asyncio.gather(*(stream(*it, how_many) for it in both[:active]))
        meter.lap(None)
    assert not any(task.done() for task in endless)
    for task in endless:
        task.cancel()
    for peer in peers:
        peer.close()
    await asyncio.gather(*serving)
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), [int(fd) for fd in sys.argv[3:]]))
