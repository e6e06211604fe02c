"""An agent sends a past of 100,000 entries to a client that loads the session, and forks it.

The yardstick is a process that does nothing but read and write as many bytes, 64 KiB at a time.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from bench.histories import ENTRIES, LONG, build_long
from bench.machine import memory_of
from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import a_store, built
from bench.processes import SCRIPTS, ContenderProcess
from bench.wire import open_session, take_turn
from holdfast.store import open_store

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

THEIR_ENTRIES = 20_480
"""How many entries the SDK's agent replays: a fifth, to save time. Figures are per entry."""

LOADS, FORKS = 3, 5
TAIL_BYTES = 4 << 10
"""The answer to a request is found in the last so many bytes."""


def replay(contender: Contender, *, version: int) -> Sample:
    """Let it replay. A lap is from one turn to the next, and the replay is all there is between them."""
    return replay_ours(contender, version) if contender.who == "ours" else replay_theirs(contender)


def replay_theirs(contender: Contender) -> Sample:
    """Let the SDK's agent replay."""
    with contender.start("replay", str(THEIR_ENTRIES)) as agent:
        session = open_session(agent)
        took, _ = ask(agent, "load", session, 3)  # warms it up
        take_turn(agent, "replay")
        took, _ = ask(agent, "load", session, 4)
        take_turn(agent, "done")
        cpu = agent.finish().laps["replay"].cpu
    return {"wall": took / THEIR_ENTRIES * 1e6, "cpu": cpu / THEIR_ENTRIES * 1e6}


def replay_ours(contender: Contender, version: int) -> Sample:
    """Let ours replay, copy as many bytes, and let ours fork."""
    with a_store(copy_of=built("long.db", build_long)) as store:
        with contender.start("durable", store) as agent:
            session = open_session(agent, version=version)
            take_turn(agent, "replay", session)
            idle = memory_of(agent.pid, "VmRSS")
            loads = [ask(agent, "load", LONG, 100 + n) for n in range(LOADS)]
            peak = memory_of(agent.pid, "VmHWM")
            take_turn(agent, "done", session)
            forks = [ask(agent, "fork", LONG, 200 + n)[0] for n in range(FORKS)]
            cpu = agent.finish().laps["replay"].cpu / LOADS
        took = statistics.median(load for load, _ in loads)
        copying = statistics.median(_copy(store, loads[-1][1]) for _ in range(LOADS))
        first = asyncio.run(_first_share(store))
    return {
        "wall": took / ENTRIES * 1e6,
        "cpu": cpu / ENTRIES * 1e6,
        "share": copying / took,
        "first": first * 100,
        "memory": peak - idle,
        "fork": statistics.median(forks) / took * 100,
    }


def ask(agent: ContenderProcess, what: str, session: str, id_: int) -> tuple[float, int]:
    """Ask for something; say how long the answer took and how many bytes came with it."""
    mark, tail, size = b'"id":%d,' % id_, b"", 0
    asked = time.perf_counter()
    agent.write(
        b'{"jsonrpc":"2.0","id":%d,"method":"session/%s","params":{"sessionId":"%s","cwd":"/","mcpServers":[]}}\n'
        % (id_, what.encode(), session.encode())
    )
    while mark not in tail:
        chunk = agent.read()
        size += len(chunk)
        tail = (tail + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]  # looking through all of it would take longer than reading
    return time.perf_counter() - asked, size


def _copy(path: str, size: int) -> float:
    """Copy bytes of a file through a pipe; say how long that took."""
    left = size
    with ContenderProcess((sys.executable, str(SCRIPTS / "plain_copy.py"), path, str(size))) as copier:
        time.sleep(0.1)  # let it start
        began = time.perf_counter()
        copier.write(b"\n")
        while left:
            left -= len(copier.read())
        return time.perf_counter() - began


async def _first_share(path: str) -> float:
    """Say which share of the history the store reads before it gives the first of it away."""
    store = await open_store(path)
    sizes = [sum(map(len, blocks)) async for blocks in store.read(LONG, 0, ENTRIES)]
    await store.close()
    return sizes[0] / sum(sizes)


def _row(version: int, share: float, times: float) -> Benchmark:
    return Benchmark(
        name=f"replay-v{version}",
        title=f"replay of {ENTRIES:,} entries, v{version}",
        sample=partial(replay, version=version),
        figures=(
            Figure("wall an entry", "wall", "µs", (Bound("times less", times, "python_sdk"),)),
            Figure("CPU an entry", "cpu", "µs"),
            Figure("rate, of that of a plain copy", "share", TIMES, (Bound("at least", share),)),
            Figure("read before the first is sent", "first", "%", (Bound("at most", 1),)),
            Figure("memory above idle", "memory", "MB", (Bound("at most", 16),)),
            Figure("fork, of the time of its replay", "fork", "%", (Bound("at most", 5),)),
        ),
        who=("ours", "python_sdk"),
    )


V2 = _row(2, 0.3, 60)
V1 = _row(1, 0.2, 40)
