"""Two linked transports of every kind, for tests that must hold for all of them."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast.transport import MAX_LINE_BYTES, Line, Transport, memory_pair, spawn
from holdfast.transport.descriptors import PipeTransport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from holdfast.errors import ConnectionLost

PROGRAMS = Path(__file__).parent.parent / "programs"

PATIENCE = 40.0
"""No test waits longer than this for something that ought to happen."""


class Link(Protocol):
    """Makes two linked transports and closes them afterwards."""

    def __call__(self, limit: int = ...) -> AbstractAsyncContextManager[tuple[Transport, Transport]]: ...


@asynccontextmanager
async def memory_link(limit: int = MAX_LINE_BYTES) -> AsyncGenerator[tuple[Transport, Transport]]:
    near, far = memory_pair(limit)
    async with closing(near, far):
        yield near, far


@asynccontextmanager
async def pipe_link(
    limit: int = MAX_LINE_BYTES, *, threads: bool = False
) -> AsyncGenerator[tuple[Transport, Transport]]:
    (near_read, far_write), (far_read, near_write) = os.pipe(), os.pipe()
    near = PipeTransport(near_read, near_write, limit=limit, threads=threads)
    far = PipeTransport(far_read, far_write, limit=limit, threads=threads)
    async with closing(near, far):
        yield near, far


@asynccontextmanager
async def thread_link(limit: int = MAX_LINE_BYTES) -> AsyncGenerator[tuple[Transport, Transport]]:
    async with pipe_link(limit, threads=True) as link:
        yield link


@asynccontextmanager
async def process_link(limit: int = MAX_LINE_BYTES) -> AsyncGenerator[tuple[Transport, Transport]]:
    """Link us with a process that we start, and the process's stdin and stdout with us again."""
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listening:
        path = f"{directory}/relay"
        listening.bind(path)
        listening.listen()
        listening.setblocking(False)
        near = await spawn(sys.executable, str(PROGRAMS / "relay.py"), path, limit=limit, patience=0.2)
        async with closing(near):
            async with asyncio.timeout(PATIENCE):
                connected, _ = await asyncio.get_running_loop().sock_accept(listening)
            fd = connected.detach()
            far = PipeTransport(os.dup(fd), fd, limit=limit)
            async with closing(far):
                yield near, far


LINKS: dict[str, Link] = {"memory": memory_link, "pipes": pipe_link, "threads": thread_link, "process": process_link}


@asynccontextmanager
async def closing(*transports: Transport) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        for transport in transports:
            await transport.close(0.1)


class Collector:
    """A receiver that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.ends: list[ConnectionLost | None] = []
        self._news = asyncio.Event()

    def lines_received(self, lines: Sequence[Line]) -> None:
        assert not self.ends, "lines after the end"
        self.lines += lines
        self._news.set()

    def input_ended(self, reason: ConnectionLost | None) -> None:
        self.ends.append(reason)
        self._news.set()

    @property
    def size(self) -> int:
        """How many bytes came in lines that were whole."""
        return sum(len(line) for line in self.lines if isinstance(line, bytes))

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait, not for ever, until what was told satisfies a condition."""
        async with asyncio.timeout(PATIENCE):
            while not happened():
                self._news.clear()
                await self._news.wait()

    async def get(self, count: int) -> list[Line]:
        """Wait for that many lines."""
        await self.until(lambda: len(self.lines) >= count)
        return self.lines[:count]

    async def end(self) -> ConnectionLost | None:
        """Wait for the end of the input."""
        await self.until(lambda: bool(self.ends))
        return self.ends[0]
