"""The client's end of a connection over HTTP: lines are POSTed one after the other, and come on streams of events.

The first line opens the connection and is answered at once; after that there is a stream for the connection, and one
for each session that a message names (H2). A stream that is cut is opened again where it was (H4).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from holdfast.client.http_requests import HttpRequests
from holdfast.errors import ConnectionLost, ConnectionRefused, InternalError
from holdfast.jsonrpc import ErrorObject, encode_error
from holdfast.transport.event_stream import EventReader
from holdfast.transport.lines import MAX_LINE_BYTES
from holdfast.transport.port import MAX_UNSENT_BYTES

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from holdfast.transport import Line, Receiver

log: logging.Logger = logging.getLogger(__name__)

CONNECTION_ID, SESSION_ID = "Acp-Connection-Id", "Acp-Session-Id"

OVER = frozenset({401, 403, 404, 410})
"""After one of these the connection is of no use any more."""

RETRIES = 5
"""How often a stream that was cut is opened again, with a longer pause each time."""

GOODBYE_SECONDS = 2.0
"""How long the server may take to hear that the connection is over."""


class _Params(msgspec.Struct, rename="camel"):
    session_id: str | None = None


class _Envelope(msgspec.Struct):
    """Where a message and its answer go."""

    id: int | str | None = None
    method: str | None = None
    params: _Params | None = None


class HttpClientTransport:
    """Carries lines to and from a server."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        limit: int = MAX_LINE_BYTES,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.max_line = limit
        self.unsent: int = 0
        self._requests = HttpRequests(url, headers or {}, tls)
        self._loop = asyncio.get_running_loop()
        self._receiver: Receiver | None = None
        self._queue: deque[bytes] = deque()
        self._news, self._sent = asyncio.Event(), asyncio.Event()
        self._may_read = asyncio.Event()
        self._connection_id: str | None = None
        self._tasks: dict[str | None, asyncio.Task[None]] = {}
        self._streams: dict[str | None, asyncio.Event] = {}  # set once open
        self._closed = self._ended = False
        self._reason: ConnectionLost | None = None
        self._posting = self._loop.create_task(self._post_all(), name="POST lines")

    def open(self, receiver: Receiver) -> None:
        """Begin to read."""
        self._receiver = receiver
        if self._ended:
            self._loop.call_soon(receiver.input_ended, self._reason)
        else:
            self._may_read.set()

    def send(self, line: bytes) -> None:
        """POST a line, behind those before it."""
        if self._closed or self._ended:
            return
        self._queue.append(line.replace(b"\n", b" "))
        self.unsent += len(line)
        self._news.set()
        if self.unsent > MAX_UNSENT_BYTES:
            self._end(ConnectionLost("the other side does not read what it is sent"))

    send_now = send

    def send_block(self, *pieces: bytes) -> None:
        """POST whole lines."""
        for line in b"".join(pieces)[:-1].split(b"\n"):
            self.send(line)

    def flush(self) -> None:
        """Do nothing: lines leave as fast as the server takes them."""

    def pause(self) -> None:
        """Stop reading."""
        self._may_read.clear()

    def resume(self) -> None:
        """Read again."""
        if self._receiver is not None:
            self._may_read.set()

    async def drain(self, below: int) -> None:
        """Wait until fewer than `below` bytes are unsent, or none ever will be."""
        while self.unsent >= below and not (self._ended or self._closed):
            self._sent.clear()
            await self._sent.wait()

    async def close(self, flush_for: float) -> None:
        """POST what is unsent within `flush_for` seconds, then end the connection."""
        if self._closed:
            return
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(flush_for):
                    await self.drain(1)
            self._stop()
            await self._say_goodbye()
        finally:
            self._closed = self._ended = True
            self._stop()
            await asyncio.wait({self._posting, *self._tasks.values()})
            await self._requests.close()

    async def _say_goodbye(self) -> None:
        if self._connection_id is not None and not isinstance(self._reason, ConnectionRefused):
            with suppress(TimeoutError, ConnectionLost):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await self._requests.delete({CONNECTION_ID: self._connection_id})

    def _stop(self) -> None:
        self._posting.cancel()
        for task in self._tasks.values():
            task.cancel()
        self._queue.clear()
        self.unsent = 0
        self._sent.set()

    # Sending

    async def _post_all(self) -> None:
        try:
            while True:
                while self._queue:
                    line = self._queue[0]
                    await self._post(line)
                    if self._queue:
                        self._queue.popleft()
                        self.unsent -= len(line)
                    self._sent.set()
                self._news.clear()
                await self._news.wait()
        except ConnectionLost as e:
            self._end(e)

    async def _post(self, line: bytes) -> None:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self._connection_id is not None:
            headers[CONNECTION_ID] = self._connection_id
            await self._open_stream_for(line)
        response = await self._requests.post(line, headers)
        if response.status in OVER or (self._connection_id is None and response.status != 200):
            said = response.body.decode(errors="replace")[:500]
            raise ConnectionRefused(f"the server answered {response.status}: {said}", response.status)
        if self._connection_id is None:
            self._connection_id = response.headers.get(CONNECTION_ID.lower())
            if self._connection_id is None:
                raise ConnectionRefused("the server does not speak ACP over HTTP")
            await self._read_stream(None)
        if response.status == 200 and response.body:
            await self._deliver(response.body)
        elif response.status >= 400:
            await self._answer_for_the_server(line, response.status, response.body)

    async def _open_stream_for(self, line: bytes) -> None:
        """Open the stream of the session that a message names, before what comes of it is sent there."""
        try:
            message = msgspec.json.decode(line, type=_Envelope)
        except msgspec.DecodeError:
            return
        if message.method is not None and message.params is not None and message.params.session_id is not None:
            await self._read_stream(message.params.session_id)

    async def _answer_for_the_server(self, line: bytes, status: int, body: bytes) -> None:
        """Answer a request that the server did not take; it may have answered on a stream as well."""
        try:
            asked = msgspec.json.decode(line, type=_Envelope)
        except msgspec.DecodeError:
            return
        if asked.id is not None and asked.method is not None:
            said = body.decode(errors="replace")[:500]
            error = ErrorObject(InternalError.code, f"The server answered {status}: {said}")
            await self._deliver(encode_error(asked.id, error))

    # Receiving

    async def _read_stream(self, session_id: str | None) -> None:
        """Read a stream from now on; return once it is open, or will not be."""
        if session_id not in self._streams:
            self._streams[session_id] = asyncio.Event()
            reading = self._read_again_and_again(session_id)
            self._tasks[session_id] = self._loop.create_task(reading, name="read a stream of events")
        await self._streams[session_id].wait()

    async def _read_again_and_again(self, session_id: str | None) -> None:
        """Read a stream to its end; where it is cut, go on with it where it was (H4)."""
        last_event_id: str | None = None
        failures = 0
        try:
            while failures < RETRIES:
                try:
                    async with self._requests.get(self._stream_headers(session_id, last_event_id)) as response:
                        if response.status != 200:
                            self._stream_refused(session_id, response.status)
                            return
                        events = EventReader(self.max_line)
                        self._streams[session_id].set()
                        async for chunk in response:
                            failures = 0
                            for event in events.feed(chunk):
                                last_event_id = event.id
                                await self._deliver(event.line)
                        break
                except ConnectionLost as e:
                    failures += 1
                    log.info("A stream was cut: %s", e)
                    await asyncio.sleep(0.05 * 2**failures)
            if session_id is None:
                self._end(None if failures < RETRIES else ConnectionLost("the server is gone"))
        finally:
            self._tasks.pop(session_id, None)
            self._streams.pop(session_id).set()

    def _stream_headers(self, session_id: str | None, last_event_id: str | None) -> dict[str, str]:
        assert self._connection_id is not None
        headers = {"Accept": "text/event-stream", CONNECTION_ID: self._connection_id}
        if session_id is not None:
            headers[SESSION_ID] = session_id
        if last_event_id is not None:
            headers["Last-Event-ID"] = last_event_id
        return headers

    def _stream_refused(self, session_id: str | None, status: int) -> None:
        if session_id is None or status in OVER:
            self._end(ConnectionRefused(f"the server answered {status} to a stream", status))
        else:
            log.warning("The server answered %d to the stream of session %s; load it again", status, session_id)

    async def _deliver(self, line: Line) -> None:
        await self._may_read.wait()
        if not self._ended and self._receiver is not None:
            self._receiver.lines_received([line])

    def _end(self, reason: ConnectionLost | None) -> None:
        if not self._ended:
            self._ended = True
            self._reason = reason
            self._stop()
            if self._receiver is not None:
                self._receiver.input_ended(reason)
