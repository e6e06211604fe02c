"""A client receives updates as fast as it reads them, and handles each in an async function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.model import Benchmark, Bound, Figure
from bench.wire import UPDATE, answer

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

WARM_UP = 20_000
COUNT = 40_000


def receive(contender: Contender) -> Sample:
    """Answer its prompts with updates. A lap ends when it has handled all of them and the answer to the prompt."""
    with contender.start("client", f"updates {WARM_UP}", f"updates {COUNT}") as client:
        answer(client, b'{"protocolVersion":1}')
        answer(client, b'{"sessionId":"sess_0123456789abcdef"}')
        for count in (WARM_UP, COUNT):
            answer(client, b'{"stopReason":"end_turn"}', after=UPDATE * count)
        lap = client.finish().laps[f"updates {COUNT}"]
    return {"cpu": lap.cpu / COUNT * 1e6, "wall": lap.wall / COUNT * 1e6}


RECEIVE = Benchmark(
    name="receive",
    title="update received and handled",
    sample=receive,
    figures=(
        Figure("CPU", "cpu", "µs", (Bound("times less", 10, "python_sdk"), Bound("times less", 7, "typescript_sdk"))),
        Figure("wall", "wall", "µs"),
    ),
)
