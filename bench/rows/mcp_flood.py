"""Prompts of one session, by turns alone and beside another session whose MCP server never stops talking.

The same agent serves both; what the server says is of seven kinds, each worse for somebody than the others. Of each
kind the prompts take turns with as many at rest.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from itertools import chain
from typing import TYPE_CHECKING

from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import a_store
from bench.processes import SCRIPTS, ContenderProcess
from bench.wire import open_session, take_turn

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

KINDS = ("notices", "progress", "logs", "requests", "answers", "lines", "stderr")
SLICES = 8
PROMPTS = 25
"""How many prompts are timed in a slice."""
UNTIMED_SECONDS = 0.3
"""Prompts come before them for so long: a server may say something quickly at first."""


def compare(contender: Contender) -> Sample:
    """Time prompts beside each kind of flood."""
    latency: dict[str, float] = {}
    pace: dict[str, float] = {}
    rest: list[float] = []
    with a_store() as store, ContenderProcess((contender.program, str(SCRIPTS / "ours_mcp.py"), store)) as agent:
        session = open_session(agent)
        for kind in KINDS:
            alone: list[list[float]] = []
            beside: list[list[float]] = []
            for _ in range(SLICES):
                alone.append(_time_prompts(agent, session))
                flooded = _open_flooded_session(agent, kind)
                beside.append(_time_prompts(agent, session))
                _close(agent, flooded)
            latency[kind] = statistics.median(chain(*beside)) / statistics.median(chain(*alone))
            pace[kind] = statistics.median(map(sum, alone)) / statistics.median(map(sum, beside)) * 100
            rest += chain(*alone)
        agent.end()
    worst = max(latency, key=lambda kind: latency[kind])
    return {
        "latency": latency[worst],
        "pace": min(pace.values()),
        "rest": statistics.median(rest) * 1e3,
        **{f"latency {kind}": latency[kind] for kind in KINDS},
    }


def _open_flooded_session(agent: ContenderProcess, kind: str) -> str:
    arguments = ["-S", str(SCRIPTS / "mcp_flooding_server.py"), kind]
    server = {"name": "flood", "command": sys.executable, "args": arguments, "env": []}
    params = {"cwd": "/", "mcpServers": [server]}
    agent.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params}).encode() + b"\n")
    line = agent.read_line()
    found = re.search(rb'"sessionId":\s*"([^"]*)"', line)
    assert found is not None, line
    return found[1].decode()


def _close(agent: ContenderProcess, session: str) -> None:
    agent.write(b'{"jsonrpc":"2.0","id":2,"method":"session/close","params":{"sessionId":"%b"}}\n' % session.encode())
    agent.read_until(b'"id":2')


def _time_prompts(agent: ContenderProcess, session: str) -> list[float]:
    begin = time.perf_counter() + UNTIMED_SECONDS
    times: list[float] = []
    while len(times) < PROMPTS:
        before = time.perf_counter()
        take_turn(agent, "hello", session)
        if before >= begin:
            times.append(time.perf_counter() - before)
    return times


MCP_FLOOD = Benchmark(
    name="mcp-flood",
    title="prompts beside an MCP server that never stops talking",
    sample=compare,
    figures=(
        Figure("p50, of that at rest, the worst kind", "latency", TIMES, (Bound("at most", 1.5),)),
        Figure("their pace, of that at rest, the worst kind", "pace", "%", (Bound("at least", 90),)),
        Figure("p50 at rest", "rest", "ms"),
        *(Figure(f"p50, of that at rest: {kind}", f"latency {kind}", TIMES) for kind in KINDS),
    ),
    who=("ours",),
)
