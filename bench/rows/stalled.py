"""One process streams to 10 connections, by turns without and with an eleventh whose reader has stopped for good."""

from __future__ import annotations

import os
import statistics
import threading
from typing import TYPE_CHECKING

from bench.model import Benchmark, Bound, Figure

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender, Report

CONNECTIONS = 10
TURNS = 7
COUNT = 4_096
"""Updates on each connection, each turn."""


def compare(contender: Contender) -> Sample:
    """Read what it streams on the ten connections, and nothing of what it sends to those that stall, one a turn."""
    pipes = [os.pipe() for _ in range(CONNECTIONS + TURNS)]
    readers = [threading.Thread(target=_drain, args=(read,)) for read, _ in pipes[:CONNECTIONS]]
    written = [write for _, write in pipes]
    try:
        with contender.start("streams", str(COUNT), str(CONNECTIONS), *map(str, written), pass_fds=written) as server:
            for fd in written:
                os.close(fd)
            for reader in readers:
                reader.start()
            report = server.finish()
    finally:
        for reader in readers:
            reader.join()
        for read, _ in pipes:
            os.close(read)
    without, beside = _medians(report, "alone"), _medians(report, "beside")
    updates = COUNT * CONNECTIONS
    return {
        "rate": without["wall"] / beside["wall"] * 100,
        "cpu": beside["cpu"] / updates * 1e6,
        "cpu without": without["cpu"] / updates * 1e6,
    }


def _medians(report: Report, how: str) -> dict[str, float]:
    laps = [report.laps[f"{how} {turn}"] for turn in range(TURNS)]
    return {"wall": statistics.median(lap.wall for lap in laps), "cpu": statistics.median(lap.cpu for lap in laps)}


def _drain(fd: int) -> None:
    while os.read(fd, 1 << 20):
        pass


STALLED = Benchmark(
    name="stalled",
    title="10 connections beside a stalled one",
    sample=compare,
    figures=(
        Figure("their rate, of that without it", "rate", "%", (Bound("at least", 90),)),
        Figure("CPU an update", "cpu", "µs"),
        Figure("CPU an update without it", "cpu without", "µs"),
    ),
    who=("ours",),
)
