"""The client's side of a real process, byte by byte: what an editor does, and what it should not do."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from core.tests.support.links import PATIENCE, PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Wire:
    """A program of `core/tests/programs`, started, and the ends of its pipes. Every wait is bounded."""

    def __init__(
        self, program: str, *arguments: str, env: Mapping[str, str] | None = None, stderr: bool = True
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAMS / program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if stderr else subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, "PYTHONUNBUFFERED": "", **(env or {})},
        )
        assert self.process.stdin and self.process.stdout
        self._in, self._out = self.process.stdin, self.process.stdout
        self._unread = b""
        self.heard: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self._in, self._out, self.process.stderr):
            if stream is not None:
                stream.close()

    def send(self, data: bytes) -> None:
        """Write bytes, whatever they are; give up when nobody reads them."""
        os.set_blocking(self._in.fileno(), False)
        deadline = time.monotonic() + PATIENCE
        view = memoryview(data)
        while view:
            _, writable, _ = select.select([], [self._in], [], max(0, deadline - time.monotonic()))
            assert writable, "nobody reads"
            view = view[os.write(self._in.fileno(), view[: 1 << 20]) :]

    def stuff(self, data: bytes) -> int:
        """Write the same bytes again and again until nobody reads them for a while; say how many went."""
        os.set_blocking(self._in.fileno(), False)
        written, idle = 0, Idleness(self.process.pid)
        while idle.seconds < 0.25:
            if select.select([], [self._in], [], 0.01)[1]:
                view = memoryview(data)[written % len(data) :]
                written += os.write(self._in.fileno(), view)
                idle = Idleness(self.process.pid)
            else:
                idle.look()
        return written

    def say(self, *messages: object) -> None:
        """Write messages."""
        self.send(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def ask(self, id_: object, method: str, params: object = None) -> None:
        self.say({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})

    def tell(self, method: str, params: object = None) -> None:
        self.say({"jsonrpc": "2.0", "method": method, "params": params})

    def line(self) -> bytes:
        """Read a line; empty at the end."""
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self._unread:
            readable, _, _ = select.select([self._out], [], [], max(0, deadline - time.monotonic()))
            assert readable, "it says nothing"
            chunk = os.read(self._out.fileno(), 1 << 20)
            if not chunk:
                rest, self._unread = self._unread, b""
                return rest
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        self.heard.append(line)
        return line

    def hear(self) -> Any:
        """Read a message."""
        return json.loads(self.line())

    def hear_error(self) -> tuple[object, int]:
        answer = self.hear()
        assert answer.keys() == {"jsonrpc", "id", "error"}, answer
        return answer["id"], answer["error"]["code"]

    def is_alive(self) -> bool:
        """Ask for something; fails if anything else was unheard."""
        self.ask("alive?", "echo", ["yes"])
        answer: object = self.hear()
        return answer == {"jsonrpc": "2.0", "id": "alive?", "result": ["yes"]}

    def result(self, method: str, params: object = None) -> Any:
        """Ask, and give the result."""
        self.ask("result of", method, params)
        answer = self.hear()
        assert answer["id"] == "result of", answer
        return answer["result"]

    def close_stdin(self) -> None:
        self._in.close()

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def status(self, within: float = PATIENCE) -> int:
        """Wait, reading nothing, until the process has exited; give its status. See `exit_status`."""
        return exit_status(self.process, within)

    def rest(self) -> list[bytes]:
        """Read the lines that are left, to the end."""
        lines: list[bytes] = []
        while line := self.line():
            lines.append(line)
        return lines

    def errors(self) -> str:
        """Read all of stderr, of a process that has exited."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


def rule() -> float:
    """Give the bound of A11, in seconds; more where processes have to share their processor."""
    return 2.0 * max(1.0, 2.0 * os.getloadavg()[0] / (os.cpu_count() or 1))


def exit_status(process: subprocess.Popen[bytes], within: float) -> int:
    """Wait until a process has exited, and give its status; fail if it takes longer to do so, as `Idleness` counts."""
    last = time.monotonic() + max(PATIENCE, 2 * within)
    idle = Idleness(process.pid)
    while (status := process.poll()) is None:
        time.sleep(0.01)
        idle.look()
        assert idle.seconds < within and time.monotonic() < last, f"it does not exit within {within:g} s"
    return status


class Idleness:
    """For how long a process has done nothing though it could have, as far as one has looked.

    How long it was busy or waited for a processor does not count, nor how long this process was held up, which says
    that the machine was.
    """

    def __init__(self, pid: int) -> None:
        self.seconds = 0.0
        self._pid = pid
        self._looked, self._busy = time.monotonic(), _busy(pid)

    def look(self) -> None:
        """Look again; to be done many times a second."""
        now, busy = time.monotonic(), _busy(self._pid)
        self.seconds += max(0.0, min(now - self._looked, 0.1) - (busy - self._busy))
        self._looked, self._busy = now, busy


def _busy(pid: int) -> float:
    """Give for how many seconds a process has used a processor or has waited for one."""
    used, waited, *_ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return (int(used) + int(waited)) / 1e9


def memory(pid: int, what: str = "VmRSS") -> int:
    """Say how many bytes a process has in memory; `VmHWM` for the most it ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(what + ":"))


def until(happened: Callable[[], object]) -> None:
    """Wait, not for ever, until something is so that another process makes so."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)


def wait_for_death(pids: list[int], within: float = PATIENCE) -> None:
    """Wait until processes that need not be ours are gone."""
    deadline = time.monotonic() + within
    for pid in pids:
        try:
            watched = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            gone, _, _ = select.select([watched], [], [], max(0, deadline - time.monotonic()))
            assert gone, f"process {pid} lives on: {Path(f'/proc/{pid}/cmdline').read_bytes()!r}"
        finally:
            os.close(watched)
