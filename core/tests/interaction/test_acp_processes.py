"""The most important rules once more, over a real `holdfast run` on real pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

import pytest

from core.tests.support.acp import Client, conversation, patiently, running
from core.tests.support.wire import exit_status, rule

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.mark.requirement("A6", "B1", "B6", "B7", "B8")
@VERSIONS
async def test_a_session_goes_on_in_the_next_process(version: int, tmp_path: Path) -> None:
    cwd, store = str(tmp_path), tmp_path / "s.db"
    async with running(store, version=version) as client:
        blank, session = await client.new(cwd), await client.new(cwd)
        assert await client.prompt(session, "/tool") == "end_turn"
        live = conversation(client.updates())
    async with running(store, version=version) as client:
        await client.resume(blank, cwd)
        client.forget()
        if version == 1:
            await client.load(session, cwd)
        else:
            await client.resume(session, cwd, replayFrom={"type": "start"})
        told = conversation(client.updates())
        assert [it for it in told if it["sessionUpdate"] != "user_message"] == [
            it for it in live if it["sessionUpdate"] != "user_message"
        ]
        assert await client.prompt(session, "on we go") == "end_turn"


@pytest.mark.requirement("B19")
async def test_a_session_goes_from_a_process_of_one_version_to_one_of_the_other_and_back(tmp_path: Path) -> None:
    cwd, store = str(tmp_path), tmp_path / "s.db"
    async with running(store, version=1) as client:
        session = await client.new(cwd)
        await client.prompt(session, "one")
    async with running(store, version=2) as client:
        await client.resume(session, cwd)
        await client.prompt(session, "two")
    async with running(store, version=1) as client:
        await client.load(session, cwd)
        assert client.said() == client.said("user_message") == "onetwo"


@pytest.mark.requirement("C4")
@VERSIONS
async def test_what_was_seen_before_a_kill_is_there_afterwards_and_the_turn_has_an_end(
    version: int, tmp_path: Path
) -> None:
    cwd, store, agent = str(tmp_path), tmp_path / "s.db", mortal(tmp_path)
    async with running(store, agent, version=version) as client:
        session = await client.new(cwd)
        client.begin_prompt(session, "go")
        await client.until(lambda: client.said() == "Last words.")
        await kill(client)
    async with running(store, agent, version=version) as client:
        if version == 1:
            await client.load(session, cwd)
        else:
            await client.resume(session, cwd, replayFrom={"type": "start"})
        assert client.said() == "Last words."
        told = conversation(client.updates())
        assert [it["status"] for it in told if it["sessionUpdate"] == "tool_call_update"] == ["failed"]
        if version == 2:
            assert client.states() == ["error"]  # the turn has an end, and says how it came


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
@VERSIONS
def test_it_leaves_in_time_with_status_0_and_the_turn_is_kept(how: str, version: int, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with LineClient(store) as client:
        client.ask("initialize", {"protocolVersion": version})
        session = client.ask("session/new", {"cwd": str(tmp_path), "mcpServers": []})["sessionId"]
        client.say("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "/sleep 60"}]})
        while "Good night" not in client.read():
            pass
        if how == "SIGTERM":
            client.process.send_signal(signal.SIGTERM)
        else:
            client.stdin.close()
        assert exit_status(client.process, rule()) == 0
    with LineClient(store) as client:
        client.ask("initialize", {"protocolVersion": 1})
        client.say("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        while "Good night" not in client.read():
            pass


@pytest.mark.requirement("A4", "A2")
async def test_a_line_that_is_too_long_or_no_json_is_answered_and_the_connection_lives(tmp_path: Path) -> None:
    async with running(tmp_path / "s.db") as client:
        client.forget()
        client.say(b'{"jsonrpc":"2.0","id":7,"method":"' + b"x" * (17 << 20) + b'"}')
        client.say(b"not json")
        await client.until(lambda: len(client.heard) == 2)
        assert {it["error"]["code"] for it in client.heard} <= {-32600, -32700}
        assert await client.prompt(await client.new(str(tmp_path)), "alive") == "end_turn"


@pytest.mark.requirement("B1")
async def test_a_session_is_on_disk_when_it_is_answered_although_the_process_is_killed_at_once(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    agent = mortal(tmp_path)
    async with running(store, agent) as client:
        session = await client.new(str(tmp_path))
        await kill(client)
    async with running(store, agent) as client:
        assert await client.load(session, str(tmp_path)) == {}


@pytest.mark.requirement("A9", "C5")
async def test_a_turn_is_cancelled_over_pipes_as_in_memory(tmp_path: Path) -> None:
    async with running(tmp_path / "s.db") as client:
        session = await client.new(str(tmp_path))
        for cancel in ("session/cancel", "$/cancel_request"):
            client.forget()
            answer = client.begin_prompt(session, "/sleep 60", cancel)
            await client.until(lambda: "Good night" in client.said())
            client.tell(cancel, {"sessionId": session, "requestId": cancel})
            assert await patiently(answer) == {"stopReason": "cancelled"}


def mortal(directory: Path) -> str:
    """An agent that tells its process id as its version, and stops in the middle of its answer."""
    file = directory / "mortal.py"
    file.write_text(
        "import asyncio, os\nfrom holdfast import Agent\nagent = Agent('mortal', version=str(os.getpid()))\n"
        "@agent.prompt\nasync def answer(turn):\n    async with turn.tool('Dig'):\n"
        "        await turn.say('Last words.')\n        await asyncio.Event().wait()\n"
    )
    return str(file)


async def kill(client: Client) -> None:
    """Kill the agent's process, without any warning, and wait until it is gone."""
    introduction = client.heard[0]["result"]
    info = introduction["agentInfo" if client.version == 1 else "info"]
    os.kill(int(info["version"]), signal.SIGKILL)
    await client.until(lambda: client.ended)


class LineClient:
    """A process, and a client without a loop, for a test of how the process ends."""

    def __init__(self, store: Path) -> None:
        command = (sys.executable, "-m", "holdfast", "run", "demo", "--store", str(store))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin and self.process.stdout
        self.stdin, self._stdout = self.process.stdin, self.process.stdout
        self._id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.stdin.close()
        self._stdout.close()

    def say(self, method: str, params: object) -> int:
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()
        return self._id

    def read(self) -> str:
        line = self._stdout.readline()
        assert line, "the process ended"
        return line.decode()

    def ask(self, method: str, params: object) -> dict[str, Any]:
        id_ = self.say(method, params)
        while True:
            message = json.loads(self.read())
            if message.get("id") == id_:
                return message["result"]
