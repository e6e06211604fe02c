"""A process we start, as a transport: its stdin and stdout carry the lines, its stderr is kept for error messages.

Between us and the process stands a guard (`guard.py`) that kills everything the process started once the process is
gone, or once we are, however we went (P8). Where the system has no subreapers (macOS) a grandchild that made itself
a session leader escapes; on Windows there is no guard, and only the process itself is killed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import ProcessExited, UsageError
from holdfast.transport.lines import MAX_LINE_BYTES
from holdfast.transport.pipes import PipeTransport, open_input

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.errors import ConnectionLost

STDERR_BYTES = 8_192
"""How much of what a process wrote to stderr last is kept."""

_GUARD = str(Path(__file__).with_name("guard.py"))


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
    path = (os.environ if env is None else env).get("PATH")
    program = shutil.which(command[0], path=path) if command else None
    if program is None:
        raise UsageError(f"cannot start {command[0] if command else 'nothing'!r}: no such program on PATH")
    if cwd is not None and not os.path.isdir(cwd):  # noqa: PTH112, ASYNC240  (one look, at a moment that blocks anyway)
        raise UsageError(f"cannot start {command[0]!r} in {str(cwd)!r}: no such directory")
    return ProcessTransport((program, *command[1:]), cwd, env, limit, patience, on_stderr)


class ProcessTransport(PipeTransport):
    """See `spawn`."""

    def __init__(
        self,
        command: tuple[str, ...],
        cwd: str | Path | None,
        env: Mapping[str, str] | None,
        limit: int,
        patience: float,
        on_stderr: Callable[[bytes], None] | None,
    ) -> None:
        self._name = Path(command[0]).name
        self._patience = patience
        self._on_stderr = on_stderr
        self._stderr: deque[bytes] = deque()
        self._stderr_size = 0
        self._farewell: asyncio.Task[None] | None = None
        self._leash = -1
        pass_fds: tuple[int, ...] = ()
        if sys.platform != "win32":
            held, self._leash = os.pipe()
            pass_fds = (held,)
            command = (sys.executable, "-I", "-S", _GUARD, str(held), *command)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=cwd,
                env=env,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except (OSError, ValueError) as e:
            if self._leash >= 0:
                os.close(self._leash)
            raise UsageError(f"cannot start {self._name!r}: {e}") from e
        finally:
            for fd in pass_fds:
                os.close(fd)
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin and stdout and stderr
        fds = [os.dup(stream.fileno()) for stream in (stdout, stdin, stderr)]
        for stream in (stdout, stdin, stderr):
            stream.close()
        super().__init__(fds[0], fds[1], limit=limit)
        self._errors = open_input(fds[2], self._stderr_read)
        self._errors.resume()
        self._exit = self._loop.create_task(self._wait_for_exit(), name=f"exit of {self._name}")

    @property
    def pid(self) -> int:
        """The process that holds the whole tree: on POSIX the guard, whose child the command is."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """The last that the process wrote to stderr."""
        return b"".join(self._stderr).decode(errors="replace").strip()

    async def wait(self) -> int:
        """Wait until the process has exited and give its status; 128 + n means signal n, as in a shell."""
        return await asyncio.shield(self._exit)

    def end_input(self, reason: ConnectionLost | None = None) -> None:
        """Tell the receiver that the process ended, and how: the status is there a moment after its output ends."""
        if self._farewell is None and not self._ended:
            self._farewell = self._loop.create_task(self._say_how_it_ended(reason), name=f"end of {self._name}")

    async def close(self, flush_for: float) -> None:
        """Flush, close the process's stdin, and see to it that it ends."""
        if self._closed:
            return
        if self._farewell is not None:
            self._farewell.cancel()
        try:
            await super().close(flush_for)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wait(), self._patience)
            if not self._exit.done():
                self._ask_to_terminate()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.wait(), self._patience)
        finally:
            self._kill()
            self._errors.close()
            self._input.close()
        await self.wait()

    def _stop_reading(self) -> None:
        """Read on to nowhere: a process that says its last words to a closed pipe may die of it, its work unsaved."""
        self._input.resume()

    def _ask_to_terminate(self) -> None:
        if self._leash >= 0:
            with suppress(OSError):
                os.write(self._leash, b"T")
        else:
            self._process.terminate()

    def _kill(self) -> None:
        if self._leash >= 0:
            os.close(self._leash)  # the guard sees it and kills the whole tree
            self._leash = -1
        elif sys.platform == "win32":
            self._process.kill()

    async def _say_how_it_ended(self, reason: ConnectionLost | None) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.wait(), 1.0)
        if reason is None or self._exit.done():
            reason = ProcessExited(self._name, self._process.returncode, self.stderr)
        super().end_input(reason)

    async def _wait_for_exit(self) -> int:
        """Wait without a thread where the kernel can tell us, with one elsewhere."""
        try:
            pidfd = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            return await self._loop.run_in_executor(None, self._process.wait)
        exited = asyncio.Event()
        self._loop.add_reader(pidfd, exited.set)
        try:
            await exited.wait()
        finally:
            self._loop.remove_reader(pidfd)
            os.close(pidfd)
        return self._process.wait()

    def _stderr_read(self, chunk: bytes) -> None:
        if self._on_stderr is not None and chunk:
            self._on_stderr(chunk)
        self._stderr.append(chunk[-STDERR_BYTES:])
        self._stderr_size += len(self._stderr[-1])
        while self._stderr_size - len(self._stderr[0]) >= STDERR_BYTES:
            self._stderr_size -= len(self._stderr.popleft())
