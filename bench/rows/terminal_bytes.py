"""How much a client is sent while a command prints 8,000 lines, in a second or more.

Version 1 has no words for a terminal of the agent's, and so has to say the whole text of it again and again; version 2
says each piece once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench import sources
from bench.model import TIMES, Benchmark, Bound, Figure
from bench.places import a_store
from bench.processes import SCRIPTS
from bench.rows.short_turns import agent_process
from bench.wire import END_OF_TURN, open_session, prompt

if TYPE_CHECKING:
    from bench.model import Sample
    from bench.processes import Contender


def send(_: Contender) -> Sample:
    """Let a command print for a client of each version."""
    v1, v2 = _bytes(1), _bytes(2)
    return {"ratio": v1 / v2, "v1": v1 / 1e6, "v2": v2 / 1e6}


def _bytes(version: int) -> int:
    with a_store() as store, agent_process(str(SCRIPTS / "ours_terminal.py"), store, sources.source()) as agent:
        session = open_session(agent, version=version)
        agent.write(prompt("print", session))
        sent, tail = 0, b""
        while END_OF_TURN not in tail:
            chunk = agent.read()
            sent += len(chunk)
            tail = tail[-len(END_OF_TURN) :] + chunk
        agent.end()
    return sent


TERMINAL_BYTES = Benchmark(
    name="terminal-bytes",
    title="8,000 lines printed in a terminal",
    sample=send,
    figures=(
        Figure("bytes sent in version 1, of those in version 2", "ratio", TIMES, (Bound("at most", 2),)),
        Figure("bytes sent in version 1", "v1", "MB"),
        Figure("bytes sent in version 2", "v2", "MB"),
    ),
    who=("ours",),
)
