"""An agent sends updates and stores each before it is sent; the official SDK's agent sends the same and stores nothing.

Ours is what an author writes, an `Agent` whose handler says things, served over stdio with a store on disk. A lap ends
when the next prompt arrives, so that it holds the end of the turn too: fold, commit, file removed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench.model import Benchmark, Bound, Figure
from bench.places import a_store
from bench.wire import open_session, take_turn

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

COUNT = 20_480


def stream(contender: Contender, *, how: str, version: int = 1, theirs: str = "agent") -> Sample:
    """Let it stream some to warm up, then some that count."""
    with a_store() as store, contender.start("durable" if contender.who == "ours" else theirs, store) as agent:
        session = open_session(agent, version=version if contender.who == "ours" else 1)
        take_turn(agent, f"{how} {COUNT - 1}", session)
        take_turn(agent, f"{how} {COUNT}", session)
        take_turn(agent, "done", session)
        lap = agent.finish().laps[f"{how} {COUNT}"]
    return {"cpu": lap.cpu / COUNT * 1e6, "wall": lap.wall / COUNT * 1e6}


def _row(
    name: str, title: str, how: str, bounds: tuple[float, float], *, version: int = 1, theirs: str = "agent"
) -> Benchmark:
    cpu, wall = bounds
    return Benchmark(
        name=name,
        title=title,
        sample=partial(stream, how=how, version=version, theirs=theirs),
        figures=(
            Figure("CPU", "cpu", "µs", (Bound("times less", cpu, "python_sdk"),)),
            Figure("wall", "wall", "µs", (Bound("times less", wall, "python_sdk"),) if wall else ()),
        ),
        who=("ours", "python_sdk"),
    )


STREAMS: tuple[Benchmark, ...] = (
    _row("durable-burst-v2", "stored update, bursts, v2, against none stored", "burst", (8, 6), version=2),
    _row("durable-burst-v1", "stored update, bursts, v1, against none stored", "burst", (8, 6)),
    _row("durable-tick-v2", "stored update, one a loop tick, v2, against none stored", "tick", (2.5, 0), version=2),
    _row("durable-tick-v1", "stored update, one a loop tick, v1, against none stored", "tick", (2.5, 0)),
    _row("durable-commit-burst", "stored update, bursts, against a commit each", "burst", (5, 5), theirs="storing"),
    _row("durable-commit-tick", "stored update, one a tick, against a commit each", "tick", (5, 0), theirs="storing"),
)
