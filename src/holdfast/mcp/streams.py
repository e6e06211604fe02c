"""The streams of messages that the SDK reads and writes: over the pipes of a process, or over HTTP.

Owns what the SDK does not see to: that a server's process ends with us, that what a server sends is bounded, that one
which never stops talking takes only a small part of the event loop's time (`ReadBudget`), and why a connection ended.
Loaded late, with the SDK.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import anyio
import httpx2
import msgspec
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from holdfast.children.environment import passed_environment
from holdfast.errors import ConnectionLost, UsageError
from holdfast.mcp.servers import SseServer
from holdfast.transport import Oversized, spawn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

    from holdfast.mcp.servers import HttpServer, StdioServer
    from holdfast.mcp.types import McpLimits
    from holdfast.transport import Line, Transport

log: logging.Logger = logging.getLogger(__name__)

UNREAD_BYTES = 256 << 10
"""No more is read from a process while this much of what it sent waits to be parsed."""

LINE_BYTES = 64
"""What a line takes in memory besides its own bytes."""

HTTP_SECONDS = 30.0

SSE_SECONDS = 3600.0
"""A stream of events that is silent for so long is taken for dead; most servers send a sign of life now and then."""

# They log addresses and whole messages, in which there may be secrets (P10). What went wrong is said by us, without.
for _name in ("mcp", "httpx2", "httpcore2"):
    if (_logger := logging.getLogger(_name)).level == logging.NOTSET:
        _logger.setLevel(logging.CRITICAL + 1)


class EndListener(Protocol):
    """Whoever wants to know why a connection ended."""

    def connection_ended(self, reason: str) -> None:
        """Note that the server is of no use any more."""
        ...

    def process_exited(self, stderr: str) -> None:
        """Note the end of what the server's process wrote to stderr."""
        ...


class ReadBudget:
    """Limits how much of the event loop's time one server may take with what nobody asked it for (P7).

    Everything that is read costs something, in seconds of the event loop. A server may spend `BURST` at once; after
    that it is read so slowly that it takes `SHARE` of the time. The costs were measured, and are set too high rather
    than too low. A response to a request of ours is free: there are no more of those than we want.
    """

    SHARE = 0.02
    BURST = 0.05
    SLICE = 0.0005
    """After so much others get their turn, even within a burst."""

    MESSAGE = 250e-6
    """What the SDK needs for a message: it starts a task for each."""
    LINE = 4e-6
    BYTE = 3e-9
    EVENT_BYTE = 10e-9
    """The SDK takes server-sent events apart in Python."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._credit = self.BURST
        self._counted_at = self._loop.time()
        self._in_a_row = 0.0

    def charge(self, cost: float) -> None:
        """Count something that was read."""
        now = self._loop.time()
        self._credit = min(self.BURST, self._credit + (now - self._counted_at) * self.SHARE) - cost
        self._counted_at = now
        self._in_a_row += cost

    async def pace(self) -> None:
        """Wait until the server may be read on."""
        if self._in_a_row >= self.SLICE:
            self._in_a_row = 0.0
            await asyncio.sleep(max(0.0, -self._credit / self.SHARE))


class _Requests:
    """Remembers our requests that are not answered yet: a message that answers one was asked for."""

    def __init__(self) -> None:
        self._ids: set[object] = set()

    def note_sent(self, message: object) -> None:
        """Note a request, or that one was cancelled."""
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._ids.discard((message.params or {}).get("requestId"))

    def is_answered_by(self, message: object) -> bool:
        """Return whether a message answers a request, for the first time."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id not in self._ids:
            return False
        self._ids.discard(message.id)
        return True


# A process


@asynccontextmanager
async def open_process(
    server: StdioServer, cwd: str, limits: McpLimits, listener: EndListener
) -> AsyncGenerator[ProcessStreams]:
    """Start a server's process; it is gone when this is left, with all that it started."""
    if os.path.dirname(server.command) and not Path(server.command).is_absolute():  # noqa: PTH120
        raise UsageError(f"cannot start {server.command!r}: a command is absolute, or a name to be found on PATH")
    transport = await spawn(
        server.command,
        *server.args,
        cwd=cwd,
        env={**passed_environment(), **dict(server.env)},
        limit=limits.message_bytes,
        patience=limits.stop,
    )
    streams = ProcessStreams(transport, listener)
    try:
        transport.open(streams)
        yield streams
    finally:
        with anyio.CancelScope(shield=True):
            await transport.close(min(limits.stop, 0.1))
            listener.process_exited(transport.stderr)


class _Head(msgspec.Struct):
    """What tells a message that the SDK needs from others, parsed before the SDK sees it: that is much cheaper."""

    method: str = ""


_decode_head = msgspec.json.Decoder(_Head).decode


class ProcessStreams:
    """Both streams of the SDK in one: what is sent goes to a transport, what arrives waits until the SDK wants it.

    What a process prints that is no message is skipped: many a server prints a greeting to stdout.
    """

    def __init__(self, transport: Transport, listener: EndListener) -> None:
        self._transport = transport
        self._listener = listener
        self._budget = ReadBudget()
        self._lines: deque[bytes] = deque()
        self._unread = 0
        self._paused = False
        self._arrived = asyncio.Event()
        self._ended = False
        self._skipped = 0
        self._requests = _Requests()

    # What the transport tells

    def lines_received(self, lines: Sequence[Line]) -> None:
        """Keep lines until the SDK wants them. While it is behind, the process is not read."""
        for line in lines:
            if isinstance(line, Oversized):
                # The call that it answers would wait for ever.
                self._end(f"it sent a message of more than {line.limit} bytes")
                return
            self._lines.append(line)
            self._unread += len(line) + LINE_BYTES
        if not self._paused and self._unread > UNREAD_BYTES:
            self._paused = True
            self._transport.pause()
        self._arrived.set()

    def input_ended(self, reason: ConnectionLost | None) -> None:
        """Note that the process is gone, or has closed its output."""
        self._end(str(reason or ConnectionLost("it closed its output")))

    def _end(self, reason: str) -> None:
        if not self._ended:
            self._ended = True
            self._arrived.set()
            self._listener.connection_ended(reason)

    # What the SDK reads and writes

    async def receive(self) -> SessionMessage:
        """Return the next message. Raises `anyio.EndOfStream` after the last one."""
        while True:
            while not self._lines:
                if self._ended:
                    raise anyio.EndOfStream
                if self._paused:
                    self._paused = False
                    self._transport.resume()
                self._arrived.clear()
                await self._arrived.wait()
            line = self._lines.popleft()
            self._unread -= len(line) + LINE_BYTES
            message = self._parse(line)
            await self._budget.pace()
            if message is not None:
                return message

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        if self._ended:
            raise anyio.BrokenResourceError
        self._requests.note_sent(item.message)
        self._transport.send(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async def aclose(self) -> None:
        """Do nothing: whoever opened the streams closes them."""

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

    def _parse(self, line: bytes) -> SessionMessage | None:
        """Return the message in a line, if the SDK needs it, and count what that costs."""
        cost = ReadBudget.LINE + len(line) * ReadBudget.BYTE
        message = None
        if line[:1] == b"{":
            try:
                # We offer no logging, and some servers log a lot.
                if _decode_head(line).method == "notifications/message":
                    self._budget.charge(cost)
                    return None
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                pass
        if message is None:
            self._note_skipped(line)
        elif self._requests.is_answered_by(message):
            return SessionMessage(message)
        else:
            cost += ReadBudget.MESSAGE
        self._budget.charge(cost)
        return None if message is None else SessionMessage(message)

    def _note_skipped(self, line: bytes) -> None:
        if line.strip():
            self._skipped += 1
            if self._skipped == 1:
                log.warning("An MCP server prints what is no message to its stdout; that is skipped")


# HTTP


@asynccontextmanager
async def open_http(
    server: HttpServer | SseServer, limits: McpLimits, listener: EndListener
) -> AsyncGenerator[tuple[Any, Any]]:
    """Connect to a server over HTTP."""
    budget, requests = ReadBudget(), _Requests()
    responses = _Responses(limits.message_bytes, budget)

    def client(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        # We accept no compression: a small body could expand to a large one.
        plain = {"Accept-Encoding": "identity", **(headers or {})}
        hooks: dict[str, list[Callable[..., Any]]] = {"response": [responses.inspect]}
        return httpx2.AsyncClient(headers=plain, timeout=timeout, auth=auth, event_hooks=hooks)

    if isinstance(server, SseServer):
        opened = sse_client(
            server.url, dict(server.headers), HTTP_SECONDS, sse_read_timeout=SSE_SECONDS, httpx_client_factory=client
        )
        async with opened as (read, write):
            # The SDK does not tell until somebody calls.
            def ended() -> None:
                listener.connection_ended("the server ended the connection")

            yield _PacedStream(read, budget, requests, ended=ended), _NotedStream(write, requests)
    else:
        timeout = httpx2.Timeout(HTTP_SECONDS, read=None)  # how long a call may take is decided elsewhere
        async with client(dict(server.headers), timeout) as http:
            opened = streamable_http_client(server.url, http_client=http, max_sse_event_size=limits.message_bytes)
            async with opened as (read, write):
                paced = _PacedStream(read, budget, requests, explain=responses.explain)
                yield paced, _NotedStream(write, requests)


class _Responses:
    """Looks at the HTTP responses of a server before the SDK reads them."""

    def __init__(self, limit: int, budget: ReadBudget) -> None:
        self._limit = limit
        self._budget = budget
        self._refusal = ""

    async def inspect(self, response: httpx2.Response) -> None:
        """Note a refusal; bound the body, and how fast it is read. The SDK bounds the events of a stream itself."""
        if response.status_code >= 400:
            self._refusal = f"{response.status_code} {response.reason_phrase}".strip()
        response.headers["content-encoding"] = "identity"
        is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        response.stream = _PacedBody(response.stream, self._budget, None if is_events else self._limit)

    def explain(self, item: Any) -> Any:
        """Put the status into the SDK's message about a refusal, which says only that there was one."""
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCError) and message.error.message == "Server returned an error response":
            error = message.error.model_copy(update={"message": f"the server answered: {self._refusal}"})
            return SessionMessage(message.model_copy(update={"error": error}))
        return item


class _PacedBody(httpx2.AsyncByteStream):
    """A body that is read no faster than the server's budget allows, and up to a limit."""

    def __init__(self, stream: Any, budget: ReadBudget, limit: int | None) -> None:
        self._stream = stream
        self._budget = budget
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if self._limit is not None and size > self._limit:
                raise httpx2.StreamError(f"it sent a message of more than {self._limit} bytes")
            self._budget.charge(len(chunk) * (ReadBudget.EVENT_BYTE if self._limit is None else ReadBudget.BYTE))
            await self._budget.pace()
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _WrappedStream:
    """A stream of messages of the SDK."""

    def __init__(self, stream: Any, requests: _Requests) -> None:
        self._stream = stream
        self._requests = requests

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *about: object) -> bool | None:
        return await self._stream.__aexit__(*about)


class _NotedStream(_WrappedStream):
    """A stream to write to, in which requests are noted."""

    async def send(self, item: SessionMessage, /) -> None:
        self._requests.note_sent(item.message)
        await self._stream.send(item)


class _PacedStream(_WrappedStream):
    """A stream to read from, no faster than the server's budget allows."""

    def __init__(
        self,
        stream: Any,
        budget: ReadBudget,
        requests: _Requests,
        *,
        explain: Callable[[Any], Any] | None = None,
        ended: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(stream, requests)
        self._budget = budget
        self._explain = explain
        self._ended = ended

    @property
    def last_context(self) -> Any:
        """The context in which the last item was sent; the SDK reads it."""
        return self._stream.last_context

    async def receive(self) -> Any:
        return await self._stream.receive()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            item = await anext(self._stream)
        except StopAsyncIteration:
            if self._ended is not None:
                self._ended()
            raise
        if not isinstance(item, SessionMessage) or not self._requests.is_answered_by(item.message):
            self._budget.charge(ReadBudget.MESSAGE)
            await self._budget.pace()
        return item if self._explain is None else self._explain(item)
