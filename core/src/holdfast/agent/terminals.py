"""Commands an agent runs, shown as they run: to their end, or beside the turns."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import HoldfastError
from holdfast.model import new_id
from holdfast.subprocesses import start
from holdfast.subprocesses.environment import DEVELOPMENT, passed_environment
from holdfast.transport.descriptors import open_input

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.agent.tools import ToolCall
    from holdfast.model import Update

log: logging.Logger = logging.getLogger(__name__)

KILL_AFTER = 2.0
"""A command that is told to stop has this long to do so."""


SHOWN_BYTES = 512 << 10
"""So much of a command's output is shown as it comes; all that is shown is stored…"""

LAST_BYTES = 64 << 10
"""…and of what comes behind it so much, the last of it, when the command has ended."""


class Finished(NamedTuple):
    """A command that has ended.

    Attributes:
        status: its exit status (128 + n: signal n, as in a shell).
        output: the last of what it printed.

    """

    status: int
    output: bytes

    @property
    def text(self) -> str:
        """The output as text."""
        return self.output.decode(errors="replace")


class _Command:
    """A command that runs in a terminal: what it prints is shown by `emit`, and the last of it kept."""

    def __init__(
        self,
        emit: Callable[[Update], None],
        command: tuple[str, ...],
        cwd: str,
        env: Mapping[str, str] | None,
        limit: int,
    ) -> None:
        self.id: str = new_id("term")
        self._emit = emit
        self._limit = limit
        self._ended = asyncio.Event()
        self._kept: deque[bytes] = deque()
        self._size = self._shown = self._left_out = 0
        self._controls: Update = {}
        self._about: Update = {"command": " ".join(command), "cwd": cwd}
        whole_env = {**passed_environment(DEVELOPMENT), **(env or {})}  # the agent's own has its keys in it (P10)
        self._child = start(command, cwd=cwd, env=whole_env, stdin=False, stderr=False)
        self._output = open_input(self._child.stdout, self._read)

    @property
    def output(self) -> bytes:
        """The last of what it printed."""
        return b"".join(self._kept)[-self._limit :]

    async def show(self, call: ToolCall, *, cancellable: bool) -> None:
        """Show it in a tool call, and begin to read what it prints."""
        self._controls = {"capabilities": {"cancel": {}}} if cancellable else {}
        try:
            self._say(**self._about, **self._controls)
            await call.add_terminal(self.id)
        except BaseException:
            self.kill()
            self._output.close()
            raise
        self._output.resume()

    def stop(self) -> None:
        """Ask it to stop, and kill it if it does not."""
        self._child.terminate()
        asyncio.get_running_loop().call_later(KILL_AFTER, self._child.kill)

    def kill(self) -> None:
        """Kill it, and all it started."""
        self._child.kill()

    async def wait(self) -> Finished:
        """Wait for its end, and show it; where the wait is cancelled, end it with all it started."""
        try:
            await self._ended.wait()
            await self._child.wait()
        except asyncio.CancelledError:
            self._child.terminate()
            await self._child.wait(KILL_AFTER)
            raise
        finally:
            self._child.kill()
            self._output.close()
            self._show_end()
        assert self._child.returncode is not None
        return Finished(self._child.returncode, self.output)

    def _show_end(self) -> None:
        if self._left_out:
            last = b"".join(self._kept)[-min(self._left_out, LAST_BYTES) :]
            self._show(b"\n[... %d bytes are not shown ...]\n" % (self._left_out - len(last)) + last)
        self._say(exitStatus=_exit_status(self._child.returncode), **dict.fromkeys(self._controls))

    def _say(self, **members: object) -> None:
        self._emit({"sessionUpdate": "terminal_update", "terminalId": self.id, **members})

    def _show(self, chunk: bytes) -> None:
        data = b64encode(chunk).decode()
        self._emit({"sessionUpdate": "terminal_output_chunk", "terminalId": self.id, "data": data})

    def _read(self, chunk: bytes) -> None:
        if not chunk:
            self._ended.set()
            return
        self._kept.append(chunk)
        self._size += len(chunk)
        while self._kept and self._size - len(self._kept[0]) >= self._limit:
            self._size -= len(self._kept.popleft())
        if self._left_out or self._shown + len(chunk) > SHOWN_BYTES:
            self._left_out += len(chunk)
        else:
            self._shown += len(chunk)
            self._show(chunk)


async def run_in_terminal(
    call: ToolCall,
    command: tuple[str, ...],
    cwd: str,
    env: Mapping[str, str] | None,
    limit: int,
    *,
    cancellable: bool = False,
) -> Finished:
    """Run a command, show it in a tool call, and wait for its end."""
    running = _Command(call.emit, command, cwd, env, limit)
    if cancellable:
        call.offer_cancel(running.id, running.stop)
    try:
        await running.show(call, cancellable=cancellable)
        return await running.wait()
    finally:
        call.withdraw_cancel(running.id)


class BackgroundTerminal:
    """A command that goes on after its tool call and its turn: see `ToolCall.start_terminal`.

    Attributes:
        id: the id of its terminal, as clients see it.

    """

    __module__ = "holdfast.agent"  # where everybody imports it from

    def __init__(self, call: ToolCall, running: _Command) -> None:
        self.id: str = running.id
        self._call = call
        self._running = running
        self._finished: asyncio.Future[Finished] = asyncio.get_running_loop().create_future()

    @property
    def finished(self) -> Finished | None:
        """How the command ended; None while it runs."""
        return self._finished.result() if self._finished.done() else None

    @property
    def text(self) -> str:
        """The last of what it printed so far."""
        return self._running.output.decode(errors="replace")

    async def wait(self) -> Finished:
        """Wait until it has ended.

        Returns:
            How it ended.

        """
        return await asyncio.shield(self._finished)

    async def stop(self) -> Finished:
        """Stop it, and wait until it has ended.

        Returns:
            How it ended.

        """
        if not self._finished.done():
            self._running.stop()
        return await self.wait()

    async def follow(self) -> None:
        """Show what it prints until it has ended. The session owns this."""
        try:
            finished = await self._running.wait()
        finally:
            self._call.end_in_background(self.id)
        self._finished.set_result(finished)


async def start_in_terminal(
    call: ToolCall, command: tuple[str, ...], cwd: str, env: Mapping[str, str] | None, limit: int
) -> BackgroundTerminal:
    """Start a command, show it in a tool call, and let it go on beside the turns."""

    def emit(update: Update) -> None:
        try:
            call.emit_in_background(update)
        except HoldfastError as e:  # the session is not ours any more
            log.info("What a command in the background prints is not shown any more: %s", e)
            running.kill()

    running = _Command(emit, command, cwd, env, limit)
    terminal = BackgroundTerminal(call, running)

    async def stop() -> None:
        await terminal.stop()

    await running.show(call, cancellable=True)
    call.work_in_background({"type": "terminal", "terminalId": running.id}, stop)
    call.start_work(terminal.follow())
    return terminal


def _exit_status(code: int | None) -> Update:
    if code is None:
        return {}
    return {"exitCode": code} if code <= 128 else {"signal": str(code - 128)}
