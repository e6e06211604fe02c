"""Holdfast as in `ours_durable.py`, storing at ``STORE``, whose event loop tells how late it is.

Moments arrive on descriptor ``FD``, each as the clock's eight bytes; how long ago each was when the loop saw it is the
lag. Whoever writes them is another process, which our threads cannot delay.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import struct
import sys
import time

from ours_durable import agent, meter

from holdfast.agent.port import AuthorAgent
from holdfast.server import Host, serve_stdio

MOMENT = struct.Struct("d")


async def main(store: str, fd: int) -> None:
    lags: list[float] = []

    def arrived() -> None:
        now, data = time.monotonic(), os.read(fd, 64 * MOMENT.size)
        lags.extend(now - then for (then,) in MOMENT.iter_unpack(data))

    asyncio.get_running_loop().add_reader(fd, arrived)
    await serve_stdio(Host(AuthorAgent(agent), store=store))
    quantiles = statistics.quantiles(lags, n=1_000)
    meter.more.update({"p50": quantiles[499], "p99": quantiles[989], "p99.9": quantiles[998]})
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
