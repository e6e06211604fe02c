"""Nothing but the protocol ever reaches stdout (A1)."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys

import pytest

from core.tests.support.links import PATIENCE, PROGRAMS
from core.tests.support.wire import Wire

pytestmark = pytest.mark.requirement("A1")

NOISE = "noise that is no protocol"
WAYS = 12
"""In how many ways the agent makes noise; once before stdio was opened, and once by its log."""


@pytest.mark.parametrize("way", ["request", "notification"])
@pytest.mark.parametrize("leaving", ["at once", "ordinary"])
def test_whatever_agent_code_writes_to_stdout_goes_to_stderr(way: str, leaving: str) -> None:
    """By print, by descriptor, by C code that buffers until the process exits, by child processes."""
    with Wire("agent.py", env={"ORDINARY_EXIT": ""} if leaving == "ordinary" else {}) as wire:
        if way == "request":
            assert wire.result("noise") is None
        else:
            wire.tell("noise")
        assert wire.is_alive()
        wire.close_stdin()
        assert wire.rest() == []
        assert wire.status() == 0
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in wire.heard)
        lost = leaving == "at once"  # what C code has in its buffer goes with a process that leaves so
        assert wire.errors().count(NOISE) == WAYS - lost


def test_a_handler_left_behind_that_prints_does_not_reach_stdout_even_at_the_very_end() -> None:
    with Wire("agent.py") as wire:
        wire.ask(1, "stubborn")
        assert wire.is_alive()
        wire.close_stdin()
        assert [json.loads(line)["id"] for line in wire.rest()] == [1]
        assert wire.status() == 0
        assert "I stay" in wire.errors()


def test_agent_code_cannot_read_what_the_client_says() -> None:
    program = (
        "import asyncio, sys; from agent import *; a = Agent()\n"
        "async def steal(params): return sys.stdin.read() + str(__import__('os').read(0, 100))\n"
        "a.routes.request('steal', steal); run_to_the_end(a.serve())"
    )
    with Wire("run.py", program) as wire:
        assert wire.result("steal") == "b''"
        assert wire.is_alive()


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (1, 2), (0, 1, 2)], ids=str)
def test_a_process_started_without_its_standard_descriptors_does_not_mix_them_up(closed: tuple[int, ...]) -> None:
    """The next file that is opened would get the free number, and be read or written as if it were stdio."""
    redirections = "".join(f" {fd}>&-" for fd in closed)
    process = subprocess.Popen(
        ["/bin/sh", "-c", f'exec "$0" "$1"{redirections}', sys.executable, str(PROGRAMS / "agent.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )
    requests = b'{"jsonrpc":"2.0","id":1,"method":"noise"}\n{"jsonrpc":"2.0","id":2,"method":"echo"}\n'
    output, errors = process.communicate(requests, timeout=PATIENCE)
    assert process.returncode == 0, errors
    answers = [json.loads(line)["id"] for line in output.splitlines()]
    assert sorted(answers) == ([] if {0, 1} & set(closed) else [1, 2])


def test_sockets_in_place_of_pipes_work_and_are_given_back_blocking() -> None:
    """Node connects its children by sockets; who shares one with us is not to find it changed."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAMS / "agent.py")],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
        ours.settimeout(PATIENCE)
        ours.sendall(b'{"jsonrpc":"2.0","id":1,"method":"big","params":[3000000]}\n')
        received = b""
        while not received.endswith(b"\n"):
            received += ours.recv(1 << 20)
        assert len(json.loads(received)["result"]) == 3_000_000
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(PATIENCE) == 0
        assert os.get_blocking(theirs.fileno())


@pytest.mark.parametrize("kind", ["file", "/dev/null"])
def test_input_that_cannot_be_waited_for_is_read_all_the_same(kind: str, tmp_path: object) -> None:
    path = f"{tmp_path}/requests"
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"echo"}\n' % n for n in range(1_000)))
    with open(path if kind == "file" else kind, "rb") as source, open(f"{tmp_path}/answers", "wb") as target:  # noqa: PTH123
        process = subprocess.Popen([sys.executable, str(PROGRAMS / "agent.py")], stdin=source, stdout=target)
        assert process.wait(PATIENCE) == 0
    with open(f"{tmp_path}/answers", "rb") as file:  # noqa: PTH123
        answers = [json.loads(line)["id"] for line in file if b"jsonrpc" in line]
    assert answers == (list(range(1_000)) if kind == "file" else [])


def test_a_terminal_works_and_is_given_back() -> None:
    import pty
    import termios

    ours, theirs = pty.openpty()
    try:
        attributes = termios.tcgetattr(theirs)
        attributes[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        process = subprocess.Popen(
            [sys.executable, str(PROGRAMS / "agent.py")], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
        )
        os.write(ours, b'{"jsonrpc":"2.0","id":1,"method":"echo"}\n')
        received = b""
        while not received.endswith(b"\n"):
            assert select.select([ours], [], [], PATIENCE)[0]
            received += os.read(ours, 1 << 16)
        assert json.loads(received.splitlines()[-1])["id"] == 1
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert os.get_blocking(theirs)
    finally:
        os.close(ours)
        os.close(theirs)
