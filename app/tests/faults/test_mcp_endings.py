"""Agents whose MCP servers do their worst come to an end: in time, and nobody is left (A11, E5, P8)."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.support.mcp import marks, wire
from core.tests.support.wire import Wire, rule, until, wait_for_death

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.requirement("A11", "E5", "P8")

COMMAND = "import sys\nfrom holdfast_app.cli.main import main\nsys.exit(main())"

MANNERS: dict[str, int] = {
    "": 1, "deaf": 1, "family": 4, "deaf family": 4, "silent": 1, "silent deaf family": 4, "exit": 1, "garbage": 1,
    "stderr": 1, "flooder": 1,
}  # fmt: skip
"""How servers behave, and how many processes each of them is."""

STUBBORN = """
import asyncio
from holdfast import Agent

agent = Agent("stubborn")

@agent.prompt
async def answer(turn):
    await turn.say("begin")
    await asyncio.sleep(0)
    await turn.say("x" * 300_000)  # more than a pipe holds
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            note("cancelled")

@agent.on_close
async def closed(session):
    note("closed")
    await asyncio.Event().wait()

def note(what):
    with open("noted", "a") as file:
        file.write(what + " ")
"""


def holdfast(agent: Path | str, store: Path) -> Wire:
    """Start `holdfast run`, without anybody in between."""
    return Wire("run.py", COMMAND, "run", str(agent), "--store", str(store), stderr=False)


def open_session(agent: Wire, cwd: Path, *manners: str) -> str:
    """Open a session with servers; wait until every process of theirs is there."""
    agent.result("initialize", {"protocolVersion": 1})
    file = cwd / "marks"
    servers = [wire(*it.split(), name=it or "plain", MARKS=str(file)) for it in manners]
    session = agent.result("session/new", {"cwd": str(cwd), "mcpServers": servers})["sessionId"]
    until(lambda: len(marks(file)) == sum(MANNERS[it] for it in manners))
    return session


def prompt(agent: Wire, session: str, text: str) -> None:
    agent.ask("prompt", "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})


def guards(agent: Wire) -> list[int]:
    pid = agent.process.pid
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(it) for thread in threads for it in (thread / "children").read_text().split()]


@pytest.mark.parametrize("end", ["session/close", "end of input", "SIGTERM", "SIGKILL"])
def test_nobody_is_left_of_servers_that_do_their_worst(end: str, tmp_path: Path) -> None:
    file = tmp_path / "marks"
    with holdfast("demo", tmp_path / "store.db") as agent:
        session = open_session(agent, tmp_path, *MANNERS)
        prompt(agent, session, '/mcp flooder flood {"of": "garbage", "megabytes": 1000000}')
        while b"flooder: flood" not in agent.line():
            pass
        guarded = guards(agent)
        assert len(guarded) >= len(MANNERS) - 1  # one has exited
        if end == "session/close":
            agent.ask("close", "session/close", {"sessionId": session})
            while b'"id":"close"' not in agent.line():
                pass
        elif end == "end of input":
            agent.close_stdin()
        else:
            agent.process.send_signal(signal.Signals[end])
        if end in ("end of input", "SIGTERM"):
            assert agent.status(rule()) == 0
        wait_for_death([*marks(file), *guarded])
        assert len(marks(file)) == sum(MANNERS.values())
        if end == "session/close":
            until(lambda: guards(agent) == [])


@pytest.mark.parametrize("end", [Wire.close_stdin, Wire.terminate], ids=["end of input", "SIGTERM"])
def test_it_ends_in_time_although_client_turn_hook_and_server_all_hold_it(
    end: Callable[[Wire], None], tmp_path: Path
) -> None:
    """Nobody reads what it says, the turn does not let itself be cancelled, a hook waits for ever, a server is deaf."""
    file, noted = tmp_path / "stubborn.py", tmp_path / "noted"
    file.write_text(STUBBORN.replace('"noted"', repr(str(noted))))
    with holdfast(file, tmp_path / "store.db") as agent:
        prompt(agent, open_session(agent, tmp_path, "deaf family", "silent"), "go")
        while b"begin" not in agent.line():
            pass
        end(agent)
        assert agent.status(rule()) == 0
        wait_for_death(marks(tmp_path / "marks"))
    assert noted.read_text().split()[-1] == "closed"
    assert "cancelled" in noted.read_text()
