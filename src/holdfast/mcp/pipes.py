"""A server that is a process of ours, as the pair of streams the SDK wants.

The process is started under guard and its pipes are a transport of ours, so that neither it nor what it starts outlives
us, lines and stderr are bounded, and it is read no faster than it is understood. What it prints that is no message
is skipped: many a server says hello on stdout.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from holdfast.errors import ConnectionLost, UsageError
from holdfast.transport import Oversized, spawn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from holdfast.mcp.servers import StdioServer
    from holdfast.mcp.values import Limits
    from holdfast.transport import Line, Transport

log = logging.getLogger(__name__)

FAIR_LINES = 64
"""After so many lines in a row that are no messages others get their turn."""

INHERITED = frozenset(
    {
        "APPDATA", "COMSPEC", "HOME", "HOMEDRIVE", "HOMEPATH", "LANG", "LC_ALL", "LC_CTYPE", "LOCALAPPDATA", "LOGNAME",
        "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "SHELL", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TERM", "TMP",
        "TMPDIR", "TZ", "USER", "USERNAME", "USERPROFILE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    }
)  # fmt: skip
"""What a server gets of our environment: what programs need to run, and none of the keys that are for us (E2)."""


class ProcessWatch(Protocol):
    """Whoever wants to know what became of a server's process, or of a connection that is as good as one."""

    def process_ended(self, reason: str) -> None:
        """Note that it is of no use any more."""
        ...

    def last_words(self, stderr: str) -> None:
        """Note what it wrote to stderr last; it is gone."""
        ...


def environment(server: StdioServer) -> dict[str, str]:
    """Put together what a server gets as its environment."""
    # A value that begins so is a function that some shells export, and has been used to smuggle commands.
    ours = {k: v for k, v in os.environ.items() if k.upper() in INHERITED and not v.startswith("()")}
    return {**ours, **dict(server.env)}


@asynccontextmanager
async def open_pipes(server: StdioServer, cwd: str, limits: Limits, watch: ProcessWatch) -> AsyncGenerator[Pipes]:
    """Start a server; it is gone when this is left, with all it started."""
    if os.path.dirname(server.command) and not Path(server.command).is_absolute():  # noqa: PTH120
        raise UsageError(f"cannot start {server.command!r}: a command is absolute, or a name to be found on PATH")
    transport = await spawn(
        server.command, *server.args, cwd=cwd, env=environment(server), limit=limits.line, patience=limits.stop
    )
    pipes = Pipes(transport, watch)
    try:
        transport.open(pipes)
        yield pipes
    finally:
        with anyio.CancelScope(shield=True):
            await transport.close(min(limits.stop, 0.1))
            watch.last_words(transport.stderr)


class Pipes:
    """Both streams in one: what is sent goes to the transport at once, what arrives waits until it is asked for."""

    def __init__(self, transport: Transport, watch: ProcessWatch) -> None:
        self._transport = transport
        self._watch = watch
        self._lines: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._skipped = 0

    # What the transport tells

    def lines_received(self, lines: Sequence[Line]) -> None:
        """Keep lines, and read no more until they were understood."""
        for line in lines:
            if isinstance(line, Oversized):
                # Whichever call it belongs to would wait for ever.
                self._end(f"it sent a message of more than {line.limit} bytes")
                return
            self._lines.append(line)
        self._transport.pause()
        self._news.set()

    def input_ended(self, reason: ConnectionLost | None) -> None:
        """Note that the server is gone."""
        self._end(str(reason or ConnectionLost("it closed its output")))

    def _end(self, reason: str) -> None:
        if not self._ended:
            self._ended = True
            self._news.set()
            self._watch.process_ended(reason)

    # What the SDK reads and writes

    async def receive(self) -> SessionMessage:
        """Give the next message."""
        in_a_row = 0
        while True:
            while not self._lines:
                if self._ended:
                    raise anyio.EndOfStream
                self._transport.resume()
                self._news.clear()
                await self._news.wait()
            line = self._lines.popleft()
            if (message := self._understood(line)) is not None:
                return message
            in_a_row += 1
            if in_a_row % FAIR_LINES == 0:
                await asyncio.sleep(0)

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        if self._ended:
            raise anyio.BrokenResourceError
        self._transport.send(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async def aclose(self) -> None:
        """Nothing: whoever opened them closes them."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def _understood(self, line: bytes) -> SessionMessage | None:
        if line[:1] == b"{":
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:
                pass
        if line.strip():
            self._skipped += 1
            if self._skipped == 1:
                log.warning("An MCP server prints what is no message to its stdout; that is skipped")
        return None
