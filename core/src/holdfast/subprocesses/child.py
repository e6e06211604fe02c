"""Starts processes, each under a guard that kills it and all its descendants when we die."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from holdfast.errors import UsageError
from holdfast.subprocesses import windows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GUARD = str(Path(__file__).with_name("guard.py"))


def start(
    command: Sequence[str],
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bool = True,
    stderr: bool = True,
) -> Child:
    """Start a command with pipes to its standard streams.

    Args:
        command: The program, absolute or to be found on PATH, and its arguments.
        cwd: The directory in which it is started; ours if omitted.
        env: Its whole environment; ours if omitted.
        stdin: Whether it has a pipe to read from; otherwise it reads nothing.
        stderr: Whether its stderr is a pipe of its own; otherwise it is written to its stdout.

    Raises:
        UsageError: There is no such program or directory, or the system takes no such arguments.

    """
    path = (os.environ if env is None else env).get("PATH")
    program = shutil.which(command[0], path=path) if command else None
    if program is None:
        raise UsageError(
            f"cannot start {command[0] if command else 'nothing'!r}: no such program on PATH{word_by_word(command)}"
        )
    if cwd is not None and not Path(cwd).is_dir():
        raise UsageError(f"cannot start {command[0]!r} in {str(cwd)!r}: no such directory")
    return Child((program, *command[1:]), cwd, env, stdin=stdin, stderr=stderr)


def word_by_word(command: Sequence[str]) -> str:
    """Return what to say besides where somebody gave a whole line as the program; nothing where nobody did."""
    if not command or len(words := command[0].split()) < 2:
        return ""
    return f"; give the program and its arguments word by word: {', '.join(map(repr, words[:3]))}" + (
        ", …" if len(words) > 3 else ""
    )


class Child:
    """A process that was started, and on POSIX its guard. Whoever starts it owns the descriptors of its pipes."""

    def __init__(
        self,
        command: tuple[str, ...],
        cwd: str | Path | None,
        env: Mapping[str, str] | None,
        *,
        stdin: bool,
        stderr: bool,
    ) -> None:
        self.name: str = _told_name(command)
        self._leash = -1
        pass_fds: tuple[int, ...] = ()
        arguments: Sequence[str] | str
        if sys.platform == "win32":
            arguments = windows.command_line(command)
        else:
            held, self._leash = os.pipe()
            pass_fds = (held,)
            arguments = (sys.executable, "-I", "-S", _GUARD, str(held), *command)
        try:
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if stderr else subprocess.STDOUT,
                bufsize=0,
                cwd=cwd,
                env=env,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except (OSError, ValueError) as e:
            if self._leash >= 0:
                os.close(self._leash)
            raise UsageError(f"cannot start {Path(command[0]).name!r}: {e}") from e
        finally:
            for fd in pass_fds:
                os.close(fd)
        self.stdin: int = _take_descriptor(self._process.stdin)
        self.stdout: int = _take_descriptor(self._process.stdout)
        self.stderr: int = _take_descriptor(self._process.stderr)
        self._exit = asyncio.get_running_loop().create_task(self._wait_for_exit(), name=f"exit of {self.name}")

    @property
    def pid(self) -> int:
        """The root of its process tree: on POSIX that is the guard, whose descendant the command is."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit status; 128 + n means signal n, as in a shell. None while it runs."""
        return self._process.returncode

    async def wait(self, within: float | None = None) -> bool:
        """Wait until it has exited, or for `within` seconds; return whether it has."""
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._exit), within)
        return self._exit.done()

    def terminate(self) -> None:
        """Ask it to terminate."""
        if self._leash >= 0:
            with suppress(OSError):
                os.write(self._leash, b"T")
        else:
            self.kill()  # Windows has no way to ask

    def kill(self) -> None:
        """Kill it and everything it started."""
        if sys.platform == "win32":
            if self._process.returncode is None:
                windows.kill_tree(self._process.pid)
        elif self._leash >= 0:
            os.close(self._leash)  # the guard sees that…
            self._leash = -1
            if not self._exit.done():
                with suppress(ProcessLookupError):
                    os.kill(self._process.pid, signal.SIGCONT)  # …even if somebody has stopped it

    async def _wait_for_exit(self) -> int:
        """Wait without a thread where the kernel can tell us, with one elsewhere."""
        loop = asyncio.get_running_loop()
        pidfd = -1
        if sys.platform == "linux":
            with suppress(AttributeError, OSError):  # old systems have none
                pidfd = os.pidfd_open(self._process.pid)
        if pidfd < 0:
            return await loop.run_in_executor(None, self._process.wait)
        exited = asyncio.Event()
        loop.add_reader(pidfd, exited.set)
        try:
            await exited.wait()
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)
        return self._process.wait()


def _take_descriptor(stream: IO[bytes] | None) -> int:
    """Take a pipe's descriptor away from the object that would close it; -1 where there is no pipe."""
    if stream is None:
        return -1
    with stream:
        return os.dup(stream.fileno())


def _told_name(command: Sequence[str]) -> str:
    """Return the name under which a user knows a program: what Python runs, and for our own which agent it is for."""
    name, rest = Path(command[0]).name, command[1:]
    if name.startswith("python") and len(rest) > 1 and rest[0] == "-m":
        name, rest = rest[1], rest[2:]
    elif name.startswith("python") and rest and rest[0].endswith(".py"):
        name = Path(rest[0]).name
    return " ".join((name, *rest[:2])) if name == "holdfast" else name
