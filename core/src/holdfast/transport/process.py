"""A process we start, as a transport: its stdin and stdout carry the lines, its stderr is kept for error messages."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from holdfast.errors import ProcessExited
from holdfast.subprocesses import start
from holdfast.transport.descriptors import PipeTransport, open_input
from holdfast.transport.lines import MAX_LINE_BYTES
from holdfast.view.safe_text import terminal_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from holdfast.errors import ConnectionLost
    from holdfast.subprocesses import Child

OUTPUT_BYTES = 8_192
"""How much of what a process wrote last, to stderr and to stdout, is kept."""

QUOTED_BYTES = 500
"""How much of a single line of stdout is kept."""

STDERR_PAUSE = 0.005
"""After each chunk of stderr it is not read for so long: a process that floods it must not keep the loop busy (P7)."""

EXIT_SECONDS = 5.0
"""A process that reads or writes no more has so long to exit before it counts as one that hung up: a busy machine takes
its time to clean up after a process, and how it ended is what its user needs to know."""

KILLED_SECONDS = 5.0
"""A process that was killed is gone in a moment: whoever is cancelled meanwhile waits for so long at most."""


async def spawn(
    *command: str,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    limit: int = MAX_LINE_BYTES,
    patience: float = 2.0,
    on_stderr: Callable[[bytes], None] | None = None,
) -> ProcessTransport:
    """Start a command and talk to it over its stdin and stdout.

    `env` is the whole environment of the process (ours if omitted). When the transport is closed the process sees
    the end of its input, is asked to terminate if it has not exited within `patience` seconds, and killed if it has
    not after that time again.
    """
    return ProcessTransport(start(command, cwd=cwd, env=env), limit, patience, on_stderr)


class ProcessTransport(PipeTransport):
    """See `spawn`."""

    def __init__(self, child: Child, limit: int, patience: float, on_stderr: Callable[[bytes], None] | None) -> None:
        super().__init__(child.stdout, child.stdin, limit=limit)
        self._child = child
        self._patience = patience
        self._on_stderr = on_stderr
        self._stderr = _Tail()
        self._stdout = _Tail()
        self._farewell: asyncio.Task[None] | None = None
        self._errors = open_input(child.stderr, self._stderr_read)
        self._errors.resume()

    @property
    def pid(self) -> int:
        """The process that holds the whole tree: on POSIX the guard, whose child the command is."""
        return self._child.pid

    @property
    def stderr(self) -> str:
        """The last that the process wrote to stderr."""
        return self._stderr.text()

    @property
    def stdout(self) -> str:
        """The last that the process wrote to stdout and was no message, as whoever reads them says by `keep_output`."""
        return self._stdout.text()

    @property
    def is_ending(self) -> bool:
        """Whether its output has ended: it is dying, and the receiver will hear how in a moment."""
        return self._farewell is not None

    @property
    def name(self) -> str:
        """The name of the program."""
        return self._child.name

    def keep_output(self, line: bytes) -> None:
        """Keep a line of stdout that was no message, to be quoted if the process exits."""
        self._stdout.add(line[:QUOTED_BYTES] + b"\n")

    async def wait(self) -> int:
        """Wait until the process has exited; return its status, where 128 + n means signal n, as in a shell."""
        await self._child.wait()
        assert self._child.returncode is not None
        return self._child.returncode

    def end_input(self, reason: ConnectionLost | None = None) -> None:
        """Tell the receiver that the process ended, and how: the status is there a moment after its output ends."""
        if self._farewell is None and not self._ended:
            self._farewell = self._loop.create_task(self._tell_how_it_ended(reason), name=f"end of {self._child.name}")

    async def close(self, flush_for: float) -> None:
        """Flush, close the process's stdin, and end the process."""
        if self._closed:
            return
        if self._farewell is not None:
            self._farewell.cancel()
        try:
            await super().close(flush_for)
            if not await self._child.wait(self._patience):
                self._child.terminate()
                await self._child.wait(self._patience)
        finally:
            self._child.kill()
            try:
                await self._read_last_stderr()
            finally:
                self._errors.close()
                self._input.close()
                await self._wait_until_gone()

    async def _wait_until_gone(self) -> None:
        """Wait until the process, which was killed, is gone; whoever cancels that is heard once it is."""
        waiting = asyncio.ensure_future(self._child.wait())
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            await asyncio.wait({waiting}, timeout=KILLED_SECONDS)
            waiting.cancel()
            raise

    def _stop_reading(self) -> None:
        """Read on and drop what comes: a process that writes to a closed pipe may die of that, its work unsaved."""
        self._input.resume()

    async def _tell_how_it_ended(self, reason: ConnectionLost | None) -> None:
        if await self._child.wait(EXIT_SECONDS) or reason is None:
            await self._read_last_stderr()
            reason = ProcessExited(self._child.name, self._child.returncode, self.stderr, self.stdout)
        super().end_input(reason)

    def _stderr_read(self, chunk: bytes) -> None:
        if self._on_stderr is not None and chunk:
            self._on_stderr(chunk)
        self._stderr.add(chunk)
        if chunk:
            self._errors.pause()
            self._loop.call_later(STDERR_PAUSE, self._errors.resume)

    async def _read_last_stderr(self) -> None:
        """Read what a process that has exited left in the pipe: no more than a chunk."""
        self._errors.resume()
        for _ in range(2):  # the loop looks at the pipe in the first tick and reads it in the second
            await asyncio.sleep(0)


class _Tail:
    """The end of what was written, in pieces."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece[-OUTPUT_BYTES:])
        self._size += len(self._pieces[-1])
        while self._size - len(self._pieces[0]) >= OUTPUT_BYTES:
            self._size -= len(self._pieces.popleft())

    def text(self) -> str:
        """Return it as a terminal shows it: errors quote it, and nothing in it may steer who reads them."""
        return terminal_text(b"".join(self._pieces)).strip()
