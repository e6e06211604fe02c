"""Our own uvicorn: its protocols, with an extension in the scope that gives the application the socket.

For a WebSocket the extension is a `WebSocketTransport` that writes many frames in one call; for HTTP it cuts a
connection whose reader has stalled. `Config(ws=…, http=…)` takes the classes; the range of uvicorn that has been tried
is in pyproject.toml. An application that finds no extension does without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from holdfast.transport.websocket import WebSocketTransport
from holdfast.transport.websocket_client import set_keepalive
from holdfast.transport.websocket_frames import RESTART

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn import Config
    from websockets.http11 import Request

    from holdfast.server.remote.door import Door, Visit

EXTENSION = "holdfast.direct"
"""The name of the extension in the scope."""

DOOR = "holdfast_door"
"""Where uvicorn's settings have the door, if there is one."""

HEAD_BYTES = 64 << 10
"""How long the target and the headers of a request may be, together…"""

HEAD_SECONDS = 15.0
"""…and how long they may take to come."""


class DirectWebSocket:
    """The extension of a WebSocket's scope: hands over the socket once the WebSocket was accepted."""

    __slots__ = ("_protocol",)

    def __init__(self, protocol: DirectWebSocketProtocol) -> None:
        self._protocol = protocol

    def take_over(
        self, *, limit: int, ping: float | None, pong: float, hold: Callable[[int], bool] | None = None
    ) -> WebSocketTransport:
        """Return a transport; from now on ASGI's `receive` and `send` see nothing of this WebSocket.

        `hold` is asked whether there is room for a message that has arrived in part.
        """
        return self._protocol.take_over(limit=limit, ping=ping, pong=pong, hold=hold)

    def claim(self, principal: str) -> bool:
        """Note whose socket it is; return False where the principal has too many."""
        visit = self._protocol.visit
        return visit is None or visit.claim(principal)

    def abort(self) -> None:
        """Cut the connection, whatever is unsent."""
        self._protocol.transport.abort()


class DirectHttp:
    """The extension of an HTTP scope."""

    __slots__ = ("_protocol",)

    def __init__(self, protocol: DirectHttpProtocol) -> None:
        self._protocol = protocol

    def claim(self, principal: str) -> bool:
        """Note whose socket it is; return False where the principal has too many."""
        visit = self._protocol.visit
        return visit is None or visit.claim(principal)

    def abort(self) -> None:
        """Cut the connection, whatever is unsent."""
        self._protocol.transport.abort()


class DirectWebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol up to the handshake, our own transport behind it."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.conn.debug = False  # or it would log the headers, and with them tokens (P10)
        self.direct: WebSocketTransport | None = None
        self.visit: Visit | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Find out whose socket it is."""
        super().connection_made(transport)
        self.visit = _visit(self.config, transport)
        if self.visit is not None:
            self.visit.is_idle = False

    def take_over(
        self, *, limit: int, ping: float | None, pong: float, hold: Callable[[int], bool] | None = None
    ) -> WebSocketTransport:
        """See `DirectWebSocket.take_over`."""
        self.stop_keepalive()
        self.direct = WebSocketTransport(self.transport, client=False, limit=limit, ping=ping, pong=pong, hold=hold)
        return self.direct

    def handle_connect(self, event: Request) -> None:
        """Put the extension into the scope."""
        super().handle_connect(event)
        if not self.close_sent:
            # The task that sees the scope has not begun yet.
            extensions = cast("dict[str, Any]", self.scope.get("extensions"))
            extensions[EXTENSION] = DirectWebSocket(self)

    async def send(self, message: Any) -> None:
        """Send; an answer that refuses a handshake completes it, or each would be logged as an error."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def data_received(self, data: bytes) -> None:
        """Give our own transport what it has to read."""
        if self.direct is None:
            super().data_received(data)
        else:
            self.direct.data_received(data)

    def resume_writing(self) -> None:
        """Tell our own transport that all is sent."""
        super().resume_writing()
        if self.direct is not None:
            self.direct.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell our own transport of the end."""
        super().connection_lost(exc)
        if self.direct is not None:
            self.direct.connection_lost(exc)

    def shutdown(self) -> None:
        """Close with a reason when the server ends."""
        if self.direct is None:
            super().shutdown()
        else:
            self.direct.farewell = (RESTART, "The server is restarting")
            self.direct.end_input()


class DirectHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with the extension in the scope, and bounds for what comes before a request is known."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self.visit: Visit | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let the system notice a peer that is gone, and wait for a request, but not for ever."""
        set_keepalive(transport)
        super().connection_made(transport)
        self.visit = _visit(self.config, transport)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._clear_deadline()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Put the extension into the scope."""
        super().on_message_begin()
        extensions: dict[str, Any] = {EXTENSION: DirectHttp(self)}
        self.scope["extensions"] = extensions
        self._head_bytes = 0
        self._set_deadline()

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._count(len(name) + len(value) + 32)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Note that a request is there."""
        self._clear_deadline()
        if self.visit is not None:
            self.visit.is_idle = False
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Note that it waits for another request."""
        if self.visit is not None:
            self.visit.is_idle = not self.pipeline
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        """Take what was read, unless it was cut off in the middle of it."""
        if not self.transport.is_closing():
            super().data_received(data)

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES:
            raise ValueError("The head of a request is too long")  # the parser makes 400 of it

    def _set_deadline(self) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _visit(config: Config, transport: asyncio.Transport) -> Visit | None:
    """Return the visit of a socket, where there is a door that it came through."""
    door: Door | None = getattr(config, DOOR, None)
    return None if door is None else door.visit_of(transport)
