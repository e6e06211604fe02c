"""What commands, servers and links between processes do on macOS and Windows, forced on this system.

None of it was ever run there (docs/limits.md). What such a system answers is made up here.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from app.tests.unit.test_other_systems import AS_ON_WINDOWS
from core.tests.support.links import PATIENCE
from core.tests.support.schemas import ROOT
from holdfast.cluster.links import is_available
from holdfast.cluster.sockets import check_other_end
from holdfast.diagnostics import log_file
from holdfast.errors import UsageError
from holdfast.store.postgres import nodes
from holdfast.testing import process_tree
from holdfast.workspace.allowed import AllowedDirectories
from holdfast_app.chat import theme
from holdfast_app.chat.clipboard import image_in_clipboard
from holdfast_app.cli import setup
from holdfast_app.cli.pager import pager_command
from holdfast_app.sandbox import identity_thread
from holdfast_app.sandbox.launcher import Launcher
from holdfast_app.web.agents_file import AgentsFile


def be_on(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)


def run_as_on_windows(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "HOLDFAST_STORE": str(tmp_path / "db"),
        "PYTHONPATH": f"{ROOT / 'core' / 'src'}{os.pathsep}{ROOT / 'app' / 'src'}",
    }
    command = (sys.executable, "-c", AS_ON_WINDOWS, *arguments)
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=4 * PATIENCE, check=False
    )


def program(directory: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program of another system on PATH."""
    path = directory / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")


# macOS


class MacSocket(socket.socket):
    """A socket that says who is at its other end as macOS does."""

    user: int = 0

    def getsockopt(self, level: int, option: int, size: int = 0) -> Any:
        assert (level, option, size) == (0, 1, 76)
        return struct.pack("=IIh", 0, self.user, 1).ljust(size, b"\0")


@pytest.mark.requirement("P9")
def test_on_macos_a_process_of_another_user_is_not_talked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    be_on("darwin", monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: 501)
    with MacSocket(socket.AF_UNIX) as connected:
        for connected.user in (501, 0):
            check_other_end(connected)
        connected.user = 502
        with pytest.raises(PermissionError, match="another user"):
            check_other_end(connected)
        be_on("freebsd14", monkeypatch)  # where nobody knows how to ask
        check_other_end(connected)


@pytest.mark.requirement("H10")
def test_on_macos_an_open_directory_is_known_by_its_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    be_on("darwin", monkeypatch)
    monkeypatch.setattr(fcntl, "F_GETPATH", 50, raising=False)

    def control(descriptor: int, command: int, room: bytes) -> bytes:
        assert command == 50
        return bytes(Path(f"/proc/self/fd/{descriptor}").readlink()).ljust(len(room), b"\0")

    monkeypatch.setattr(fcntl, "fcntl", control)
    (tmp_path / "in").mkdir()
    allowed = AllowedDirectories([str(tmp_path / "in")])
    for name, inside in (("in", True), (".", False)):
        descriptor = os.open(tmp_path / name, os.O_RDONLY)
        try:
            assert allowed.holds(descriptor) == inside
            be_on("freebsd14", monkeypatch)
            assert not allowed.holds(descriptor)  # what nobody can find out is not allowed
        finally:
            os.close(descriptor)
            be_on("darwin", monkeypatch)


async def test_on_macos_an_image_is_pasted_by_pngpaste(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    be_on("darwin", monkeypatch)
    program(tmp_path, "pngpaste", "test \"$1\" = - && printf '\\211PNG rest'", monkeypatch)
    assert await image_in_clipboard() == b"\x89PNG rest"


def test_on_macos_processes_are_found_by_ps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    be_on("darwin", monkeypatch)
    program(tmp_path, "ps", 'printf " 10 1 S+\\n 11 10 R\\n 12 11 Z\\n 13 1 Ss\\n odd\\n"', monkeypatch)
    assert process_tree.descendants(10) == {10, 11}
    assert process_tree.alive(frozenset({11, 12, 13, 99})) == {11, 13}
    assert process_tree.marked(b"anything") == frozenset()


def test_where_there_is_no_clock_that_goes_on_in_sleep_another_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    be_on("darwin", monkeypatch)
    before = time.monotonic()
    assert before <= nodes._now() <= time.monotonic()  # pyright: ignore[reportPrivateUsage]


def test_files_of_other_users_are_served_on_linux_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    be_on("darwin", monkeypatch)
    assert not identity_thread.is_available()
    with pytest.raises(UsageError, match="on Linux alone"):
        identity_thread.threads_of(None)  # pyright: ignore[reportArgumentType]  (nobody looks at whose)


def test_on_macos_an_agent_is_entered_without_what_only_linux_has(tmp_path: Path) -> None:
    enter = ROOT / "app" / "src" / "holdfast_app" / "sandbox" / "enter.py"
    script = f"import runpy, sys\nsys.platform = 'darwin'\nrunpy.run_path({str(enter)!r}, run_name='__main__')"
    settings = json.dumps({"private": True, "cwd": str(tmp_path)})
    done = subprocess.run(
        (sys.executable, "-c", script, settings, "/bin/sh", "-c", "pwd"),
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}\n"), done.stderr


# Windows


def test_what_windows_does_not_have_is_refused_in_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = run_as_on_windows(tmp_path, "demo")
    assert (done.returncode, "there is none for Windows" in done.stdout) == (1, True)
    be_on("win32", monkeypatch)
    assert not is_available()
    with pytest.raises(UsageError, match="needs Linux or macOS"):
        Launcher(directories=lambda _: None)


def test_on_windows_nobody_looks_at_modes_of_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_text("[agents]\n")
    file.chmod(0o666)
    be_on("win32", monkeypatch)
    assert AgentsFile(file).entries() == {}
    log_file._lock(-1)  # pyright: ignore[reportPrivateUsage]  (nor are there such locks)
    be_on("linux", monkeypatch)
    with pytest.raises(UsageError, match="others can write"):
        AgentsFile(file).entries()


def test_sessions_are_looked_after_as_on_windows(tmp_path: Path) -> None:
    printed = run_as_on_windows(tmp_path, "chat", "demo", "--print", "--prompt", "hello")
    assert (printed.returncode, printed.stdout) == (0, "hello\n"), printed.stderr
    exported = run_as_on_windows(tmp_path, "sessions", "export", "last", "-o", "talk.md")
    assert "talk.md" in exported.stdout + exported.stderr
    assert "nobody but you" not in exported.stdout + exported.stderr  # where no modes say so
    doctor = run_as_on_windows(tmp_path, "sessions", "doctor")
    assert "the system keeps no such modes" in doctor.stdout, doctor.stderr


def test_an_agent_is_checked_as_on_windows(tmp_path: Path) -> None:
    done = run_as_on_windows(tmp_path, "check", "demo", "--profile", "spec", "--protocol", "2", "--only", "initialize")
    assert done.returncode == 0 and "nothing failed" in done.stdout, done.stdout + done.stderr


def test_on_windows_processes_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    be_on("win32", monkeypatch)
    assert process_tree.descendants(os.getpid()) == {os.getpid()}
    assert process_tree.alive(frozenset({os.getpid()})) == frozenset()


def test_a_terminal_of_windows_is_not_asked_and_has_no_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAGER", "HOLDFAST_PAGER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    master, terminal = os.openpty()
    with os.fdopen(master, "rb"), os.fdopen(terminal, "w") as stdout, monkeypatch.context() as on_windows:
        be_on("win32", on_windows)
        on_windows.setattr(sys, "stdout", stdout)
        on_windows.setattr(os, "name", "nt")
        assert theme._ask(terminal, terminal) == b""  # pyright: ignore[reportPrivateUsage]
        assert pager_command() is None


def test_an_editor_on_windows_starts_the_program_beside_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python.exe"))
    (tmp_path / "holdfast.exe").touch()
    be_on("win32", monkeypatch)
    assert setup._ourselves() == (str(tmp_path / "holdfast.exe"),)  # pyright: ignore[reportPrivateUsage]


def test_the_scripted_model_is_served_as_on_windows() -> None:
    script = AS_ON_WINDOWS.rpartition("from holdfast_app.cli.main")[0] + (
        "import runpy; sys.argv = ['model']; runpy.run_module('holdfast.testing.model_server', run_name='__main__')"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'core' / 'src'}{os.pathsep}{ROOT / 'app' / 'src'}"}
    with subprocess.Popen((sys.executable, "-c", script), stdout=subprocess.PIPE, env=environment, text=True) as server:
        try:
            assert server.stdout is not None and server.stdout.readline().startswith("http://")
        finally:
            server.send_signal(signal.SIGKILL)
