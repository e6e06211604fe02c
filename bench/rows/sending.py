"""An agent sends updates; the other end only drains the pipe."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench.model import Benchmark, Bound, Figure
from bench.wire import open_session, take_turn

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

COUNT = 20_480


def send(contender: Contender, *, how: str) -> Sample:
    """Let it send some to warm up, then some that count. The lap ends when the next prompt arrives: all is written."""
    with contender.start("agent") as agent:
        open_session(agent)
        take_turn(agent, f"{how} {COUNT - 1}")
        take_turn(agent, f"{how} {COUNT}")
        take_turn(agent, "done")
        lap = agent.finish().laps[f"{how} {COUNT}"]
    return {"cpu": lap.cpu / COUNT * 1e6, "wall": lap.wall / COUNT * 1e6}


BURST = Benchmark(
    name="burst",
    title="update sent, 256 at once",
    sample=partial(send, how="burst"),
    figures=(
        Figure("CPU", "cpu", "µs", (Bound("times less", 15, "python_sdk"), Bound("times less", 6, "typescript_sdk"))),
        Figure("wall", "wall", "µs"),
    ),
)

TICK = Benchmark(
    name="tick",
    title="update sent, one a loop tick",
    sample=partial(send, how="tick"),
    figures=(
        Figure("CPU", "cpu", "µs", (Bound("times less", 4, "python_sdk"), Bound("times less", 1.5, "typescript_sdk"))),
        Figure("wall", "wall", "µs"),
    ),
)
