"""Loads of a long session, against an earlier commit: one that had no checksums.

Agents run as users have them, by `holdfast run` with a store on disk. Old and new are both there all the time and load
by turns, because other work on the machine makes more of a difference than most changes do.
"""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from bench import sources
from bench.histories import ENTRIES
from bench.machine import cpu_of
from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import a_store
from bench.processes import SCRIPTS
from bench.rows.replaying import ask
from bench.rows.short_turns import agent_process
from bench.wire import open_session, take_turn

if TYPE_CHECKING:
    from pathlib import Path

    from bench.model import Sample
    from bench.processes import Contender, ContenderProcess

LONG_PAST = str(SCRIPTS / "ours_long_past.py")
LOADS = 24
FIRST_ID = 100


class Load(NamedTuple):
    """The seconds that one load took."""

    wall: float
    cpu: float


class _LongSession:
    """A session with a long past that one process has made, and another one that loads it."""

    def __init__(self, stack: ExitStack, source: Path, version: int) -> None:
        store = stack.enter_context(a_store())
        with agent_process(LONG_PAST, store, source) as maker:
            self._session = open_session(maker)
            take_turn(maker, str(ENTRIES), self._session)
            maker.end()
        self._agent: ContenderProcess = stack.enter_context(agent_process(LONG_PAST, store, source))
        open_session(self._agent, version=version)
        self._id = FIRST_ID
        self.load()  # warms it up

    def load(self) -> Load:
        """Load the session."""
        self._id += 1
        before = cpu_of(self._agent.pid)
        took, _ = ask(self._agent, "load", self._session, self._id)
        time.sleep(0.01)  # what it does behind its answer counts too
        return Load(took, cpu_of(self._agent.pid) - before)


def compare(_: Contender, *, version: int) -> Sample:
    """Let two trees load by turns. Each load is compared with the neighbouring one of the other."""
    ours: list[Load] = []
    theirs: list[Load] = []
    with ExitStack() as stack:
        before = sources.baseline()
        new = _LongSession(stack, sources.source(), version)
        old = before and _LongSession(stack, before, version)
        for n in range(LOADS):
            for session, loads in ((new, ours), (old, theirs))[:: 1 if n % 2 else -1]:
                if session is not None:
                    loads.append(session.load())
    sample = {"cpu": statistics.median(load.cpu for load in ours) / ENTRIES * 1e6}
    if theirs:
        pairs = list(zip(ours, theirs, strict=True))
        sample["rate"] = statistics.median(b.wall / a.wall for a, b in pairs)
        sample["cpu rate"] = statistics.median(b.cpu / a.cpu for a, b in pairs)
        # Whatever else runs makes a load longer and never shorter, so the shortest say most on a busy machine.
        sample["least cpu"] = min(load.cpu for load in theirs) / min(load.cpu for load in ours)
    return sample


def _row(version: int) -> Benchmark:
    return Benchmark(
        name=f"replay-before-v{version}",
        title=f"replay of {ENTRIES:,} entries with checksums checked, v{version}",
        sample=partial(compare, version=version),
        figures=(
            Figure("rate, of the baseline's", "rate", TIMES, (Bound("at least", 0.95),)),
            Figure("rate by CPU, of the baseline's", "cpu rate", TIMES, (Bound("at least", 0.95),)),
            Figure("rate by the least CPU of a load, of the baseline's", "least cpu", TIMES),
            Figure("CPU an entry", "cpu", "µs"),
        ),
        who=("ours",),
    )


V2 = _row(2)
V1 = _row(1)
