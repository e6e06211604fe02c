"""How long an editor waits for a new agent process to answer `initialize`."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from bench.model import Benchmark, Bound, Figure
from bench.wire import INITIALIZE

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

STARTS = 3


def start(contender: Contender) -> Sample:
    """Start it a few times, and take the middle one. The CPU is that of the whole life, its end included."""
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(STARTS):
        before = time.perf_counter()
        with contender.start("hello") as agent:
            agent.write(INITIALIZE)
            agent.read_line()
            walls.append(time.perf_counter() - before)
            cpus.append(agent.end())
    return {"wall": statistics.median(walls) * 1e3, "cpu": statistics.median(cpus) * 1e3}


START = Benchmark(
    name="start",
    title="process start to first answer",
    sample=start,
    figures=(
        Figure("wall", "wall", "ms", (Bound("share", 0.15, "python_sdk"), Bound("share", 0.45, "typescript_sdk"))),
        Figure("CPU", "cpu", "ms", ()),
    ),
)
