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
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import anyio
import httpx2
import msgspec
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, jsonrpc_message_adapter

from holdfast.errors import ConnectionLost, UsageError
from holdfast.mcp.pacing import PROGRESS, HeldProgress, ReadBudget, Requests
from holdfast.mcp.servers import SseServer
from holdfast.subprocesses.environment import passed_environment
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
    params: msgspec.Raw = msgspec.Raw()


class _ProgressParams(msgspec.Struct):
    token: int | str = msgspec.field(name="progressToken")


_decode_head = msgspec.json.Decoder(_Head).decode
_decode_progress = msgspec.json.Decoder(_ProgressParams).decode


def _head_of(line: bytes) -> _Head:
    if line[:1] == b"{":
        with suppress(ValueError):
            return _decode_head(line)
    return _Head()


def _progress_token(head: _Head) -> int | str | None:
    """Return which call a message tells the progress of, or None if it is no progress."""
    if head.method == PROGRESS:
        with suppress(ValueError):
            return _decode_progress(head.params).token
    return None


def _message_in(line: bytes) -> JSONRPCMessage | None:
    if line[:1] == b"{":
        with suppress(ValueError):
            return jsonrpc_message_adapter.validate_json(line, by_name=False)
    return None


def _line_cost(line: bytes) -> float:
    return ReadBudget.LINE + len(line) * ReadBudget.BYTE


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
        self._requests = Requests()
        self._progress: HeldProgress[bytes] = HeldProgress()
        self._ready: deque[SessionMessage] = deque()

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
        while not self._ready:
            if self._progress and (not self._lines or self._progress.seconds_left <= 0):
                self._tell_progress()
            elif self._lines:
                self._read(self._lines.popleft())
            else:
                await self._wait_for_lines()
            await self._budget.pace()
        return self._ready.popleft()

    async def _wait_for_lines(self) -> None:
        while not self._lines:
            if self._ended:
                raise anyio.EndOfStream
            if self._paused:
                self._paused = False
                self._transport.resume()
            self._arrived.clear()
            await self._arrived.wait()

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

    def _read(self, line: bytes) -> None:
        """Make the message in a line ready, if the SDK needs it now."""
        self._unread -= len(line) + LINE_BYTES
        head = _head_of(line)
        if head.method == "notifications/message":  # we offer no logging, and some servers log a lot
            self._budget.charge(_line_cost(line))
        elif (token := _progress_token(head)) is not None:
            self._budget.charge(_line_cost(line))
            self._progress.hold(token, line)
            if not self._budget.is_spent:
                self._tell_progress()
        else:
            self._tell_progress()  # a result comes behind the progress of its call
            self._parse(line)

    def _tell_progress(self) -> None:
        for line in self._progress.take():
            self._parse(line)

    def _parse(self, line: bytes) -> None:
        """Make the message in a line ready, and charge the server for what was not asked for."""
        message = _message_in(line)
        if message is None:
            self._note_skipped(line)
            self._budget.charge(_line_cost(line))
        else:
            if not self._requests.is_answered_by(message):
                self._budget.charge(_line_cost(line) + ReadBudget.MESSAGE)
            self._ready.append(SessionMessage(message))

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
    budget, requests = ReadBudget(), Requests()
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

    def __init__(self, stream: Any, requests: Requests) -> None:
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
        requests: Requests,
        *,
        explain: Callable[[Any], Any] | None = None,
        ended: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(stream, requests)
        self._budget = budget
        self._explain = explain
        self._ended = ended
        self._progress: HeldProgress[_Received] = HeldProgress()
        self._ready: deque[_Received] = deque()
        self._reading: asyncio.Task[_Received] | None = None
        self.last_context: Any = None
        """The context in which the last item was sent; the SDK reads it."""

    async def receive(self) -> Any:
        """Return the next item. Raises `anyio.EndOfStream` after the last one."""
        while not self._ready:
            self._read(await self._next())
            await self._budget.pace()
        item, self.last_context = self._ready.popleft()
        return item if self._explain is None else self._explain(item)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            if self._ended is not None:
                self._ended()
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._stop_reading()
        await super().aclose()

    async def __aexit__(self, *about: object) -> bool | None:
        self._stop_reading()
        return await super().__aexit__(*about)

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def _next(self) -> _Received | None:
        """Return the next item, or None if progress is held and nothing newer comes."""
        if not self._progress and self._reading is None:
            return await self._receive()
        # A task that stays: cancelling a receive could lose the item that it is about to return.
        reading = self._reading = self._reading or asyncio.ensure_future(self._receive())
        if self._progress:
            await asyncio.wait({reading}, timeout=max(0.0, self._progress.seconds_left))
            if not reading.done():
                return None
        self._reading = None
        return await reading

    async def _receive(self) -> _Received:
        item = await self._stream.receive()
        return _Received(item, self._stream.last_context)

    def _read(self, received: _Received | None) -> None:
        """Make an item ready, if the SDK needs it now, and charge the server for what was not asked for."""
        if received is None:
            self._tell_progress()
            return
        message = received.item.message if isinstance(received.item, SessionMessage) else None
        if isinstance(message, JSONRPCNotification) and message.method == PROGRESS:
            self._budget.charge(ReadBudget.EVENT_NOTE)
            self._progress.hold(str((message.params or {}).get("progressToken")), received)
            if not self._budget.is_spent or self._progress.seconds_left <= 0:
                self._tell_progress()
            return
        self._tell_progress()  # a result comes behind the progress of its call
        if not self._requests.is_answered_by(message):
            self._budget.charge(ReadBudget.MESSAGE)
        self._ready.append(received)

    def _tell_progress(self) -> None:
        told = self._progress.take()
        self._budget.charge(len(told) * ReadBudget.MESSAGE)
        self._ready.extend(told)


class _Received(NamedTuple):
    """An item of a stream of the SDK, and the context in which it was sent."""

    item: Any
    context: Any
