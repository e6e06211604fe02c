"""`session/new` with one MCP server over stdio, answered when the server is ready, against the MCP SDK by itself.

Both start the same program when a line on their stdin tells them to, and shake hands with it. Ours does more: it
stores the session, and puts a guard before the server that sees to its end. Cold, the process has just been started,
and loads the SDK too: ours only when the server is named, the other at once. Warm, it has connected one before; the two
take turns.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from typing import TYPE_CHECKING

from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import a_store
from bench.processes import SCRIPTS, ContenderProcess
from bench.wire import INITIALIZE

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender

CONNECTS = 5
REAL = (sys.executable, "-m", "mcp_server_time")
SMALL = (sys.executable, "-S", str(SCRIPTS / "mcp_small_server.py"))


def connect(contender: Contender) -> Sample:
    """Connect a real server cold and warm, and warm one that takes no time to start."""
    cold, warm = _cold_and_warm(contender.program, REAL)
    _, small = _cold_and_warm(contender.program, SMALL)
    return {
        "cold": cold.ours / cold.bare,
        "warm": warm.ours / warm.bare,
        "ours": warm.ours * 1e3,
        "bare": warm.bare * 1e3,
        "more": (small.ours - small.bare) * 1e3,
    }


class _Both:
    """How long each took, in seconds; the median where there are several."""

    def __init__(self, ours: list[float], bare: list[float]) -> None:
        self.ours = statistics.median(ours)
        self.bare = statistics.median(bare)


def _cold_and_warm(program: str, server: tuple[str, ...]) -> tuple[_Both, _Both]:
    command, *arguments = server
    params = {
        "cwd": "/",
        "mcpServers": [{"name": "it", "command": command, "args": arguments, "env": []}],
    }
    new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params}
    with a_store() as store:
        before = time.perf_counter()
        with ContenderProcess((program, str(SCRIPTS / "ours_mcp.py"), store)) as agent:
            agent.write(INITIALIZE)
            agent.read_line()
            ours = [_new(agent, json.dumps(new).encode() + b"\n") - before]
            before = time.perf_counter()
            with ContenderProcess((program, str(SCRIPTS / "mcp_sdk_connect.py"), *server)) as bare:
                theirs = [_connect(bare) - before]
                for _ in range(CONNECTS):
                    before = time.perf_counter()
                    ours.append(_new(agent, json.dumps(new).encode() + b"\n") - before)
                    before = time.perf_counter()
                    theirs.append(_connect(bare) - before)
                bare.end()
            agent.end()
    return _Both(ours[:1], theirs[:1]), _Both(ours[1:], theirs[1:])


def _new(agent: ContenderProcess, request: bytes) -> float:
    """Make a session; give the moment it was there. Then close it."""
    agent.write(request)
    line = agent.read_line()
    ready = time.perf_counter()
    found = re.search(rb'"sessionId":\s*"([^"]*)"', line)
    assert found is not None, line
    agent.write(b'{"jsonrpc":"2.0","id":2,"method":"session/close","params":{"sessionId":"%b"}}\n' % found[1])
    agent.read_until(b'"id":2')
    return ready


def _connect(bare: ContenderProcess) -> float:
    """Connect; give the moment that was done. Then close."""
    bare.write(b"\n")
    bare.read_until(b"connected")
    ready = time.perf_counter()
    bare.write(b"\n")
    bare.read_until(b"closed")
    return ready


CONNECT = Benchmark(
    name="mcp",
    title="`session/new` with an MCP server, against the bare SDK",
    sample=connect,
    figures=(
        Figure("warm", "warm", TIMES, (Bound("at most", 1.15),)),
        Figure("cold, from the start of the process", "cold", TIMES, (Bound("at most", 1.15),)),
        Figure("warm, ours", "ours", "ms"),
        Figure("warm, the bare SDK", "bare", "ms"),
        Figure("more for a server that starts at once", "more", "ms"),
    ),
    who=("ours",),
)
