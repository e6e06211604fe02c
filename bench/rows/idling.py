"""Ten thousand live sessions that do nothing: how much memory does each take?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.model import Benchmark, Bound, Figure

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

COUNT = 10_000


def idle(contender: Contender) -> Sample:
    """Let it make the sessions."""
    with contender.start("idle", str(COUNT)) as process:
        return {"memory": process.finish().more["memory"] / 1_000}


IDLE = Benchmark(
    name="idle",
    title=f"{COUNT:,} live sessions that do nothing",
    sample=idle,
    figures=(Figure("memory for each", "memory", "KB", (Bound("share", 1, "python_sdk"), Bound("at most", 2.4))),),
    who=("ours", "python_sdk"),
)
