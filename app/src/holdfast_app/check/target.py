"""What is checked: an agent that can be started again and again, spoken to, and killed.

Agents are started here without the guard that holds the children of our own programs together: whether an agent ends
its children itself is one of the questions.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import UsageError
from holdfast.testing.process_tree import alive, descendants, marked
from holdfast.view.safe_text import terminal_text

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping

MARK = "HOLDFAST_CHECK"
MAX_LINE_BYTES = 64 << 20
"""Of a longer line so much is handed on; the rest is read and dropped."""
CHUNK_BYTES = 1 << 16
STDERR_BYTES = 8_192
SWEEPS = 100
"""So often is looked for what was left behind, before we give up."""
EXIT_SECONDS = 10.0
"""The system has so long to end a process that was killed."""


class Link(Protocol):
    """One started agent, and the way to it."""

    @property
    def stderr(self) -> str:
        """The last that it wrote to stderr."""
        ...

    @property
    def children(self) -> frozenset[int]:
        """The processes it has started, as far as the system tells; empty where it is no process of this machine."""
        ...

    @property
    def is_process(self) -> bool:
        """Whether it is a process of ours, which can be killed."""
        ...

    def open(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Begin to read: every line, and then the end."""
        ...

    def send(self, data: bytes) -> None:
        """Send bytes, whatever they are."""
        ...

    async def kill(self, *, alone: bool = False) -> None:
        """Kill it as a crash does, with all that it has started, or `alone`; return when it is dead."""
        ...

    async def close(self, patience: float) -> int | None:
        """End its input and wait for its exit; return its status, None if it still runs after `patience`."""
        ...

    async def dispose(self) -> None:
        """Let nothing of it be left, at once."""
        ...


class Target(Protocol):
    """An agent that can be started."""

    @property
    def name(self) -> str:
        """What to call it in a report."""
        ...

    async def start(self, cwd: str) -> Link:
        """Start it in a directory; raise `UsageError` if it cannot be started."""
        ...

    def sweep(self) -> None:
        """End what is left of all that was started, once everything was checked."""
        ...


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """An agent on stdio, by its command; `env` is added to our environment."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    mark: str = field(default_factory=lambda: token_hex(16), compare=False)
    """What all its processes have in their environment, as `MARK`: so those are found that have run away."""

    @property
    def name(self) -> str:
        """The command, as one would type it."""
        return " ".join(self.command)

    async def start(self, cwd: str) -> Link:
        """Start the command."""
        found = _found(self.command[0], self.env.get("PATH"))
        if found is None:
            raise UsageError(f"there is no command {self.command[0]!r}: give its path, or put its directory on PATH")
        try:
            process = await self._process(found, cwd)
        except OSError as e:
            raise UsageError(f"{self.command[0]} cannot be started: {e.strerror}") from None
        return ProcessLink(process)

    async def _process(self, program: str, cwd: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                program, *map(_absolute, self.command[1:]),
                stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, start_new_session=True,
                env={**os.environ, **self.env, MARK: self.mark},
            )
        )  # fmt: skip
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # Cancelled here, asyncio waits until nobody has the pipes, and what the process started may have them.
            await ProcessLink(await starting).dispose()
            raise

    def sweep(self) -> None:
        """Kill daemons: agents share some between their processes, so they may live until the last check is over."""
        for _ in range(SWEEPS):  # one may start another while we look for it
            left = alive(marked(f"{MARK}={self.mark}".encode()))
            if not left:
                return
            _kill(left)
            time.sleep(0.01)


def _found(program: str, path: str | None) -> str | None:
    """Return where a program is; it is started in another directory than ours."""
    found = shutil.which(program, path=path)
    return None if found is None else os.path.abspath(found)  # noqa: PTH100  (a link stays one: some look at their name)


def _absolute(argument: str) -> str:
    """Return an argument that names a file here (``weather.py``, ``bin/agent``) as one that names it anywhere."""
    looks_like_one = ("/" in argument or "." in argument) and not argument.startswith("-")
    return os.path.abspath(argument) if looks_like_one and os.path.isfile(argument) else argument  # noqa: PTH100, PTH113


def _kill(pids: frozenset[int]) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)


class ProcessLink:
    """A process, its pipes, and what is left of it."""

    is_process = True

    def __init__(self, process: Process) -> None:
        self._process = process
        self._stderr = b""
        self._seen: frozenset[int] = frozenset()
        self._tasks: list[asyncio.Task[None]] = []
        self._killed = False

    @property
    def stderr(self) -> str:
        """The last that it wrote to stderr."""
        return terminal_text(self._stderr).strip()

    @property
    def children(self) -> frozenset[int]:
        """The processes below it that run, those from before the last call included."""
        if self._process.returncode is None:
            self._seen |= descendants(self._process.pid) - {self._process.pid}
        return alive(self._seen)

    def open(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Begin to read stdout and stderr."""
        create_task = asyncio.get_running_loop().create_task
        self._tasks = [
            create_task(self._read_lines(on_line, on_end), name="stdout of an agent"),
            create_task(self._read_stderr(), name="stderr of an agent"),
        ]

    def send(self, data: bytes) -> None:
        """Write to stdin; goes nowhere once it is closed."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(data)

    async def kill(self, *, alone: bool = False) -> None:
        """Kill the process, and what it has started: many agents are a launcher and a program."""
        if not alone:
            self._freeze()
        children, self._killed = self.children, True
        with suppress(ProcessLookupError):
            self._process.kill()
        if not alone:
            _kill(children)
        await self._exit(EXIT_SECONDS)

    def _freeze(self) -> None:
        """Stop the process group at this instant: to look for its children takes some milliseconds."""
        if sys.platform != "win32" and self._process.returncode is None:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGSTOP)

    async def close(self, patience: float) -> int | None:
        """Close stdin and wait for the exit."""
        _ = self.children
        if self._process.stdin is not None:
            self._process.stdin.close()
        return await self._exit(patience)

    async def _exit(self, patience: float) -> int | None:
        """Wait for the exit; return the status, None if there is none after `patience`.

        `Process.wait` would wait for the pipes too, which a child that was left behind holds open for ever.
        """
        loop = asyncio.get_running_loop()
        last = loop.time() + patience
        while self._process.returncode is None and loop.time() < last:  # noqa: ASYNC110  (nobody else tells)
            await asyncio.sleep(0.02)
        return self._process.returncode

    async def dispose(self) -> None:
        """Kill what is left of it and of what it started."""
        left = self.children
        self._killed = self._killed or self._process.returncode is None
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        _kill(left)
        if sys.platform != "win32":
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)  # what it started since we last looked
        await self._exit(EXIT_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process.stdin is not None:
            self._process.stdin.close()
        getattr(self._process, "_transport").close()  # noqa: B009  (or its pipes stay open until they are collected)

    async def _read_lines(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        unread = bytearray()
        while chunk := await stdout.read(CHUNK_BYTES):
            end, newline, more = chunk.partition(b"\n")
            if len(unread) < MAX_LINE_BYTES:
                unread += end
                if newline or len(unread) >= MAX_LINE_BYTES:
                    on_line(bytes(unread.removesuffix(b"\r")))
            if newline:
                *lines, rest = more.split(b"\n")
                unread = bytearray(rest)
                for line in lines:
                    on_line(line.removesuffix(b"\r"))
        if 0 < len(unread) < MAX_LINE_BYTES and not self._killed:  # we have cut the last line of what we killed
            on_line(bytes(unread))
        on_end()

    async def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while chunk := await stderr.read(CHUNK_BYTES):
            self._stderr = (self._stderr + chunk)[-STDERR_BYTES:]
            await asyncio.sleep(0.005)  # one that floods it must not keep the loop busy
