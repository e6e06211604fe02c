"""Keeps the sessions of some agents busy with short turns, and measures them. Costs little itself.

Prompts are encoded before; of what arrives, only the answers to prompts are looked for, as bytes.
"""

from __future__ import annotations

import re
import select
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

from bench.machine import cpu_of
from bench.wire import INITIALIZE, prompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.model import Sample
    from bench.processes import ContenderProcess

FIRST_ID = 1_000
"""The first prompt's id; smaller ones are those of other requests."""

TAIL_BYTES = 64
"""How much of what was read may be the beginning of an answer's mark."""

PAIRED = ("rate", "p50", "cpu")
"""The figures that single slices have."""

_NEW_SESSION = b'{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'
_SESSION = re.compile(rb'"result":\s*\{[^\n]*?"sessionId":\s*"([^"]*)"')
_ANSWER = re.compile(rb'"id":\s*(\d+),\s*"(result|error)"')


class Slice(NamedTuple):
    """What was measured for a while. Times are in seconds."""

    turns: int
    seconds: float
    cpu: float
    """The processor time of all agents together."""
    latencies: list[float]
    """From a prompt to its answer, of every turn."""


class _Agent:
    """An agent at work, and what was read from it last."""

    def __init__(self, process: ContenderProcess, first: int, sessions: int) -> None:
        self.process = process
        self.first = first
        self.tail = b""
        self.prompts = [
            prompt("a question of a few words", session).replace(b'"id":2', b'"id":%d' % (first + n), 1)
            for n, session in enumerate(_open_sessions(process, sessions))
        ]

    def answered(self) -> list[int]:
        """Read what is there; return the numbers of the prompts that were answered."""
        text = self.tail + self.process.read()
        numbers: list[int] = []
        end = 0
        for found in _ANSWER.finditer(text):
            if found[2] == b"error":
                raise RuntimeError(f"A prompt was refused: {text[found.start() : found.start() + 1_000]!r}")
            numbers.append(int(found[1]))
            end = found.end()
        self.tail = text[max(end, len(text) - TAIL_BYTES) :]
        return numbers


class TurnLoad:
    """Prompts every session again as soon as it has answered."""

    def __init__(self, agents: Sequence[ContenderProcess], sessions: int) -> None:
        """Open that many sessions with each agent."""
        self._agents = [_Agent(agent, FIRST_ID + n * sessions, sessions) for n, agent in enumerate(agents)]
        self._sessions = len(agents) * sessions
        self._by_fd = {agent.process.stdout: agent for agent in self._agents}
        self._poll = select.poll()
        for fd in self._by_fd:
            self._poll.register(fd, select.POLLIN)
        self._asked: dict[int, float] = {}

    def run(self, seconds: float) -> Slice:
        """Keep all sessions busy for a while, then let them finish.

        What counts begins when as many turns as there are sessions have ended, so that they are not all at the same
        point, and holds at least two turns for each session.
        """
        for agent in self._agents:
            self._ask(agent, range(agent.first, agent.first + len(agent.prompts)))
        self._take(self._sessions)
        before, began = self._cpu(), time.perf_counter()
        latencies = self._take(2 * self._sessions, until=began + seconds)
        taken = Slice(len(latencies), time.perf_counter() - began, self._cpu() - before, latencies)
        while self._asked:
            self._read()
        return taken

    def _take(self, turns: int, until: float = 0.0) -> list[float]:
        """Let turns end and others begin, at least so many and so long; return how long each took."""
        latencies: list[float] = []
        while len(latencies) < turns or time.perf_counter() < until:
            for agent, answered, took in self._read():
                latencies += took
                if answered:
                    self._ask(agent, answered)
        return latencies

    def _read(self) -> list[tuple[_Agent, list[int], list[float]]]:
        """Wait until something arrives; return whose prompts were answered, which ones, and how long each took."""
        heard: list[tuple[_Agent, list[int], list[float]]] = []
        for fd, _ in self._poll.poll():
            agent = self._by_fd[fd]
            answered, now = agent.answered(), time.perf_counter()
            heard.append((agent, answered, [now - self._asked.pop(number) for number in answered]))
        return heard

    def _ask(self, agent: _Agent, numbers: Sequence[int]) -> None:
        self._asked |= dict.fromkeys(numbers, time.perf_counter())
        agent.process.write(b"".join(agent.prompts[number - agent.first] for number in numbers))

    def _cpu(self) -> float:
        return sum(cpu_of(agent.process.pid) for agent in self._agents)


def _open_sessions(agent: ContenderProcess, count: int) -> list[str]:
    agent.write(INITIALIZE)
    agent.read_line()
    agent.write(b"".join(_NEW_SESSION % (n + 1) for n in range(count)))
    text, found = b"", list[bytes]()
    while len(found) < count:
        text += agent.read()
        found = _SESSION.findall(text)
    return [session.decode() for session in found]


def compare(ours: TurnLoad, theirs: TurnLoad | None, *, slices: int, seconds: float) -> Sample:
    """Measure two by turns. A slice is compared with the neighbouring one of the other; p99 needs all of them."""
    taken: list[Slice] = []
    other: list[Slice] = []
    for n in range(slices):
        for load, kept in ((ours, taken), (theirs, other))[:: 1 if n % 2 else -1]:
            if load is not None:
                kept.append(load.run(seconds))
    sample = figures_of(taken)
    if other:
        pairs = [(figures_of([a]), figures_of([b])) for a, b in zip(taken, other, strict=True)]
        sample |= {f"{name} ratio": statistics.median(a[name] / b[name] for a, b in pairs) for name in PAIRED}
        sample["p99 ratio"] = sample["p99"] / figures_of(other)["p99"]
    return sample


def figures_of(slices: Sequence[Slice]) -> dict[str, float]:
    """Return turns a second, milliseconds that a turn takes, and the agents' microseconds of a turn."""
    latencies = [latency for taken in slices for latency in taken.latencies]
    quantiles = statistics.quantiles(latencies, n=100)
    return {
        "rate": statistics.median(taken.turns / taken.seconds for taken in slices),
        "p50": quantiles[49] * 1e3,
        "p99": quantiles[98] * 1e3,
        "cpu": statistics.median(taken.cpu / taken.turns for taken in slices) * 1e6,
    }
