"""Holdfast with many connections in one process: ``COUNT ACTIVE FD …`` streams to every descriptor.

The first ACTIVE ones get COUNT updates each, again and again. Each of the others belongs to a reader that never reads;
they get as many updates as they take, one after the other, every second time.
"""

from __future__ import annotations

import asyncio
import os
import sys

from meter import Meter
from ours_types import AgentMessageChunk, SessionNotification, TextContent

from holdfast.peer import Peer, Routes
from holdfast.transport.descriptors import PipeTransport

BURST = 16
TEXT = "a few words of an answer, say 32"


class Connection:
    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.transport = PipeTransport(read_fd, write_fd)
        self.peer = Peer(self.transport, Routes())
        self.serving = asyncio.create_task(self.peer.run())

    async def stream(self, count: int) -> None:
        for _ in range(count // BURST):
            for _ in range(BURST):
                self.peer.notify(
                    "session/update",
                    SessionNotification("sess_0123456789abcdef", AgentMessageChunk(TextContent(TEXT))),
                )
            await self.peer.drain()
            await asyncio.sleep(0)
        await self.transport.drain(1)

    async def close(self) -> None:
        self.peer.close()
        await self.serving


async def main(count: int, active: int, fds: list[int]) -> None:
    meter = Meter()
    silent, _held = os.pipe()  # nobody says anything to us
    connections = [Connection(os.dup(silent), fd) for fd in fds[:active]]

    async def stream(lap: str) -> None:
        meter.lap(lap)
        await asyncio.gather(*(it.stream(count) for it in connections))
        meter.lap(None)

    await stream("warm up")
    for turn, fd in enumerate(fds[active:]):
        await stream(f"alone {turn}")
        stalled = Connection(os.dup(silent), fd)
        endless = asyncio.create_task(stalled.stream(sys.maxsize))
        while stalled.transport.unsent < 1 << 20:  # noqa: ASYNC110  (there is no event for it)
            await asyncio.sleep(0)
        await stream(f"beside {turn}")
        assert not endless.done()
        endless.cancel()
        await stalled.close()
    for connection in connections:
        await connection.close()
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), [int(fd) for fd in sys.argv[3:]]))
