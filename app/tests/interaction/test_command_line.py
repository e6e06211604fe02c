"""`holdfast run`: what it says to people, and what it loads before it answers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import running

if TYPE_CHECKING:
    from pathlib import Path

AGENT = """
from holdfast import Agent
{name} = Agent("{name}")
@{name}.prompt
async def answer(turn):
    await turn.say("I am {name}")
"""


def holdfast(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "holdfast", *arguments)
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=90, check=False)


@pytest.mark.parametrize(
    ("source", "named", "says"),
    [
        (None, "agent.py", "there is no file agent.py"),
        ("x = (\n", "agent.py", "agent.py:1: '(' was never closed"),
        ("x = 1\n", "agent.py", "agent.py declares no agent"),
        ("import nothing_of_that_name\n", "agent.py", "No module named 'nothing_of_that_name'"),
        (AGENT.format(name="a") + AGENT.format(name="b"), "agent.py", "declares several agents"),
        (AGENT.format(name="a"), "agent.py:z", "has no agent called 'z'; it has: a"),
        (AGENT.format(name="a").replace("async def", "def").replace("await ", ""), "agent.py", "async def answer"),
        ("from holdfast import Agent\na = Agent('a')\n", "agent.py", "has no prompt handler"),
    ],
)
def test_a_mistake_in_what_is_to_run_is_told_in_one_line(
    source: str | None, named: str, says: str, tmp_path: Path
) -> None:
    if source is not None:
        (tmp_path / "agent.py").write_text(source)
    done = holdfast("run", named, "--store", "s.db", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert says in done.stderr
    assert done.stderr.startswith("holdfast: ")
    assert done.stderr.count("\n") == 1


def test_a_log_file_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    done = holdfast("run", "demo", "--log-file", "nowhere/x.log", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("holdfast: ") and done.stderr.count("\n") == 1
    assert "nowhere/x.log" in done.stderr


def test_help_names_the_command_and_its_options(tmp_path: Path) -> None:
    assert "run" in holdfast("--help", cwd=tmp_path).stdout
    said = holdfast("run", "--help", cwd=tmp_path).stdout
    for name in ("--store", "--protocol", "--log-level", "--log-file", "demo"):
        assert name in said


@pytest.mark.parametrize("arguments", [(), ("fly",), ("run",), ("run", "demo", "--protocol", "3")])
def test_what_is_not_understood_is_refused_with_the_usage(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = holdfast(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.lower().startswith("usage: holdfast")


@pytest.mark.requirement("A7", "A8")
@pytest.mark.parametrize(("protocol", "asked", "answered"), [("1", 2, 1), ("2", 2, 2), ("auto", 2, 2), ("2", 1, None)])
def test_the_protocol_versions_can_be_chosen(protocol: str, asked: int, answered: int | None, tmp_path: Path) -> None:
    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": asked}}
    arguments = ("run", "demo", "--protocol", protocol, "--store", "s.db")
    done = holdfast(*arguments, cwd=tmp_path, stdin=json.dumps(request) + "\n")
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    if answered is None:
        assert answer["error"]["code"] == -32022
    else:
        assert answer["result"]["protocolVersion"] == answered


def test_a_directory_called_demo_does_not_hide_the_demo_agent(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    request: dict[str, Any] = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    done = holdfast("run", "demo", "--store", "s.db", cwd=tmp_path, stdin=json.dumps(request) + "\n")
    assert json.loads(done.stdout)["result"]["agentInfo"]["name"] == "holdfast-demo"


async def test_one_of_several_agents_in_a_file_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "two.py"
    file.write_text(AGENT.format(name="ann") + AGENT.format(name="bob"))
    async with running(tmp_path / "s.db", f"{file}:bob") as client:
        await client.prompt(await client.new(), "who?")
        assert client.said() == "I am bob"


@pytest.mark.requirement("A1")
async def test_what_agent_code_prints_never_reaches_the_client(tmp_path: Path) -> None:
    file = tmp_path / "noisy.py"
    file.write_text(
        "import os, sys\nprint('loading', flush=True)\nos.system('echo loading')\nsys.stdout.write('loading')\n"
        + AGENT.format(name="noisy")
        + "    print('answering', flush=True)\n    os.system('echo answering')\n"
    )
    log = tmp_path / "log"
    arguments = (str(file), "--log-file", str(log), "--log-level", "debug")
    async with running(tmp_path / "s.db", *arguments, env={"PYTHONUNBUFFERED": "1"}) as client:
        assert await client.prompt(await client.new(), "hello") == "end_turn"
        assert all(message["jsonrpc"] == "2.0" for message in client.heard)
    assert log.exists()


HELLO = """
from holdfast import Agent
agent = Agent("hello")
@agent.prompt
async def answer(turn):
    await turn.say("Hello!")
"""

SLOW_MODULES = {
    *("mcp", "rich", "click", "textual", "uvicorn", "starlette", "websockets", "pydantic", "sqlite3", "difflib"),
    *("http", "email", "tempfile", "zipfile", "importlib.resources", "dataclasses", "random", "secrets", "hashlib"),
    *("hmac", "shutil"),
}
"""What takes a millisecond or more to import, and an agent that says hello can do without."""


def loaded_at(answer: int, file: Path, version: int) -> set[str]:
    """Return which modules are loaded when an agent has answered `initialize` (0), `session/new` (1), a prompt (2)."""
    program = f"""
import os, sys
from holdfast.peer import Peer
real = Peer._send
def send(self, encoded, **more):
    real(self, encoded, **more)
    self.flush()
    if b'"id":{answer},' in encoded:
        os.write(2, "\\n".join(sys.modules).encode())
        os._exit(0)
Peer._send = send
from holdfast_app.cli.main import main
main(["run", "{file}", "--store", sys.argv[1] + "/s.db"])
"""
    # A short path: the socket beside a store that lies deep needs a hash for its name.
    with (
        TemporaryDirectory(dir="/tmp") as place,
        subprocess.Popen(
            (sys.executable, "-c", program, place),
            cwd=file.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        requests: tuple[tuple[str, dict[str, Any]], ...] = (
            ("initialize", {"protocolVersion": version, "info": {"name": "test", "version": "1"}}),
            ("session/new", {"cwd": str(file.parent), "mcpServers": []}),
            ("session/prompt", {"prompt": [{"type": "text", "text": "hello"}]}),
        )
        session: dict[str, Any] = {}
        for n, (method, params) in enumerate(requests[: answer + 1]):
            request = {"jsonrpc": "2.0", "id": n, "method": method, "params": params | session}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            message: dict[str, Any] = {}
            while message.get("id") != n:
                message = json.loads(process.stdout.readline())
            if method == "initialize":
                assert message["result"]["protocolVersion"] == version
            elif method == "session/new":
                session = {"sessionId": message["result"]["sessionId"]}
        return set(process.stderr.read().split())


@pytest.mark.parametrize("version", [1, 2])
def test_only_what_is_needed_is_loaded_on_the_way_to_the_first_answer(version: int, tmp_path: Path) -> None:
    file = tmp_path / "hello.py"
    file.write_text(HELLO)
    loaded = loaded_at(0, file, version)
    assert f"holdfast.surface.v{version}" in loaded
    later = {"apsw", f"holdfast.surface.v{3 - version}", "holdfast.store", "holdfast.engine", "holdfast.workspace"}
    assert not loaded & {
        *SLOW_MODULES,
        *later,
        "holdfast.agent.turn",
        "holdfast.agent.tools",
        "holdfast.subprocesses.child",
    }


@pytest.mark.parametrize("version", [1, 2])
def test_a_first_prompt_loads_no_more_than_it_needs(version: int, tmp_path: Path) -> None:
    file = tmp_path / "hello.py"
    file.write_text(HELLO)
    loaded = loaded_at(2, file, version)
    assert "holdfast.agent.turn" in loaded and "apsw" in loaded
    unneeded = {"holdfast.subprocesses.child", "holdfast.agent.terminals", "holdfast.workspace.files", "holdfast.mcp"}
    unneeded |= {"holdfast.cluster.node_secret", "holdfast.store.cursors", "holdfast.store.words"}
    assert not loaded & {*SLOW_MODULES, *unneeded, f"holdfast.surface.v{3 - version}"}


LOCKED = """
from pathlib import Path
from holdfast import Agent
agent = Agent("locked")
@agent.auth("paste", name="Paste a key", terminal=True)
async def paste():
    key = input("Key: ")
    if key != "sesame":
        raise ValueError("that is no key")
    Path("key.txt").write_text(key)
@agent.logged_in
async def has_key():
    return Path("key.txt").exists()
@agent.prompt
async def answer(turn):
    await turn.say("open")
"""


@pytest.mark.requirement("C12")
async def test_a_user_logs_in_by_running_the_agent_in_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(LOCKED)
    arguments = (str(tmp_path / "agent.py"),)
    async with running(tmp_path / "s.db", *arguments, cwd=tmp_path, auth={"terminal": True}) as client:
        assert (await client.refusal("session/new", {"cwd": "/", "mcpServers": []})).code == -32000
        for typed, status, says in (("knock", 1, "the login failed: that is no key"), ("sesame", 0, "")):
            done = await asyncio.to_thread(
                holdfast, "run", *arguments, "--login", "paste", cwd=tmp_path, stdin=f"{typed}\n"
            )
            assert done.returncode == status and says in done.stderr and done.stderr.count("\n") <= 1
            assert done.stdout == "Key: "
        assert await client.prompt(await client.new(), "hello") == "end_turn"
    unknown = holdfast("run", *arguments, "--login", "other", cwd=tmp_path)
    assert unknown.returncode == 1 and "no way to log in called 'other', but paste" in unknown.stderr
