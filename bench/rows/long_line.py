"""A line of 1 GB arrives where 16 MiB are allowed: how much memory does our process take for it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.machine import memory_of
from bench.model import Benchmark, Bound, Figure
from bench.wire import open_session

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

LINE_BYTES = 1_000_000_000
HEAD = b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"text":"'
PIECE = b"x" * 1_000_000


def swallow(contender: Contender) -> Sample:
    """Send the line to an idle agent and wait for its refusal. The kernel knows the highest it ever stood."""
    with contender.start("agent") as agent:
        open_session(agent)
        idle = memory_of(agent.pid, "VmRSS")
        agent.write(HEAD)
        for _ in range(LINE_BYTES // len(PIECE)):
            agent.write(PIECE)
        agent.write(b'"}}\n')
        refusal = agent.read_line()
        assert b'"id":7' in refusal and b'"error"' in refusal
        peak = memory_of(agent.pid, "VmHWM")
        agent.end()
    return {"memory": peak - idle}


LONG_LINE = Benchmark(
    name="long-line",
    title="memory above idle while a line of 1 GB arrives",
    sample=swallow,
    figures=(Figure("peak", "memory", "MB", (Bound("at most", 64),)),),
    who=("ours",),
)
