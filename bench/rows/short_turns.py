"""Short turns, of five chunks each, against an earlier commit and against an agent of the official SDK's.

Agents run as users have them, by `holdfast run` with a store on disk. Old and new are both there all the time and take
turns in slices, because other work on the machine makes more of a difference than most changes do.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from bench import sources
from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import a_store
from bench.processes import SCRIPTS, Contender, ContenderProcess, find
from bench.turn_load import TurnLoad, compare

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from bench.model import Sample

SESSIONS = (1, 16, 64, 256)
PROCESSES = 12
SLICES, SECONDS = 6, 0.5
WARM_UP = 0.5

OURS = str(SCRIPTS / "ours_short.py")

FIGURES = (
    ("rate ratio", "turns a second, of the baseline's", TIMES),
    ("p50 ratio", "p50, of the baseline's", TIMES),
    ("p99 ratio", "p99, of the baseline's", TIMES),
    ("cpu ratio", "CPU a turn, of the baseline's", TIMES),
    ("rate", "turns a second", "/s"),
    ("p50", "p50", "ms"),
    ("p99", "p99", "ms"),
    ("cpu", "CPU a turn", "µs"),
)
ASKED = {
    ("rate ratio", 1): (Bound("at least", 0.95),),
    ("rate ratio", 16): (Bound("at least", 2),),
    ("rate ratio", 64): (Bound("at least", 2.2),),
    ("rate ratio", 256): (Bound("at least", 2.2),),
    ("p50 ratio", 256): (Bound("at most", 0.45),),
    ("cpu ratio", 64): (Bound("at most", 0.5),),
}
"""What is asked of a figure, by its name and the number of sessions."""


def agent_process(script: str, store: str, source: Path) -> ContenderProcess:
    """Start an agent as an editor does."""
    return ContenderProcess((sys.executable, "-m", "holdfast", "run", script, "--store", store), source=source)


@contextmanager
def _load(source: Path, *, processes: int, sessions: int) -> Generator[TurnLoad]:
    """Start agents with one store, and make them ready."""
    with a_store() as store, ExitStack() as stack:
        agents = [stack.enter_context(agent_process(OURS, store, source)) for _ in range(processes)]
        load = TurnLoad(agents, sessions)
        load.run(WARM_UP)
        yield load
        for agent in agents:
            agent.end()


def _compare(*, processes: int, sessions: int) -> Sample:
    with ExitStack() as stack:
        before = sources.baseline()
        ours = stack.enter_context(_load(sources.source(), processes=processes, sessions=sessions))
        theirs = before and stack.enter_context(_load(before, processes=processes, sessions=sessions))
        return compare(ours, theirs, slices=SLICES, seconds=SECONDS)


def in_one_process(_: Contender) -> Sample:
    """Measure one process with few and with many sessions."""
    sample: dict[str, float] = {}
    for sessions in SESSIONS:
        taken = _compare(processes=1, sessions=sessions)
        sample |= {f"{name} {sessions}": value for name, value in taken.items()}
    return sample


def in_many_processes(_: Contender) -> Sample:
    """Measure processes that have one session each, in one store."""
    return _compare(processes=PROCESSES, sessions=1)


def beside_the_sdk(_: Contender) -> Sample:
    """Measure one session of ours and one of the SDK's agent."""
    with ExitStack() as stack:
        ours = stack.enter_context(_load(sources.source(), processes=1, sessions=1))
        sdk, theirs = find("python_sdk"), None
        if isinstance(sdk, Contender):
            theirs = TurnLoad([stack.enter_context(sdk.start("short"))], 1)
            theirs.run(WARM_UP)
        return compare(ours, theirs, slices=SLICES, seconds=SECONDS)


def _figures(sessions: int) -> list[Figure]:
    at = f"{sessions} session{'s' if sessions > 1 else ''}"
    return [
        Figure(f"{at}, {label}", f"{name} {sessions}", unit, ASKED.get((name, sessions), ()))
        for name, label, unit in FIGURES
    ]


SHORT_TURNS = Benchmark(
    name="short-turns",
    title="short turns in one process",
    sample=in_one_process,
    figures=tuple(figure for sessions in SESSIONS for figure in _figures(sessions)),
    who=("ours",),
)

TURN_CPU = Benchmark(
    name="turn-cpu",
    title="a short turn, stored, against an agent that stores nothing",
    sample=beside_the_sdk,
    figures=(
        Figure("CPU, of the Python SDK's", "cpu ratio", TIMES, (Bound("at most", 1.8),)),
        Figure("CPU", "cpu", "µs"),
    ),
    who=("ours",),
)

MANY_PROCESSES = Benchmark(
    name="many-processes",
    title=f"short turns in {PROCESSES} processes with one store",
    sample=in_many_processes,
    figures=(
        Figure("turns a second, of the baseline's", "rate ratio", TIMES, (Bound("at least", 1.2),)),
        Figure("p99, of the baseline's", "p99 ratio", TIMES, (Bound("at most", 0.6),)),
        Figure("p50, of the baseline's", "p50 ratio", TIMES),
        Figure("turns a second", "rate", "/s"),
        Figure("p50", "p50", "ms"),
        Figure("p99", "p99", "ms"),
    ),
    who=("ours",),
)
