"""What we do on macOS and Windows, forced here: nothing was ever run there, but every branch of ours was.

`sys.platform` is what our code asks, so that is what is changed. Event loops of Windows have no readers and no signals;
locks of files are in `msvcrt`, and `taskkill` kills whole trees: stand-ins do here what these do there.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

import holdfast
from app.tests.support.terminal import window
from core.tests.support.clients import odd, processes_with, said
from core.tests.support.links import PATIENCE
from core.tests.support.schemas import ROOT
from core.tests.support.wire import wait_for_death
from holdfast.errors import UsageError
from holdfast.store.address import default_address
from holdfast.store.sqlite import turn_file
from holdfast.store.sqlite.files import sync_directory
from holdfast.subprocesses import start
from holdfast.subprocesses.undumpable import make_undumpable
from holdfast.subprocesses.windows import command_line
from holdfast.testing.demo_agent import agent as demo_agent
from holdfast.transport.threads import ThreadInput, ThreadOutput
from holdfast.workspace import Files, Workspace
from holdfast.workspace.openat2 import available
from holdfast_app.chat.program_in_terminal import ProgramEnd, run_in_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import ClientSession

_PROGRAM = """
import asyncio, subprocess, sys
import holdfast_app.chat.run_chat, holdfast_app.cli.chat, holdfast.run.run_agent, holdfast.testing.demo_agent
sys.path.append(ROOT)
from app.tests.unit import test_other_systems as stand_ins

sys.modules["msvcrt"] = stand_ins
def refuse(*_):
    raise NotImplementedError

loop = asyncio.SelectorEventLoop
loop.add_reader = loop.add_writer = loop.add_signal_handler = refuse
sys.platform = "win32"
from holdfast_app.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
AS_ON_WINDOWS = _PROGRAM.replace("ROOT", repr(str(ROOT)))
"""A program that runs our command line as it would run on Windows; started with `python -c`."""

LK_NBLCK, LK_UNLCK = 2, 0


def locking(fd: int, mode: int, count: int) -> None:
    """Lock a part of a file, from where it is read next, as `msvcrt.locking` does."""
    fcntl.lockf(fd, fcntl.LOCK_UN if mode == LK_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB, count, 0, os.SEEK_CUR)


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a `taskkill` on PATH; give the file in which it notes whom it kills."""
    notes = tmp_path / "killed"
    program = tmp_path / "bin" / "taskkill"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> "{notes}"\nexec kill -9 "$4"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return notes


@pytest.fixture
def on_windows(killed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be on Windows, as far as our own code can tell."""

    def refuse(*_: object) -> None:
        raise NotImplementedError

    for name in ("add_reader", "add_writer", "add_signal_handler"):
        monkeypatch.setattr(asyncio.SelectorEventLoop, name, refuse)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", sys.modules[__name__])
    return killed


def noted(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


async def ask(session: ClientSession, method: str, **params: object) -> Any:
    return json.loads(await session.ask_text(f"request {method} {json.dumps(params)}"))


# Windows


@pytest.mark.requirement("P8")
@pytest.mark.usefixtures("impatient")
async def test_on_windows_threads_read_and_write_and_trees_are_killed_by_the_system(on_windows: Path) -> None:
    async with odd("ignores the end") as agent:
        transport: Any = agent._link.peer._transport  # pyright: ignore[reportPrivateUsage]
        assert isinstance(transport._input, ThreadInput)
        assert isinstance(transport._output, ThreadOutput)
        session = await agent.new_session()
        assert await session.ask_text("say hello") == "hello"
    assert noted(on_windows) == ["/F", "/T", "/PID", str(transport.pid)]
    assert await transport.wait() == -signal.SIGKILL


async def test_on_windows_nobody_who_has_exited_is_killed(on_windows: Path) -> None:
    async with odd() as agent:
        await (await agent.new_session()).ask_text("say hello")
    assert noted(on_windows) == []


async def test_on_windows_files_are_refused_and_a_command_is_a_program(on_windows: Path, tmp_path: Path) -> None:
    del on_windows
    with pytest.raises(UsageError, match="which Windows does not have"):
        await Files(Workspace.resolve(tmp_path)).read_text("f")
    async with odd(files=True, terminals=True) as agent:
        session = await agent.new_session(tmp_path)
        refused = await ask(session, "fs/read_text_file", path=str(tmp_path / "f"))
        assert (refused["code"], "Windows does not have" in refused["message"]) == (-32602, True)
        refused = await ask(session, "terminal/create", command="echo hello", args=[])  # there is no shell to ask
        assert "echo hello" in refused["message"]
        created = await ask(session, "terminal/create", command=sys.executable, args=["-c", "0"])
        ended = await ask(session, "terminal/wait_for_exit", terminalId=created["terminalId"])
        assert ended["exitCode"] == 0


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (["C:\\x\\python.exe", "-c", "1"], ["C:\\x\\python.exe", "-c", "1"]),
        (["C:\\npm\\gemini.cmd"], 'cmd.exe /d /s /c "C:\\npm\\gemini.cmd"'),
        (["C:\\npm\\gemini.cmd", "--acp"], 'cmd.exe /d /s /c "C:\\npm\\gemini.cmd ^^^"--acp^^^""'),
        (["C:\\My Tools\\x.CMD"], 'cmd.exe /d /s /c "C:\\My^ Tools\\x.CMD"'),
        (["x.bat", "a b"], 'cmd.exe /d /s /c "x.bat ^^^"a^^^ b^^^""'),
        (["x.cmd", "a&b"], 'cmd.exe /d /s /c "x.cmd ^^^"a^^^&b^^^""'),
        (["x.cmd", '{"a":1}'], 'cmd.exe /d /s /c "x.cmd ^^^"{\\^^^"a\\^^^":1}^^^""'),
        (["x.cmd", "C:\\dir\\"], 'cmd.exe /d /s /c "x.cmd ^^^"C:\\dir\\\\^^^""'),
        (["x.cmd", "%PATH%"], 'cmd.exe /d /s /c "x.cmd ^^^"^^^%PATH^^^%^^^""'),
    ],
)
def test_batch_files_get_their_arguments_as_cmd_exe_reads_them(
    command: list[str], line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COMSPEC", raising=False)
    assert command_line(command) == line


async def test_an_agent_is_served_as_on_windows(tmp_path: Path) -> None:
    command = (sys.executable, "-c", AS_ON_WINDOWS, "run", "demo", "--store", str(tmp_path / "db"))
    async with holdfast.connect(*command) as agent, asyncio.timeout(4 * PATIENCE):
        session = await agent.new_session(tmp_path)
        assert await session.ask_text("hello") == "hello"
        async with session.prompt("/sleep 600") as turn:
            async for update in turn:
                if update.kind == "agent_message_chunk":
                    break
        assert turn.stop_reason == "cancelled"


def test_a_chat_as_on_windows_prints_lines_and_draws_nothing(tmp_path: Path) -> None:
    environment = {
        "HOLDFAST_STORE": str(tmp_path / "db"),
        "PYTHONPATH": f"{ROOT / 'core' / 'src'}{os.pathsep}{ROOT / 'app' / 'src'}",
    }
    command = (sys.executable, "-c", AS_ON_WINDOWS, "chat", "demo")
    with window(*command, cwd=tmp_path, env=environment, rows=40) as opened:
        opened.shows("Holdfast demo")
        opened.say("hello **you**")
        opened.until(lambda: opened.screen().count("hello **you**") == 3, "no answer")
        opened.say("/quit")
        assert opened.status() == 0
        assert "\x1b" not in opened.scrollback("-e")


async def test_sessions_are_stored_as_on_windows(on_windows: Path, tmp_path: Path) -> None:
    del on_windows
    store = tmp_path / "data" / "sessions.db"
    async with holdfast.connect(demo_agent, store=store) as agent:
        session = await agent.new_session(tmp_path)
        assert await session.ask_text("hello") == "hello"
    async with holdfast.connect(demo_agent, store=store) as agent:
        assert said((await agent.load(session.id, tmp_path)).history)[-1] == ("agent_message", "hello")


@pytest.mark.parametrize(
    ("system", "home"),
    [("win32", "AppData/Local"), ("darwin", "Library/Application Support"), ("linux", ".local/share")],
)
def test_every_system_has_its_place_for_data(
    system: str, home: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("HOLDFAST_STORE", "LOCALAPPDATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", system)
    assert default_address() == str(tmp_path / home / "holdfast" / "sessions.db")


# macOS


@pytest.mark.requirement("P8")
async def test_on_macos_exits_are_waited_for_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    token = uuid4().hex
    async with odd(token) as agent:
        assert await (await agent.new_session()).ask_text("say hello") == "hello"
    assert not processes_with(token)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delattr(os, "pidfd_open")  # and on a Linux that has no such call
    async with odd(token) as agent:
        assert await (await agent.new_session()).ask_text("say hello") == "hello"


@pytest.mark.requirement("P8")
async def test_on_macos_the_guard_kills_what_is_in_the_group_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ROOT / "core" / "src" / "holdfast" / "subprocesses" / "guard.py"
    guard = tmp_path / "guard.py"
    guard.write_text(
        f"import runpy, sys\nsys.platform = 'darwin'\nrunpy.run_path({str(real)!r}, run_name='__main__')\n"
    )
    monkeypatch.setattr("holdfast.subprocesses.child._GUARD", str(guard))
    child = start(("sh", "-c", "sleep 600 & echo $!; wait"), stdin=False)
    with os.fdopen(child.stdout, "rb") as stdout, os.fdopen(child.stderr, "rb"):
        grandchild = int(await asyncio.to_thread(stdout.readline))
        os.kill(grandchild, 0)
        child.terminate()
        child.kill()
        assert await child.wait(PATIENCE)
    wait_for_death([grandchild])


def test_what_only_linux_has_is_left_alone_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    make_undumpable()
    available.cache_clear()
    try:
        assert not available()
        (tmp_path / "f").write_text("text")
        assert asyncio.run(Files(Workspace.resolve(tmp_path)).read_text("f")) == "text"
    finally:
        available.cache_clear()


def test_an_agent_of_macos_has_its_stdout_for_itself(tmp_path: Path) -> None:
    script = AS_ON_WINDOWS.replace('"win32"', '"darwin"').replace("loop.add_reader = loop.add_writer = ", "")
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 2}}
    done = subprocess.run(
        (sys.executable, "-c", script, "run", "demo", "--store", str(tmp_path / "db")),
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["protocolVersion"] == 2


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("knows_how", [True, False])
def test_on_macos_what_is_durable_is_not_in_the_memory_of_the_drive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, knows_how: bool
) -> None:
    asked: list[str] = []

    def control(_fd: int, command: int) -> int:
        asked.append({51: "full"}[command])
        if not knows_how:
            raise OSError(errno.ENOTSUP, "not supported")
        return 0

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)

    def sync(_fd: int) -> None:
        asked.append("fsync")

    monkeypatch.setattr(os, "fsync", sync)
    each = ["full"] if knows_how else ["full", "fsync"]
    sync_directory(tmp_path)
    assert asked == each
    turn_file._sync_data(0)  # pyright: ignore[reportPrivateUsage]
    assert asked == each * 2


async def test_a_program_that_has_the_terminal_on_windows_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    command = (sys.executable, "-c", "import sys; sys.exit(3)")
    assert await run_in_terminal(command, ".", dict(os.environ)) == ProgramEnd(3, "")
