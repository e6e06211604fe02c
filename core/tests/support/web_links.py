"""Linked transports over a real server and a real socket: WebSocket, directly and through ASGI, and HTTP."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from core.tests.support.links import PATIENCE, closing
from holdfast.client.http_transport import HttpClientTransport
from holdfast.server.remote.application import RemoteServer
from holdfast.server.remote.direct import EXTENSION
from holdfast.server.remote.event_streams import serve_events
from holdfast.server.remote.http_transport import HttpTransport
from holdfast.server.remote.requests import read_body, request_from, respond
from holdfast.server.remote.serving import open_door, our_uvicorn
from holdfast.transport import MAX_LINE_BYTES, Oversized, Transport
from holdfast.transport.asgi_websocket import AsgiWebSocketTransport
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from core.tests.support.links import Link
    from holdfast.server.remote.door import DoorLimits
    from holdfast.server.remote.event_streams import EventStream


@asynccontextmanager
async def serving(
    app: Any, *, send_buffer: int | None = None, door: DoorLimits | None = None, **settings: Any
) -> AsyncGenerator[int]:
    """Serve an application in this loop, perhaps with little room in the system for what is sent; yield the port."""
    server = our_uvicorn(app, **settings)
    listening = socket.create_server(("127.0.0.1", 0))
    if send_buffer is not None:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)  # each connection inherits that
    await server.startup(sockets=[])
    opened = open_door(server, listening, door)
    if isinstance(app, RemoteServer):
        app.door = opened
    try:
        yield listening.getsockname()[1]
    finally:
        opened.close()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        if server.server_state.tasks:
            await asyncio.wait(server.server_state.tasks, timeout=PATIENCE)
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await opened.wait_closed()


class _LineApplication:
    """Nothing but the server's end of a link: no protocol, no login."""

    def __init__(self, limit: int, *, direct: bool) -> None:
        self.far: asyncio.Future[Transport] = asyncio.get_running_loop().create_future()
        self._limit = limit
        self._direct = direct
        self._stream: EventStream | None = None
        self._done = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            if self._direct:
                far: Transport = scope["extensions"][EXTENSION].take_over(limit=self._limit, ping=None, pong=1.0)
            else:
                far = AsgiWebSocketTransport(receive, send, limit=self._limit)
            self.far.set_result(far)
            await self._done.wait()
        else:
            await self._http(scope, receive, send)

    def end(self) -> None:
        self._done.set()

    async def _http(self, scope: Any, receive: Any, send: Any) -> None:
        request = request_from(scope)
        if request.method == "POST":
            body = await read_body(receive, 1 << 30, PATIENCE)
            if not self.far.done():
                transport = HttpTransport(lambda _: self._stream, limit=self._limit)
                self._stream = transport.add_stream()
                self.far.set_result(transport)
                await respond(send, 200, b"", [("acp-connection-id", "only")])
                return
            transport = self.far.result()
            assert isinstance(transport, HttpTransport)
            line = body if len(body) <= self._limit else Oversized.of(body, self._limit)
            await transport.deliver(line)
            await respond(send, 202)
        elif request.method == "GET":
            assert self._stream is not None
            direct = scope["extensions"][EXTENSION]
            await serve_events(self._stream, receive, send, abort=direct.abort)
        else:
            transport = self.far.result()
            assert isinstance(transport, HttpTransport)
            transport.end_input()
            await respond(send, 202)


def websocket_link(*, direct: bool = True, turned: bool = False) -> Link:
    """Return what links two ends of a WebSocket; `turned`, the server's is the near one."""

    @asynccontextmanager
    async def link(limit: int = MAX_LINE_BYTES) -> AsyncGenerator[tuple[Transport, Transport]]:
        app = _LineApplication(limit, direct=direct)
        async with serving(app, ws_max_size=1 << 30) as port:
            client = await connect_websocket(f"ws://127.0.0.1:{port}/", limit=limit, ping=None)
            try:
                async with asyncio.timeout(PATIENCE):
                    server = await app.far
                async with closing(client, server):
                    yield (server, client) if turned else (client, server)
            finally:
                app.end()

    return link


def http_link(*, turned: bool = False) -> Link:
    """Return what links two ends of a connection over HTTP."""

    @asynccontextmanager
    async def link(limit: int = MAX_LINE_BYTES) -> AsyncGenerator[tuple[Transport, Transport]]:
        app = _LineApplication(limit, direct=True)
        async with serving(app) as port:
            client = HttpClientTransport(f"http://127.0.0.1:{port}/", limit=limit)
            client.send(b"hello")
            async with asyncio.timeout(PATIENCE):
                server = await app.far
            async with closing(client, server):
                yield (server, client) if turned else (client, server)

    return link


WEB_LINKS: dict[str, Link] = {
    "websocket": websocket_link(),
    "websocket turned": websocket_link(turned=True),
    "asgi websocket": websocket_link(direct=False),
    "asgi websocket turned": websocket_link(direct=False, turned=True),
    "http": http_link(),
    "http turned": http_link(turned=True),
}
