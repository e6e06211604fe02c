"""What both Python contenders measure themselves with; `meter.mjs` is the same for Node."""

from __future__ import annotations

import json
import sys
import time


class Meter:
    """Notes the processor time (user and system, all threads) and the wall time between two moments."""

    def __init__(self) -> None:
        self.laps: dict[str, dict[str, float]] = {}
        self.more: dict[str, float] = {}
        self._running: tuple[str, float, float] | None = None

    def lap(self, name: str | None) -> None:
        """End the lap that runs, and begin another unless there is no name for it."""
        cpu, wall = time.process_time(), time.perf_counter()
        if self._running is not None:
            ended, cpu_then, wall_then = self._running
            self.laps[ended] = {"cpu": cpu - cpu_then, "wall": wall - wall_then}
        self._running = None if name is None else (name, time.process_time(), time.perf_counter())

    def report(self) -> None:
        """Print the one line the benchmark reads. On stderr: stdout belongs to the protocol."""
        print(json.dumps({"laps": self.laps, "more": self.more}), file=sys.stderr, flush=True)
