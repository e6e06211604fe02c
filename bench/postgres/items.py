"""Items appended one by one and loaded again, against what other frameworks keep sessions with, on the same server.

The others are given item by item. Ours come in turns of ten, as an agent at work makes them, and in turns of two: as
version 1 of the protocol has them, and as version 2, which acknowledges each prompt before it is answered; see
`bench.rows.items`. Each contender has a database of its own, and takes some items before it is measured.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.postgres.server import Row
from bench.processes import ROOT, SCRIPTS, ContenderProcess

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bench.postgres.server import Server
    from bench.processes import Lap
    from holdfast.store import SessionStore

PYTHON = ROOT / ".venv-bench" / "bin" / "python"
OTHERS = {"langgraph_postgres": "langgraph-checkpoint-postgres", "google_adk": "google-adk"}
OURS = {
    "ours, in turns of ten": ("10", "2"),
    "ours, in turns of two, version 1": ("2", "1"),
    "ours, in turns of two, version 2": ("2", "2"),
}
"""How many items are in a turn, and of which version of the protocol it is."""
ITEMS = {"ours": 400, "langgraph_postgres": 400, "google_adk": 100}
"""How many each takes; fewer where they take long. Figures are per item."""
WARM_UP = 40
ROUNDS = 7


async def measure(server: Server, _: SessionStore) -> AsyncGenerator[Row]:
    """Let each of them have a go, in turns."""
    if not PYTHON.exists():
        yield Row("items, one by one, against other frameworks", "not installed: make .venv-bench/.ready")
        return
    each: dict[str, list[dict[str, _PerItem]]] = {}
    for number in range(ROUNDS):
        for name, turns in OURS.items():
            each.setdefault(name, []).append(await _per_item(server, sys.executable, "ours", number, *turns))
        for other, name in OTHERS.items():
            each.setdefault(name, []).append(await _per_item(server, str(PYTHON), other, number))
    for what in ("append", "load"):
        for ours in OURS:
            for name in OTHERS.values():
                yield _compared(
                    what, (ours, [lap[what] for lap in each[ours]]), (name, [lap[what] for lap in each[name]])
                )


class _PerItem(NamedTuple):
    """What one item took, in microseconds: by the clock, and of the processors of client and server."""

    wall: float
    cpu: float


def _compared(what: str, ours: tuple[str, list[_PerItem]], theirs: tuple[str, list[_PerItem]]) -> Row:
    """Compare rounds, each with the one beside it; who is faster is so by the clock and in processor time."""
    both = list(zip(ours[1], theirs[1], strict=True))
    wall = statistics.median(mine.wall / other.wall for mine, other in both)
    cpu = statistics.median(mine.cpu / other.cpu for mine, other in both)
    took, taken = (statistics.median(lap.cpu for lap in laps) for laps in (ours[1], theirs[1]))
    return Row(
        f"{what} an item, {ours[0]} ({took:.0f} µs of CPU), of {theirs[0]} ({taken:.0f} µs)",
        f"{wall:.2f} times, CPU {cpu:.2f} times",
        "< 1 times",
        wall < 1 and cpu < 1,
    )


async def _per_item(server: Server, program: str, name: str, number: int, *more: str) -> dict[str, _PerItem]:
    connection: Any = await server.connect()
    database = f"{name}_{number}_{'_'.join(more)}"
    await connection.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
    await connection.execute(f"CREATE DATABASE {database}")
    await connection.close()
    address = server.address.replace("/postgres?", f"/{database}?")
    environment = {"BENCH_SERVER": str(server.process), "BENCH_WARM_UP": str(WARM_UP)}

    def run() -> dict[str, Lap]:
        script = str(SCRIPTS / f"{name}_items.py")
        with ContenderProcess((program, script, str(ITEMS[name]), address, *more), env=environment) as process:
            return process.finish().laps

    laps = await asyncio.to_thread(run)
    return {
        what: _PerItem(lap.wall / ITEMS[name] * 1e6, (lap.cpu + lap.server) / ITEMS[name] * 1e6)
        for what, lap in laps.items()
    }
