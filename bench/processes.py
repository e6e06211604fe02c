"""A contender's process, seen from the other end of its pipes.

The other end is this program: it writes lines that were encoded before and reads bytes without understanding them, the
same way for every contender, so that nothing but the contender differs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from bench.model import Who

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "bench" / "contenders"
TYPESCRIPT_SDK = ROOT / "node_modules" / "@agentclientprotocol" / "sdk" / "package.json"
PATIENCE = 1_200.0
"""Seconds after which a contender is taken to hang, and killed."""

READ_BYTES = 64 << 10

_CORES = os.sched_getaffinity(0) if sys.platform == "linux" else set[int]()


class Contender(NamedTuple):
    """Who is measured, and how its scripts are started."""

    who: Who
    program: str
    suffix: str

    def start(self, part: str, *arguments: str, pass_fds: Sequence[int] = ()) -> ContenderProcess:
        """Start one of its scripts."""
        script = SCRIPTS / f"{self.who}_{part}{self.suffix}"
        return ContenderProcess((self.program, str(script), *arguments), pass_fds)


def find(who: Who) -> Contender | str:
    """Give a contender, or say why it cannot take part."""
    if who == "typescript_sdk":
        if (node := shutil.which("node")) is None:
            return "Node is not installed"
        if not TYPESCRIPT_SDK.exists():
            return "@agentclientprotocol/sdk is not installed: npm install --no-package-lock"
        return Contender(who, node, ".mjs")
    if who == "python_sdk" and find_spec("acp") is None:
        return "agent-client-protocol is not installed: the dependency group is called peers"
    return Contender(who, sys.executable, ".py")


class Lap(msgspec.Struct):
    """Seconds between two moments."""

    cpu: float
    wall: float
    server: float = 0.0
    """The processor time of a database server, where one was named to the contender."""


class Report(msgspec.Struct):
    """What a contender measured."""

    laps: dict[str, Lap]
    more: dict[str, float]


class ContenderProcess:
    """Its process, with a pipe to its stdin and one from its stdout."""

    def __init__(
        self,
        command: Sequence[str],
        pass_fds: Sequence[int] = (),
        *,
        source: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`source` is where it finds `holdfast`, unless it is to find the one that is installed; `env` is added."""
        environment = {"PYTHONDONTWRITEBYTECODE": "", **(env or {})}  # or our own modules are compiled at every start
        if source is not None:
            environment["PYTHONPATH"] = str(source)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed by __exit__)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
            pass_fds=pass_fds,
            env=os.environ | environment,
        )
        assert self._process.stdin and self._process.stdout
        self.stdin = self._process.stdin.fileno()
        self.stdout = self._process.stdout.fileno()
        self.pid = self._process.pid
        self._watchdog = threading.Timer(PATIENCE, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watchdog.cancel()
        if sys.platform == "linux":
            os.sched_setaffinity(0, _CORES)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._stderr.close()

    def share_cores(self, count: int) -> None:
        """Keep its threads on one core, and ours on the same one or the next: where each runs decides how long it
        takes to wake, and the system would decide by luck. Does nothing where the system cannot be told.
        """
        if sys.platform == "linux":
            cores = sorted(_CORES)[:count]
            for thread in Path(f"/proc/{self.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), cores[-1:])
            os.sched_setaffinity(0, cores[:1])

    def write(self, data: bytes) -> None:
        """Write all of it, however long the other end takes."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.stdin, view) :]

    def read(self) -> bytes:
        """Read what is there; at least something."""
        if not (chunk := os.read(self.stdout, READ_BYTES)):
            raise EOFError(f"{self._process.args!r} ended before its time:\n{self.said()}")
        return chunk

    def read_line(self) -> bytes:
        """Read a line that nothing follows yet."""
        line = b""
        while not line.endswith(b"\n"):
            line += self.read()
        return line

    def read_until(self, mark: bytes) -> None:
        """Drain the pipe until something was read."""
        tail = b""
        while mark not in tail:
            tail = tail[-len(mark) :] + self.read()

    def finish(self) -> Report:
        """Close its stdin, wait until it exits and give what it reported."""
        self.end()
        return msgspec.json.decode(self.said().splitlines()[-1], type=Report)

    def end(self) -> float:
        """Close its stdin, wait until it exits and give the processor time its whole life took."""
        assert self._process.stdin
        self._process.stdin.close()
        _, status, usage = os.wait4(self.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        if self._process.returncode != 0:
            raise RuntimeError(f"{self._process.args!r} failed:\n{self.said()}")
        return usage.ru_utime + usage.ru_stime

    def said(self) -> str:
        """Give what it wrote to stderr."""
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")


_ID = re.compile(rb'"id":\s*(\d+|"[^"]*")')


def id_of(line: bytes) -> bytes:
    """Find a request's id, to be put into its answer as it stands."""
    found = _ID.search(line)
    assert found is not None
    return found[1]
