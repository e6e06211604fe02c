"""Commands that a client runs for a version 1 agent, each a guarded process that ends with its session (P8)."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import FileRefused, InvalidParams, UsageError
from holdfast.model import new_id
from holdfast.subprocesses import start
from holdfast.transport.descriptors import open_input

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from holdfast.model import Update
    from holdfast.subprocesses import Child
    from holdfast.workspace import Workspace

    StartCommand: TypeAlias = Callable[[Sequence[str], str, Mapping[str, str]], Child]

MAX_TERMINALS = 64
"""So many commands of one session may run, or be kept after their end, at once."""

OUTPUT_BYTES = 1 << 20
"""How many bytes of a command's output are kept, the last of it, unless the agent asks for less."""


class EnvVariable(msgspec.Struct):
    """One variable of a command's environment."""

    name: str
    value: str


class CreateTerminal(msgspec.Struct, rename="camel"):
    """The parameters of `terminal/create`."""

    session_id: str
    command: str
    args: list[str] = []
    env: list[EnvVariable] = []
    cwd: str | None = None
    output_byte_limit: int | None = None


class TerminalParams(msgspec.Struct, rename="camel"):
    """The parameters of the methods that only name a terminal."""

    session_id: str
    terminal_id: str


def start_here(command: Sequence[str], cwd: str, variables: Mapping[str, str]) -> Child:
    """Start a command as we are, with our environment and some variables besides."""
    return start(command, cwd=cwd, env={**os.environ, **variables}, stdin=False, stderr=False)


class Terminals:
    """The commands of one session."""

    def __init__(self, workspace: Workspace, start_command: StartCommand = start_here) -> None:
        """Run commands in the directories of a workspace; `start_command` starts each."""
        self.workspace: Workspace = workspace
        self._start = start_command
        self._running: dict[str, Terminal] = {}

    async def create(self, params: CreateTerminal) -> Update:
        """Start a command in one of the session's directories; return its id."""
        if len(self._running) >= MAX_TERMINALS:
            raise InvalidParams(f"There are {MAX_TERMINALS} terminals already; release one first")
        wanted = OUTPUT_BYTES if params.output_byte_limit is None else max(params.output_byte_limit, 0)
        try:
            cwd = str(self.workspace.absolute(params.cwd or "."))
            terminal = Terminal(params, cwd, min(wanted, OUTPUT_BYTES), self._start)
        except (FileRefused, UsageError) as e:
            raise InvalidParams(str(e)) from None
        key = new_id("term")
        self._running[key] = terminal
        return {"terminalId": key}

    async def output(self, params: TerminalParams) -> Update:
        """Return what a command has printed so far."""
        return self._get(params).output()

    async def wait_for_exit(self, params: TerminalParams) -> Update:
        """Wait until a command has exited; return its exit status."""
        return await self._get(params).wait()

    async def kill(self, params: TerminalParams) -> Update:
        """Kill a command; what it printed can still be read."""
        self._get(params).kill()
        return {}

    async def release(self, params: TerminalParams) -> Update:
        """Kill a command and forget it."""
        terminal = self._get(params)
        del self._running[params.terminal_id]
        await terminal.close()
        return {}

    async def close(self) -> None:
        """Kill all commands."""
        running = list(self._running.values())
        self._running.clear()
        for terminal in running:
            terminal.kill()
        for terminal in running:
            await terminal.close()

    def _get(self, params: TerminalParams) -> Terminal:
        if params.terminal_id not in self._running:
            raise InvalidParams(f"There is no terminal {params.terminal_id[:100]!r} in this session")
        return self._running[params.terminal_id]


class Terminal:
    """One command, and the end of what it printed."""

    def __init__(self, params: CreateTerminal, cwd: str, limit: int, start_command: StartCommand) -> None:
        self._limit = limit
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._truncated = False
        self._ended = asyncio.Event()
        variables = {variable.name: variable.value for variable in params.env}
        try:
            self._child = start_command((params.command, *params.args), cwd, variables)
        except UsageError:
            if params.args or " " not in params.command or sys.platform == "win32":
                raise
            # Some agents send a whole line for a shell.
            self._child = start_command(("/bin/sh", "-c", params.command), cwd, variables)
        self._output = open_input(self._child.stdout, self._read)
        self._output.resume()

    def output(self) -> Update:
        """Return what it printed, beginning with a whole character, and its exit status if it has exited."""
        data = b"".join(self._kept)
        if len(data) > self._limit:
            data = data[len(data) - self._limit :]
            while data and data[0] & 0xC0 == 0x80:
                data = data[1:]
        output: Update = {"output": data.decode(errors="replace"), "truncated": self._truncated}
        return output if self._child.returncode is None else {**output, "exitStatus": self._status()}

    async def wait(self) -> Update:
        """Wait until it has exited; return its exit status."""
        await self._ended.wait()
        await self._child.wait()
        return self._status()

    def kill(self) -> None:
        """Kill it and every process it started."""
        self._child.kill()

    async def close(self) -> None:
        """Kill it and close its output."""
        self._child.kill()
        await self._child.wait()
        self._output.close()
        self._ended.set()

    def _status(self) -> Update:
        code = self._child.returncode
        if code is None:
            return {"exitCode": None, "signal": None}
        return {"exitCode": code, "signal": None} if code <= 128 else {"exitCode": None, "signal": str(code - 128)}

    def _read(self, chunk: bytes) -> None:
        if not chunk:
            self._ended.set()
            return
        self._kept.append(chunk)
        self._size += len(chunk)
        self._truncated |= self._size > self._limit
        while self._size - len(self._kept[0]) >= self._limit and len(self._kept) > 1:
            self._size -= len(self._kept.popleft())
