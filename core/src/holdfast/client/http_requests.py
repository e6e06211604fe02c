"""HTTP/1.1 requests to one server: POST and DELETE on a connection that is kept, GET on one of its own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import h11

from holdfast.errors import ConnectionLost, UsageError
from holdfast.transport.reaching import unreachable

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

READ_BYTES = 64 << 10

ANSWER_BYTES = 64 << 20
"""The longest body of an answer that is read."""


class Answer(NamedTuple):
    """A whole answer; the names of its headers are in small letters."""

    status: int
    headers: dict[str, str]
    body: bytes


class HttpRequests:
    """Requests to one URL, with the same headers each time."""

    def __init__(self, url: str, headers: Mapping[str, str], tls: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme in ("https", "wss")
        if parts.hostname is None or (not self._secure and parts.scheme not in ("http", "ws")):
            raise UsageError(f"{url!r} is no address of a server; write https://host/acp")
        self._name = parts.hostname
        self._port = parts.port or (443 if self._secure else 80)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"Host": parts.netloc.rpartition("@")[2], **headers}
        self._tls = tls
        self._kept: _Exchange | None = None

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """POST a body. Raise `ConnectionLost` where the server does not answer."""
        return await self._ask("POST", headers, body)

    async def delete(self, headers: Mapping[str, str]) -> Answer:
        """Send DELETE."""
        return await self._ask("DELETE", headers, b"")

    async def _ask(self, method: str, headers: Mapping[str, str], body: bytes) -> Answer:
        kept, self._kept = self._kept, None
        exchange = kept or await self._connect()
        try:
            try:
                answer = await exchange.ask(method, self._target, {**self._headers, **headers}, body)
            except ConnectionLost:
                if kept is None or exchange.answered:
                    raise
                # The server closed a connection that was idle, before it saw the request.
                exchange.close()
                exchange = await self._connect()
                answer = await exchange.ask(method, self._target, {**self._headers, **headers}, body)
        except BaseException:
            exchange.close()
            raise
        if exchange.reuse():
            self._kept = exchange
        else:
            exchange.close()
        return answer

    @asynccontextmanager
    async def get(self, headers: Mapping[str, str]) -> AsyncGenerator[OpenResponse]:
        """GET; the body is read piece by piece."""
        exchange = await self._connect()
        try:
            await exchange.send("GET", self._target, {**self._headers, **headers}, b"")
            status, _ = await exchange.head()
            yield OpenResponse(status, exchange)
        finally:
            exchange.close()

    async def close(self) -> None:
        """Close the connection that was kept."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    async def _connect(self) -> _Exchange:
        if self._secure and self._tls is None:
            import ssl  # noqa: PLC0415

            self._tls = ssl.create_default_context()
        try:
            reader, writer = await asyncio.open_connection(
                self._name, self._port, ssl=self._tls if self._secure else None, limit=READ_BYTES
            )
        except OSError as e:
            raise unreachable(self._name, e) from None
        return _Exchange(reader, writer)


class OpenResponse:
    """An answer whose body is still coming: iterate over it."""

    def __init__(self, status: int, exchange: _Exchange) -> None:
        self.status = status
        self._exchange = exchange

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._exchange.body()


class _Exchange:
    """Requests and answers on one connection, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.answered: bool = False
        """Whether anything came back for the last request."""
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=READ_BYTES)

    async def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        await self.send(method, target, headers, body)
        status, fields = await self.head()
        pieces: list[bytes] = []
        size = 0
        async for piece in self.body():
            pieces.append(piece)
            size += len(piece)
            if size > ANSWER_BYTES:
                raise ConnectionLost("the server's answer is too long")
        return Answer(status, fields, b"".join(pieces))

    async def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        fields = [*headers.items(), *([("Content-Length", str(len(body)))] if method != "GET" else [])]
        self.answered = False
        try:
            self._write(h11.Request(method=method, target=target, headers=fields))
            if body:
                self._write(h11.Data(data=body))
            self._write(h11.EndOfMessage())
            await self._writer.drain()
        except h11.LocalProtocolError as e:
            raise UsageError(f"this cannot be sent: {e}") from None
        except OSError as e:
            raise ConnectionLost(f"the connection was lost: {e}") from None

    def _write(self, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)

    async def head(self) -> tuple[int, dict[str, str]]:
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                return event.status_code, {name.decode(): value.decode("latin-1") for name, value in event.headers}

    async def body(self) -> AsyncIterator[bytes]:
        while not isinstance(event := await self._next(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                yield bytes(event.data)

    async def _next(self) -> h11.Event:
        while True:
            try:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    data = await self._reader.read(READ_BYTES)
                    self.answered = self.answered or bool(data)
                    self._http.receive_data(data)
                    continue
            except (OSError, h11.RemoteProtocolError) as e:
                raise ConnectionLost(f"the connection was lost: {e}") from None
            if isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
                raise ConnectionLost("the server closed the connection")
            assert not isinstance(event, type)
            return event

    def reuse(self) -> bool:
        """Make ready for the next request; return whether the connection can be used again."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            return not self._reader.at_eof()
        return False

    def close(self) -> None:
        self._writer.transport.abort()
