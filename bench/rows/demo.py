"""The demo agent as an editor starts it: how soon it answers, and who is busier while it streams to a real client."""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING

from bench.model import Benchmark, Bound, Figure
from bench.places import a_store
from bench.processes import SCRIPTS, ContenderProcess
from bench.wire import INITIALIZE

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

STARTS = 3
COUNT = 20_000


def start(contender: Contender) -> Sample:
    """Start it a few times, and take the middle one. The SDKs' agents do nothing but answer `initialize`."""
    walls: list[float] = []
    for _ in range(STARTS):
        before = time.perf_counter()
        with _demo() if contender.who == "ours" else contender.start("hello") as agent:
            agent.write(INITIALIZE)
            agent.read_line()
            walls.append(time.perf_counter() - before)
            agent.end()
    return {"wall": statistics.median(walls) * 1e3}


def _demo() -> ContenderProcess:
    return ContenderProcess((sys.executable, "-m", "holdfast", "run", "demo"))


def stream(contender: Contender) -> Sample:
    """Let the SDK's client start the demo agent and take a long answer from it; look at one of the two."""
    script = str(SCRIPTS / "python_sdk_drives_demo.py")
    with a_store() as store, ContenderProcess((sys.executable, script, str(COUNT), store)) as client:
        said = client.finish()
    cpu = said.more["agent cpu"] if contender.who == "ours" else said.laps["stream"].cpu
    return {"cpu": cpu / COUNT * 1e6}


DEMO_START = Benchmark(
    name="demo-start",
    title="`holdfast run demo` to its first answer, against agents that only answer",
    sample=start,
    figures=(Figure("wall", "wall", "ms", (Bound("share", 0.2, "python_sdk"), Bound("share", 0.6, "typescript_sdk"))),),
)

DEMO_STREAM = Benchmark(
    name="demo-stream",
    title=f"`/stream {COUNT}` of the demo, stored, to the Python SDK's client, v1",
    sample=stream,
    figures=(Figure("CPU of each an update", "cpu", "µs", (Bound("share", 1, "python_sdk"),)),),
    who=("ours", "python_sdk"),
)
