"""Items appended one by one and loaded again, against what other frameworks keep sessions with, on the same server.

The others are given item by item. Ours come in turns of ten, as an agent at work makes them, and in turns of two; see
`bench.rows.items`. Each contender has a database of its own.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from typing import TYPE_CHECKING, Any

from bench.postgres.server import Row
from bench.processes import ROOT, SCRIPTS, ContenderProcess

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bench.postgres.server import Server
    from bench.processes import Lap
    from holdfast.store import SessionStore

PYTHON = ROOT / ".venv-bench" / "bin" / "python"
OTHERS = {"langgraph_postgres": "langgraph-checkpoint-postgres", "google_adk": "google-adk"}
ITEMS = {"ours": 2_000, "langgraph_postgres": 600, "google_adk": 300}
"""How many each takes; fewer where they take long. Figures are per item."""
ROUNDS = 5


async def measure(server: Server, _: SessionStore) -> AsyncGenerator[Row]:
    """Let each of them have a go, in turns."""
    if not PYTHON.exists():
        yield Row("items, one by one, against other frameworks", "not installed: make .venv-bench/.ready")
        return
    laps: dict[str, list[dict[str, Lap]]] = {"ours, in turns of ten": [], "ours, in turns of two": []}
    for number in range(ROUNDS):
        for size, name in ((10, "ours, in turns of ten"), (2, "ours, in turns of two")):
            laps[name].append(await _laps(server, sys.executable, "ours", number, str(size)))
        for other, name in OTHERS.items():
            laps.setdefault(name, []).append(await _laps(server, str(PYTHON), other, number))
    counts = dict.fromkeys(laps, ITEMS["ours"]) | {name: ITEMS[other] for other, name in OTHERS.items()}
    for what in ("append", "load"):
        each = {
            name: statistics.median(lap[what].wall for lap in some) / counts[name] * 1e6 for name, some in laps.items()
        }
        for ours in list(each)[:2]:
            for name in OTHERS.values():
                yield Row(
                    f"{what} an item, {ours} ({each[ours]:.0f} µs), of {name} ({each[name]:.0f} µs)",
                    f"{each[ours] / each[name]:.2f} times",
                    "< 1 times",
                    each[ours] < each[name],
                )


async def _laps(server: Server, program: str, name: str, number: int, *more: str) -> dict[str, Lap]:
    connection: Any = await server.connect()
    database = f"{name}_{number}_{'_'.join(more)}"
    await connection.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
    await connection.execute(f"CREATE DATABASE {database}")
    await connection.close()
    address = server.address.replace("/postgres?", f"/{database}?")

    def run() -> dict[str, Lap]:
        script = str(SCRIPTS / f"{name}_items.py")
        with ContenderProcess((program, script, str(ITEMS[name]), address, *more)) as process:
            return process.finish().laps

    return await asyncio.to_thread(run)
