"""A proxy between an agent and a client: what it costs for each update, how much later the update comes, how it starts.

The proxies of the two SDKs are what one would write with them: two connections, each message decoded to its type and
sent on. They store nothing; ours stores every update before it passes it on.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from typing import TYPE_CHECKING

from bench.machine import cpu_of, memory_of
from bench.model import Benchmark, Bound, Figure
from bench.places import a_store
from bench.processes import SCRIPTS, ContenderProcess
from bench.wire import END_OF_TURN, INITIALIZE, open_session, prompt

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

WARM_UP = 4_000
COUNT = 10_000
SLICES = 10
TIMED = 100
"""Updates in a slice of the measurement of latency."""
STARTS = 3
AGENT = (sys.executable, str(SCRIPTS / "streaming_agent.py"))
SLOW_AGENT = (sys.executable, str(SCRIPTS / "python_sdk_hello.py"))
"""An agent on the official Python SDK, which needs a while to start."""
_SENT = re.compile(rb"sent at (\d+) ")


def pass_on(contender: Contender) -> Sample:
    """Let it pass on some updates to warm up, then some that count."""
    with a_store() as store, contender.start("proxy", store, *AGENT) as proxy:
        session = open_session(proxy)
        _stream(proxy, session, WARM_UP)
        cpu, wall = cpu_of(proxy.pid), time.perf_counter()
        _stream(proxy, session, COUNT)
        cpu, wall = cpu_of(proxy.pid) - cpu, time.perf_counter() - wall
    return {"cpu": cpu / COUNT * 1e6, "wall": wall / COUNT * 1e6}


def _stream(proxy: ContenderProcess, session: str, count: int) -> None:
    """Read until all updates and the answer have come; the answer may overtake updates."""
    proxy.write(prompt(f"burst {count}", session))
    seen, ended, tail = 0, False, b""
    while seen < count or not ended:
        chunk = tail + proxy.read()
        lines, _, tail = chunk.rpartition(b"\n")
        seen += lines.count(b"agent_message_chunk")
        ended = ended or END_OF_TURN in lines


def delay(contender: Contender) -> Sample:
    """Measure how old updates are when they arrive, without and with the proxy by turns."""
    late: dict[bool, list[float]] = {False: [], True: []}
    with a_store() as store, ContenderProcess(AGENT) as alone, contender.start("proxy", store, *AGENT) as proxy:
        sessions = {False: (alone, open_session(alone)), True: (proxy, open_session(proxy))}
        for turn in range(SLICES + 1):
            for wrapped, (process, session) in sessions.items():
                taken = _ages(process, session)
                late[wrapped] += taken if turn else []  # the first warms up
    p50s = [statistics.median(late[wrapped]) for wrapped in (False, True)]
    p99s = [statistics.quantiles(late[wrapped], n=100)[98] for wrapped in (False, True)]
    return {"p50": p50s[1] - p50s[0], "p99": p99s[1] - p99s[0]}


def _ages(process: ContenderProcess, session: str) -> list[float]:
    """Return how many milliseconds old each update of a slice was."""
    process.write(prompt(f"timed {TIMED} 3", session))
    ages: list[float] = []
    tail = b""
    while END_OF_TURN not in tail:
        chunk = process.read()
        now = time.monotonic_ns()
        lines, _, tail = (tail + chunk).rpartition(b"\n")
        ages += [(now - int(sent)) / 1e6 for sent in _SENT.findall(lines)]
        tail = lines[-len(END_OF_TURN) - 40 :] if END_OF_TURN in lines else tail
    return ages


def greet(contender: Contender) -> Sample:
    """Start the agent without and with the proxy by turns, until `initialize` is answered."""
    alone: list[float] = []
    wrapped: list[float] = []
    with a_store() as store:
        for _ in range(STARTS):
            alone.append(_greeted(ContenderProcess(SLOW_AGENT)))
            wrapped.append(_greeted(contender.start("proxy", store, *SLOW_AGENT)))
    own, whole = statistics.median(alone) * 1e3, statistics.median(wrapped) * 1e3
    return {"own": own, "whole": whole, "more": whole - 1.15 * own}


def _greeted(process: ContenderProcess) -> float:
    before = time.perf_counter()
    with process:
        process.write(INITIALIZE)
        process.read_line()
        return time.perf_counter() - before


def rest(contender: Contender) -> Sample:
    """Measure its memory when it has a session and nothing to do."""
    with a_store() as store, contender.start("proxy", store, *AGENT) as proxy:
        session = open_session(proxy)
        _stream(proxy, session, 10)
        return {"memory": memory_of(proxy.pid, "VmRSS")}


WRAP = Benchmark(
    name="wrap",
    title="update passed on by a proxy",
    sample=pass_on,
    figures=(
        Figure("CPU", "cpu", "µs", (Bound("times less", 6, "python_sdk"), Bound("times less", 2.5, "typescript_sdk"))),
        Figure("wall", "wall", "µs"),
    ),
)
WRAP_DELAY = Benchmark(
    name="wrap-delay",
    title="update through `holdfast wrap`, later than without",
    sample=delay,
    figures=(
        Figure("p50", "p50", "ms", (Bound("at most", 1),)),
        Figure("p99", "p99", "ms", (Bound("at most", 5),)),
    ),
    who=("ours",),
)
WRAP_START = Benchmark(
    name="wrap-start",
    title="`initialize` through `holdfast wrap`",
    sample=greet,
    figures=(
        Figure("the agent alone", "own", "ms"),
        Figure("wrapped", "whole", "ms"),
        Figure("beyond 1.15 \N{MULTIPLICATION SIGN} alone", "more", "ms", (Bound("at most", 120),)),
    ),
    who=("ours",),
)
WRAP_IDLE = Benchmark(
    name="wrap-idle",
    title="`holdfast wrap` with a session that does nothing",
    sample=rest,
    figures=(Figure("memory", "memory", "MB", (Bound("at most", 45),)),),
    who=("ours",),
)
