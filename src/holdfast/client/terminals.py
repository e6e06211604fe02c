"""Commands we run for an agent of version 1, each a guarded process that ends with its session (P8)."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from holdfast.children import start
from holdfast.errors import FileRefused, InvalidParams, UsageError
from holdfast.model import new_id
from holdfast.transport.descriptors import open_input

if TYPE_CHECKING:
    from holdfast.model import Update
    from holdfast.workspace import Workspace

MAX_TERMINALS = 64
"""Commands of one session that run or are kept at once."""

OUTPUT_BYTES = 1 << 20
"""How much of a command's output is kept, the last of it, unless the agent wants less."""


class Variable(msgspec.Struct):
    """One variable of a command's environment."""

    name: str
    value: str


class Create(msgspec.Struct, rename="camel"):
    """`terminal/create`."""

    session_id: str
    command: str
    args: list[str] = []
    env: list[Variable] = []
    cwd: str | None = None
    output_byte_limit: int | None = None


class OfTerminal(msgspec.Struct, rename="camel"):
    """Whatever only names a terminal."""

    session_id: str
    terminal_id: str


class Terminals:
    """The commands of one session."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._running: dict[str, Terminal] = {}

    async def create(self, it: Create) -> Update:
        """Start a command, in the session's directories."""
        if len(self._running) >= MAX_TERMINALS:
            raise InvalidParams(f"There are {MAX_TERMINALS} terminals already; release one first")
        limit = OUTPUT_BYTES if it.output_byte_limit is None else min(max(it.output_byte_limit, 0), OUTPUT_BYTES)
        try:
            cwd = str(self._workspace.absolute(it.cwd or "."))
            terminal = Terminal(it, cwd, limit)
        except (FileRefused, UsageError) as e:
            raise InvalidParams(str(e)) from None
        key = new_id("term")
        self._running[key] = terminal
        return {"terminalId": key}

    async def output(self, it: OfTerminal) -> Update:
        """Give what a command printed so far."""
        return self._get(it).output()

    async def wait_for_exit(self, it: OfTerminal) -> Update:
        """Wait until a command has ended."""
        return await self._get(it).wait()

    async def kill(self, it: OfTerminal) -> Update:
        """End a command; what it printed can still be read."""
        self._get(it).kill()
        return {}

    async def release(self, it: OfTerminal) -> Update:
        """End a command and forget it."""
        terminal = self._get(it)
        del self._running[it.terminal_id]
        await terminal.close()
        return {}

    async def close(self) -> None:
        """End all of them."""
        running = list(self._running.values())
        self._running.clear()
        for terminal in running:
            terminal.kill()
        for terminal in running:
            await terminal.close()

    def _get(self, it: OfTerminal) -> Terminal:
        if it.terminal_id not in self._running:
            raise InvalidParams(f"There is no terminal {it.terminal_id[:100]!r} in this session")
        return self._running[it.terminal_id]


class Terminal:
    """One command."""

    def __init__(self, it: Create, cwd: str, limit: int) -> None:
        self._limit = limit
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._truncated = False
        self._ended = asyncio.Event()
        env = {**os.environ, **{each.name: each.value for each in it.env}}
        try:
            self._child = start((it.command, *it.args), cwd=cwd, env=env, stdin=False, stderr=False)
        except UsageError:
            if it.args or os.name != "posix" or " " not in it.command:
                raise
            # Some agents send a whole line for a shell.
            self._child = start(("/bin/sh", "-c", it.command), cwd=cwd, env=env, stdin=False, stderr=False)
        self._output = open_input(self._child.stdout, self._read)
        self._output.resume()

    def output(self) -> Update:
        """Say what it printed, from a whole character on, and how it ended if it has."""
        data = b"".join(self._kept)
        if len(data) > self._limit:
            data = data[len(data) - self._limit :]
            while data and data[0] & 0xC0 == 0x80:
                data = data[1:]
        said: Update = {"output": data.decode(errors="replace"), "truncated": self._truncated}
        return said if self._child.returncode is None else {**said, "exitStatus": self._status()}

    async def wait(self) -> Update:
        """Wait until it has ended; say how."""
        await self._ended.wait()
        await self._child.wait()
        return self._status()

    def kill(self) -> None:
        """End it, and everything it started."""
        self._child.kill()

    async def close(self) -> None:
        """End it and let go of it."""
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
