"""The end of a real process: exit 0 within two seconds, whatever the client and the handlers do (A11)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.support.links import PATIENCE, PROGRAMS
from core.tests.support.wire import Wire, rule

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.requirement("A11")


CLOSE = pytest.mark.parametrize("end", [Wire.close_stdin, Wire.terminate], ids=["end of input", "SIGTERM"])


def request(id_: object, method: str, params: object = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode() + b"\n"


@CLOSE
def test_an_idle_process_exits(end: Callable[[Wire], None]) -> None:
    with Wire("agent.py") as wire:
        assert wire.is_alive()
        end(wire)
        assert wire.status(rule()) == 0
        assert wire.rest() == []


def test_an_interrupt_ends_it_like_a_termination() -> None:
    with Wire("agent.py") as wire:
        assert wire.is_alive()
        wire.process.send_signal(signal.SIGINT)
        assert wire.status(rule()) == 0
        assert "Traceback" not in wire.errors()


def test_a_client_that_closes_and_terminates_and_terminates_again_is_obeyed_once() -> None:
    """Acpx sends SIGTERM 0.2 s after closing."""
    with Wire("agent.py") as wire:
        wire.ask(1, "wait")
        assert wire.is_alive()
        wire.close_stdin()
        wire.terminate()
        wire.terminate()
        assert wire.hear_error() == (1, -32800)
        assert wire.status(rule()) == 0


@CLOSE
@pytest.mark.parametrize("method", ["wait", "stubborn"])
def test_a_request_at_work_is_answered_before_it_exits(end: Callable[[Wire], None], method: str) -> None:
    with Wire("agent.py") as wire:
        wire.ask(1, method)
        assert wire.is_alive()
        end(wire)
        assert wire.status(rule()) == 0
        assert [json.loads(line)["error"]["code"] for line in wire.rest()] == [-32800]


@CLOSE
def test_what_was_never_looked_at_is_answered_before_it_exits(end: Callable[[Wire], None]) -> None:
    with Wire("agent.py") as wire:
        assert wire.is_alive()
        wire.tell("stuck")
        wire.ask(1, "echo")
        wire.say([{"jsonrpc": "2.0", "id": 2, "method": "echo"}])
        wire.send(b"nonsense\n")
        if end is Wire.terminate:
            wire.tell("$/cancel_request", {"requestId": 1})  # read before the signal comes, as the next line shows
            _wait_until_read(wire)
        end(wire)
        assert wire.status(rule()) == 0
        answers = [json.loads(line) for line in wire.rest()]
        codes = [(answer["id"], answer["error"]["code"]) for answer in answers if "id" in answer]
        (batch,) = [answer for answer in answers if "id" not in answer]
        assert sorted(codes, key=repr) == [(1, -32800), (None, -32700)]
        assert [(answer["id"], answer["error"]["code"]) for answer in batch] == [(2, -32800)]


def _wait_until_read(wire: Wire) -> None:
    """Wait until the pipe is empty: what was in it has been read, and what is read is looked at or answered."""
    import array
    import fcntl
    import termios

    assert wire.process.stdin is not None
    unread = array.array("i", [1])
    deadline = time.monotonic() + PATIENCE
    while unread[0]:
        assert time.monotonic() < deadline
        fcntl.ioctl(wire.process.stdin.fileno(), termios.FIONREAD, unread)


@CLOSE
def test_a_line_without_an_end_does_not_hold_it(end: Callable[[Wire], None]) -> None:
    with Wire("agent.py") as wire:
        assert wire.is_alive()
        wire.send(b'{"jsonrpc":"2.0","id":1,"method"')
        end(wire)
        assert wire.status(rule()) == 0


@CLOSE
def test_a_client_that_no_longer_reads_does_not_hold_it(end: Callable[[Wire], None]) -> None:
    """Its pipe is full, ours too, and what it sent last is unread: reading was paused long ago."""
    with Wire("agent.py") as wire:
        assert wire.is_alive()
        assert wire.stuff(request(1, "echo", ["x" * 2_000])) > 1 << 16
        end(wire)
        assert wire.status(rule()) == 0


@CLOSE
def test_a_client_that_no_longer_reads_does_not_hold_it_while_a_handler_will_not_stop(
    end: Callable[[Wire], None],
) -> None:
    with Wire("agent.py") as wire:
        wire.ask(0, "stubborn")
        assert wire.is_alive()
        wire.stuff(request(1, "big", [200_000]))
        end(wire)
        assert wire.status(rule()) == 0


@CLOSE
def test_a_flood_of_notifications_behind_one_that_is_stuck_does_not_hold_it(end: Callable[[Wire], None]) -> None:
    with Wire("agent.py") as wire:
        assert wire.is_alive()
        wire.tell("stuck")
        note = json.dumps({"jsonrpc": "2.0", "method": "note", "params": ["x" * 1_000]}).encode() + b"\n"
        assert wire.stuff(note) > 1 << 20
        end(wire)
        assert wire.status(rule()) == 0


def test_a_client_that_dies_takes_it_along() -> None:
    """Both pipes close at once, in the middle of everything."""
    with Wire("agent.py") as wire:
        wire.ask(1, "wait")
        assert wire.is_alive()
        wire.stuff(request(1, "big", [200_000]))
        assert wire.process.stdin and wire.process.stdout
        wire.process.stdin.close()
        wire.process.stdout.close()
        assert wire.status(rule()) == 0


def test_a_client_that_closes_its_reading_end_only_is_noticed() -> None:
    with Wire("agent.py") as wire:
        assert wire.is_alive()
        assert wire.process.stdout
        wire.process.stdout.close()
        wire.ask(1, "echo")
        assert wire.status(rule()) == 0


def test_a_signal_that_comes_before_it_serves_is_obeyed_when_it_does() -> None:
    """Between opening stdio and serving, an agent may load its model; the client loses patience."""
    with Wire("agent.py", env={"TERMINATED_EARLY": "yes"}) as wire:
        assert wire.status() == 0


def test_a_signal_that_comes_after_it_served_does_not_cut_its_last_work_short() -> None:
    """Acpx closes stdin and sends SIGTERM 0.2 s later: in the middle of the last commit, perhaps."""
    with Wire("agent.py", env={"SLOW_SHUTDOWN": ""}) as wire:
        assert wire.is_alive()
        wire.close_stdin()
        assert wire.rest() == []  # its stdout is closed: it serves no more, and has not exited
        wire.terminate()
        wire.process.send_signal(signal.SIGINT)
        assert wire.status(rule()) == 0
        assert "everything is stored" in wire.errors()


def test_an_output_that_takes_nothing_is_an_end_too() -> None:
    """A full disk, where stdout is a file."""
    with Path("/dev/full").open("wb") as full:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAMS / "agent.py")],
            stdin=subprocess.PIPE,
            stdout=full,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
        assert process.stdin is not None
        with process.stdin as stdin:
            stdin.write(request(1, "echo"))
            stdin.flush()
            assert process.wait(PATIENCE) == 0


def test_what_the_client_said_last_is_done_before_the_end() -> None:
    """`printf … | agent` has all its answers, where the machine has time for a thousand before the patience ends."""
    with Wire("agent.py", env={"PATIENT": ""}) as wire:
        wire.send(b"".join(request(n, "echo", [n]) for n in range(1_000)))
        wire.close_stdin()
        assert [json.loads(line)["result"] for line in wire.rest()] == [[n] for n in range(1_000)]
        assert wire.status(rule()) == 0
