"""A server with more and more turns at once: how late it says what its agents say, and where it begins to refuse.

python -m app.tests.torture.many_turns 250 500 1000 2000

Each turn says a word ten times a second, as a model does. A word has the time at which the agent said it; the client
tells how much later it came. Run it alone on a machine: the clients take a part of it.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from app.tests.support.remote_process import ServeProcess
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.transport import Line, Transport

AGENT = """\
import asyncio, time
from holdfast import Agent, Turn

agent = Agent("paced")

@agent.prompt
async def answer(turn: Turn) -> None:
    seconds, pace = map(float, turn.text.split())
    for _ in range(int(seconds / pace)):
        await turn.say(f"at={time.monotonic()} ")
        await asyncio.sleep(pace)
"""

SETTINGS = "[limits]\nrequests = 1e6\nburst = 1e6\n"
SESSIONS_A_CONNECTION = 100
PATIENCE = 600.0
_SAID = re.compile(rb"at=([0-9.]+) ")
_ANSWER = re.compile(rb'"id":(\d+),"(result|error)"')
_SESSION = re.compile(rb'"sessionId":"([^"]*)"')
_MESSAGE = re.compile(rb'"message":"([^"]*)"')


class Row(NamedTuple):
    """What was measured with some turns at once. Times in seconds."""

    turns: int
    ended: int
    refused: int
    first: float
    """From a prompt to the first word, of the slowest of a hundred."""
    late: float
    late_99: float
    cpu: float
    """How much of one processor the server took."""
    memory: int
    descriptors: int
    said: str
    """What the first that was refused was told."""


class _Connection:
    """One connection with some sessions, read without understanding more than is measured."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._answers: dict[int, asyncio.Future[bytes]] = {}
        self._next = 0
        self.late: list[float] = []
        self.first: dict[bytes, float] = {}
        transport.open(self)

    def ask(self, method: str, params: object) -> asyncio.Future[bytes]:
        self._next += 1
        future = self._answers[self._next] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        self._transport.send(msgspec.json.encode(message))
        return future

    def lines_received(self, lines: Sequence[Line]) -> None:
        now = time.monotonic()
        for line in lines:
            assert isinstance(line, bytes)
            if (said := _SAID.search(line)) is not None:
                self.late.append(now - float(said[1]))
                if (session := _SESSION.search(line)) is not None:
                    self.first.setdefault(session[1], now)
            elif (answer := _ANSWER.search(line)) is not None:
                self._answers.pop(int(answer[1])).set_result(line)

    def input_ended(self, reason: Exception | None = None) -> None:
        for future in self._answers.values():
            future.set_exception(reason or EOFError())

    async def close(self) -> None:
        await self._transport.close(0.1)


async def _measured(server: ServeProcess, turns: int, seconds: float, pace: float) -> Row:
    connections: list[_Connection] = []
    sessions: list[tuple[_Connection, str]] = []
    async with asyncio.timeout(PATIENCE):
        while len(sessions) < turns:
            connection = _Connection(await connect_websocket(server.url))
            connections.append(connection)
            await connection.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            for _ in range(min(SESSIONS_A_CONNECTION, turns - len(sessions))):
                made = _SESSION.search(await connection.ask("session/new", {"cwd": "/tmp", "mcpServers": []}))
                assert made is not None
                sessions.append((connection, made[1].decode()))
        cpu, begun = _cpu(server.pid), time.monotonic()
        asked: list[tuple[_Connection, str, float, asyncio.Future[bytes]]] = []
        text = f"{seconds} {pace}"
        for number, (connection, session) in enumerate(sessions):
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
            asked.append((connection, session, time.monotonic(), connection.ask("session/prompt", prompt)))
            if number % 20 == 19:
                await asyncio.sleep(20 * min(seconds / 3 / turns, 0.01))  # within a third of the time of a turn
        await asyncio.sleep(seconds / 3)
        memory, descriptors = _memory(server.pid), _descriptors(server.pid)
        answers = await asyncio.gather(*(future for *_, future in asked))
        took = time.monotonic() - begun
        cpu = (_cpu(server.pid) - cpu) / took
    firsts = sorted(
        connection.first[session.encode()] - at for connection, session, at, _ in asked
        if session.encode() in connection.first
    )  # fmt: skip
    late = sorted(late for connection in connections for late in connection.late)
    refused = [answer for answer in answers if b'"error"' in answer]
    told = _MESSAGE.search(refused[0]) if refused else None
    for connection in connections:
        await connection.close()
    return Row(
        turns, len(answers) - len(refused), len(refused), _at(firsts, 0.99), statistics.median(late or [0.0]),
        _at(late, 0.99), cpu, memory, descriptors, "" if told is None else told[1].decode(),
    )  # fmt: skip


def _at(ordered: Sequence[float], part: float) -> float:
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)] if ordered else 0.0


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def _memory(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) >> 10


async def _run(counts: Sequence[int], seconds: float, pace: float, options: tuple[str, ...]) -> None:
    print("turns  ended  refused  first(p99)  late(p50)  late(p99)  cpu  MiB  files")
    for turns in counts:
        with tempfile.TemporaryDirectory() as place:
            (Path(place) / "agent.py").write_text(AGENT)
            (Path(place) / "serve.toml").write_text(SETTINGS)
            given = ("--no-audit", "--no-auth", "--config", f"{place}/serve.toml", *options)
            with ServeProcess(Path(place), f"{place}/agent.py", options=given) as server:
                row = await _measured(server, turns, seconds, pace)
                print(
                    f"{row.turns:5}  {row.ended:5}  {row.refused:7}  {row.first:10.2f}  {row.late:9.3f}  "
                    f"{row.late_99:9.3f}  {row.cpu:3.0%}  {row.memory:4}  {row.descriptors:5}  {row.said}",
                    flush=True,
                )
                if ((told := server.complaints()) and "WARN" in told) or "ERROR" in told:
                    print(told[-500:])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m app.tests.torture.many_turns", description=__doc__)
    parser.add_argument("turns", type=int, nargs="+", help="how many turns at once, one measurement after the other")
    parser.add_argument("--seconds", type=float, default=15.0, help="how long a turn takes (default: %(default)s)")
    parser.add_argument("--pace", type=float, default=0.1, help="seconds between two words (default: %(default)s)")
    parser.add_argument("--option", action="append", default=[], help="an option of `holdfast serve`, as --max-turns=9")
    options = parser.parse_args()
    asyncio.run(_run(options.turns, options.seconds, options.pace, tuple(options.option)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
