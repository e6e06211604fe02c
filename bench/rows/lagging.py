"""How late the event loop is while 5,000 stored updates a second stream and turns end, against the same in memory.

Four sessions stream at once, each turn for a third of a second, so that turns begin and end while others go on.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from typing import TYPE_CHECKING

from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import a_store
from bench.wire import END_OF_TURN, NEW_SESSION, open_session, prompt

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

SESSIONS, RATE, COUNT, TURNS = 4, 1_250, 400, 12
MOMENT = struct.Struct("d")
PAUSE = 0.001


def compare(contender: Contender) -> Sample:
    """Measure both."""
    with a_store() as place:
        stored = _measure(contender, place)
    in_memory = _measure(contender, ":memory:")
    return {
        "p50": stored["p50"] * 1e3,
        "p99": stored["p99"] * 1e3,
        "p99.9": stored["p99.9"] * 1e3,
        "share": stored["p99"] / in_memory["p99"],
    }


def _measure(contender: Contender, store: str) -> dict[str, float]:
    read, write = os.pipe()
    with contender.start("lag", store, str(read), pass_fds=(read,)) as agent:
        os.close(read)
        sessions = [open_session(agent)]
        for _ in range(SESSIONS - 1):
            agent.write(NEW_SESSION)
            sessions.append(agent.read_line().partition(b'"sessionId":"')[2].partition(b'"')[0].decode())
        over = threading.Event()
        ticker = threading.Thread(target=_tick, args=(write, over))
        ticker.start()
        try:
            for _ in range(TURNS):
                for session in sessions:
                    agent.write(prompt(f"paced {RATE} {COUNT}", session))
            left, rest = TURNS * SESSIONS, b""
            while left:
                said = rest + agent.read()
                left -= said.count(END_OF_TURN)
                rest = said[len(said) - len(END_OF_TURN) + 1 :]
        finally:
            over.set()
            ticker.join()
            os.close(write)
        return agent.finish().more


def _tick(fd: int, over: threading.Event) -> None:
    """Tell the moment, again and again."""
    while not over.is_set():
        os.write(fd, MOMENT.pack(time.monotonic()))
        time.sleep(PAUSE)


LAG = Benchmark(
    name="lag",
    title="lag of the event loop, 5,000 stored updates/s, turns ending",
    sample=compare,
    figures=(
        Figure("p50", "p50", "ms"),
        Figure("p99", "p99", "ms", (Bound("at most", 2),)),
        Figure("p99.9", "p99.9", "ms"),
        Figure("p99, of that in memory", "share", TIMES, (Bound("at most", 2),)),
    ),
    who=("ours",),
)
