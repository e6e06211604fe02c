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
    """Let one session take turn after turn, Pydantic AI by itself as many beside it, and compare some of them."""
    ours, alone = _turns()
    early, late = (slice(EARLY, EARLY + MEASURED), slice(LATE, None))
    beyond = [Lap(mine.cpu - other.cpu, 0.0) for mine, other in zip(ours, alone, strict=True)]
    return {
        "wall ratio": _median(ours[late]).wall / _median(ours[early]).wall,
        "cpu ratio": _median(ours[late]).cpu / _median(ours[early]).cpu,
        "wall": _median(ours[late]).wall * 1e3,
        "cpu": _median(ours[late]).cpu * 1e3,
        "alone ratio": _median(alone[late]).cpu / _median(alone[early]).cpu,
        "beyond ratio": _median(beyond[late]).cpu / _median(beyond[early]).cpu,
        "beyond": _median(beyond[late]).cpu * 1e3,
    }


def _turns() -> tuple[list[Lap], list[Lap]]:
    """Let both take a turn each, again and again, so that what else the machine does hits both."""
    ours: list[Lap] = []
    alone: list[Lap] = []
    script = str(SCRIPTS / "pydantic_alone.py")
    with (
        a_store() as store,
        agent_process(str(SCRIPTS / "ours_pydantic.py"), store, sources.source()) as agent,
        ContenderProcess((sys.executable, script)) as other,
    ):
        session = open_session(agent)
        for _ in range(LATE + MEASURED):
            cpu, wall = cpu_of(agent.pid), time.perf_counter()
            take_turn(agent, "a question of a few words", session)
            ours.append(Lap(cpu_of(agent.pid) - cpu, time.perf_counter() - wall))
            cpu, wall = cpu_of(other.pid), time.perf_counter()
            other.write(b"\n")
            other.read_line()
            alone.append(Lap(cpu_of(other.pid) - cpu, time.perf_counter() - wall))
        agent.end()
        other.end()
    return ours, alone


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
        Figure("CPU beyond Pydantic AI's own", "beyond", "ms"),
    ),
    who=("ours",),
)
