"""A turn of an agent on Pydantic AI, late in a long conversation, against one early in it.

The model is a function that answers at once, so what is measured is what the conversation so far costs. Pydantic AI
goes through all messages several times in each run, whoever calls it; so it is measured by itself as well, and what an
agent of ours takes beyond that is compared, too.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING

from bench import sources
from bench.machine import cpu_of
from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import a_store
from bench.processes import SCRIPTS, ContenderProcess, Lap
from bench.rows.short_turns import agent_process
from bench.wire import open_session, take_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.model import Sample
    from bench.processes import Contender

EARLY, LATE, MEASURED = 10, 600, 20
"""After so many turns, that many are measured."""


def grow(_: Contender) -> Sample:
    """Let one session take turn after turn, and compare some of them."""
    laps = _turns()
    early, late = _median(laps[EARLY : EARLY + MEASURED]), _median(laps[LATE:])
    with ContenderProcess(
        (sys.executable, str(SCRIPTS / "pydantic_alone.py"), *map(str, (EARLY, LATE, MEASURED)))
    ) as other:
        alone = other.finish().laps
    return {
        "wall ratio": late.wall / early.wall,
        "cpu ratio": late.cpu / early.cpu,
        "wall": late.wall * 1e3,
        "cpu": late.cpu * 1e3,
        "alone ratio": alone["late"].cpu / alone["early"].cpu,
        "beyond ratio": (late.cpu - alone["late"].cpu) / (early.cpu - alone["early"].cpu),
    }


def _turns() -> list[Lap]:
    laps: list[Lap] = []
    with a_store() as store, agent_process(str(SCRIPTS / "ours_pydantic.py"), store, sources.source()) as agent:
        session = open_session(agent)
        for _ in range(LATE + MEASURED):
            cpu, wall = cpu_of(agent.pid), time.perf_counter()
            take_turn(agent, "a question of a few words", session)
            laps.append(Lap(cpu_of(agent.pid) - cpu, time.perf_counter() - wall))
        agent.end()
    return laps


def _median(laps: Sequence[Lap]) -> Lap:
    return Lap(statistics.median(lap.cpu for lap in laps), statistics.median(lap.wall for lap in laps))


PYDANTIC_GROWTH = Benchmark(
    name="pydantic-growth",
    title=f"a turn of an agent on Pydantic AI after {LATE} turns",
    sample=grow,
    figures=(
        Figure(f"wall, of one after {EARLY}", "wall ratio", TIMES, (Bound("at most", 1.3),)),
        Figure(f"CPU, of one after {EARLY}", "cpu ratio", TIMES, (Bound("at most", 1.3),)),
        Figure(f"CPU beyond Pydantic AI's own, of one after {EARLY}", "beyond ratio", TIMES, (Bound("at most", 1.3),)),
        Figure(f"CPU of Pydantic AI by itself, of one after {EARLY}", "alone ratio", TIMES),
        Figure("wall", "wall", "ms"),
        Figure("CPU", "cpu", "ms"),
    ),
    who=("ours",),
)
