"""One process streams to 10 connections, with and without an eleventh whose reader has stopped for good."""

from __future__ import annotations

import itertools
import os
import threading
from typing import TYPE_CHECKING

from bench.model import Benchmark, Bound, Figure

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender, Lap

CONNECTIONS = 10
COUNT = 20_480
"""Updates on each connection."""

_rounds = itertools.count()


def compare(contender: Contender) -> Sample:
    """Stream both ways, one right after the other, in turns which comes first."""
    laps = {
        stalled: stream(contender, stalled=stalled) for stalled in ((False, True), (True, False))[next(_rounds) % 2]
    }
    return {
        "rate": laps[False].wall / laps[True].wall * 100,
        "cpu": laps[True].cpu / (COUNT * CONNECTIONS) * 1e6,
        "cpu alone": laps[False].cpu / (COUNT * CONNECTIONS) * 1e6,
    }


def stream(contender: Contender, *, stalled: bool) -> Lap:
    """Read what it streams on all connections but the stalled one."""
    pipes = [os.pipe() for _ in range(CONNECTIONS + stalled)]
    readers = [threading.Thread(target=_drain, args=(pipe[0],)) for pipe in pipes[:CONNECTIONS]]
    fds = [pipe[1] for pipe in pipes]
    try:
        with contender.start("streams", str(COUNT), str(CONNECTIONS), *map(str, fds), pass_fds=fds) as server:
            for fd in fds:
                os.close(fd)
            for reader in readers:
                reader.start()
            return server.finish().laps[f"stream {COUNT}"]
    finally:
        for reader in readers:
            reader.join()
        for pipe in pipes:
            os.close(pipe[0])


def _drain(fd: int) -> None:
    while os.read(fd, 1 << 20):
        pass


STALLED = Benchmark(
    name="stalled",
    title="10 connections beside a reader that stopped",
    sample=compare,
    figures=(
        Figure("their rate, of that without it", "rate", "%", (Bound("at least", 90),)),
        Figure("CPU an update", "cpu", "µs"),
        Figure("CPU an update without it", "cpu alone", "µs"),
    ),
    who=("ours",),
)
