"""A client makes a history of the chunks of a long message, against the official SDK's accumulator.

The accumulator copies all it has at every chunk, so it is given fewer. The last figure is the whole way: what a program
that iterates over a turn of our client library spends on an update, from the pipe to its loop; the SDK's client, which
has no such thing, only hands each update to a function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.model import TIMES, Benchmark, Bound, Figure
from bench.wire import UPDATE, answer

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

COUNTS = {"ours": (1_000, 10_000, 100_000), "python_sdk": (100, 1_000)}
SAME = 1_000
"""How many both of them take."""

ITERATED = 40_000


def fold(contender: Contender) -> Sample:
    """Let it fold some, and ten times as many; a first round does not count."""
    counts = [str(it) for it in COUNTS[contender.who]]
    with contender.start("fold", counts[0], *counts) as process:
        laps = process.finish().laps
    few, many = (laps[it].cpu for it in counts[-2:])
    return {"chunk": laps[str(SAME)].cpu / SAME * 1e6, "growth": many / few, "iterated": iterate(contender)}


def iterate(contender: Contender) -> float:
    """Answer a prompt with updates; see what one costs."""
    with contender.start("library" if contender.who == "ours" else "client", f"updates {ITERATED}") as client:
        answer(client, b'{"protocolVersion":1,"agentCapabilities":{}}')
        answer(client, b'{"sessionId":"sess_0123456789abcdef"}')
        answer(client, b'{"stopReason":"end_turn"}', after=UPDATE * ITERATED)
        return client.finish().laps[f"updates {ITERATED}"].cpu / ITERATED * 1e6


FOLD = Benchmark(
    name="fold",
    title="chunks of a message made a history",
    sample=fold,
    figures=(
        Figure(f"CPU a chunk, of {SAME:,}", "chunk", "µs", (Bound("times less", 50, "python_sdk"),)),
        Figure("CPU of ten times as many, up to 100,000 (SDK: 1,000)", "growth", TIMES, (Bound("at most", 13),)),
        Figure(
            "CPU an update, received, folded and iterated over (SDK: received)",
            "iterated",
            "µs",
            (Bound("times less", 3, "python_sdk"),),
        ),
    ),
    who=("ours", "python_sdk"),
)
