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
from bench.processes import SCRIPTS, ContenderProcess
from bench.turn_load import TurnLoad, compare, figures_of

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from bench.model import Sample
    from bench.processes import Contender

SESSIONS = (1, 16, 64, 256)
PROCESSES = 12
SLICES, SECONDS = 6, 0.5
WARM_UP = 0.5

OURS = str(SCRIPTS / "ours_short.py")

RATES = {1: 0.95, 16: 2.0, 64: 2.2, 256: 2.2}
"""So many times as many turns a second are asked for, by the number of sessions."""


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


def one_agent(contender: Contender) -> Sample:
    """Measure one session of ours, or of the SDK's agent."""
    if contender.who != "ours":
        with contender.start("short") as agent:
            return _alone(TurnLoad([agent], 1))
    with _load(sources.source(), processes=1, sessions=1) as load:
        return _alone(load)


def _alone(load: TurnLoad) -> Sample:
    load.run(WARM_UP)
    return figures_of([load.run(SECONDS) for _ in range(SLICES)])


def _figures(sessions: int) -> tuple[Figure, ...]:
    one = "session" if sessions == 1 else "sessions"
    at, key = f"{sessions} {one}", f"{{}} {sessions}".format
    return (
        Figure(
            f"{at}, turns a second, of the baseline's", key("rate ratio"), TIMES, (Bound("at least", RATES[sessions]),)
        ),
        Figure(
            f"{at}, p50, of the baseline's",
            key("p50 ratio"),
            TIMES,
            (Bound("at most", 0.45),) if sessions == 256 else (),
        ),
        Figure(f"{at}, p99, of the baseline's", key("p99 ratio"), TIMES),
        Figure(
            f"{at}, CPU a turn, of the baseline's",
            key("cpu ratio"),
            TIMES,
            (Bound("at most", 0.5),) if sessions == 64 else (),
        ),
        Figure(f"{at}, turns a second", key("rate"), "/s"),
        Figure(f"{at}, p50", key("p50"), "ms"),
        Figure(f"{at}, p99", key("p99"), "ms"),
        Figure(f"{at}, CPU a turn", key("cpu"), "µs"),
    )


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
    sample=one_agent,
    figures=(Figure("CPU", "cpu", "µs", (Bound("share", 1.8, "python_sdk"),)), Figure("p50 wall", "p50", "ms")),
    who=("ours", "python_sdk"),
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
