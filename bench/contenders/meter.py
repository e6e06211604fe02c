"""What both Python contenders measure themselves with; `meter.mjs` is the same for Node."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

WARM_UP = int(os.environ.get("BENCH_WARM_UP", "0"))
"""So many items each contender takes, into a session of their own, before it measures."""

SERVER = "BENCH_SERVER"
"""Names the process of a database server: the processor time of what it started counts too, as ``server``."""


class Meter:
    """Notes the processor time (user and system, all threads) and the wall time between two moments."""

    def __init__(self) -> None:
        self.laps: dict[str, dict[str, float]] = {}
        self.more: dict[str, float] = {}
        self._running: tuple[str, float, float, float] | None = None

    def lap(self, name: str | None) -> None:
        """End the lap that runs, and begin another unless there is no name for it."""
        cpu, wall, server = time.process_time(), time.perf_counter(), _server_seconds()
        if self._running is not None:
            ended, cpu_then, wall_then, server_then = self._running
            self.laps[ended] = {"cpu": cpu - cpu_then, "wall": wall - wall_then, "server": server - server_then}
        self._running = None if name is None else (name, time.process_time(), time.perf_counter(), server)

    def report(self) -> None:
        """Print the one line the benchmark reads. On stderr: stdout belongs to the protocol."""
        print(json.dumps({"laps": self.laps, "more": self.more}), file=sys.stderr, flush=True)


def _server_seconds() -> float:
    """Return the processor time of all living processes of the server; 0 where there is none."""
    used = 0.0
    for process in Path("/proc").glob("[0-9]*") if SERVER in os.environ else ():
        with suppress(OSError):
            if (process / "stat").read_text().rpartition(")")[2].split()[1] == os.environ[SERVER]:
                # In nanoseconds; `stat` has hundredths of a second.
                used += int((process / "schedstat").read_text().split()[0]) / 1e9
    return used
