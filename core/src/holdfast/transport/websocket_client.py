"""The client's end of a WebSocket: connect, shake hands, and hand over a `WebSocketTransport`."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.errors import ConnectionRefused, UsageError
from holdfast.transport.lines import MAX_LINE_BYTES
from holdfast.transport.reaching import unreachable
from holdfast.transport.websocket import PING_SECONDS, PONG_SECONDS, WebSocketTransport

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

HEAD_BYTES = 64 << 10
"""The answer to a handshake may be so long, what is quoted of a refusal among it."""

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


async def connect_websocket(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    limit: int = MAX_LINE_BYTES,
    tls: ssl.SSLContext | None = None,
    ping: float | None = PING_SECONDS,
    pong: float = PONG_SECONDS,
) -> WebSocketTransport:
    """Connect to ``ws://`` or ``wss://`` (``http://`` and ``https://`` mean the same).

    Raises `ConnectionRefused` where the server is not there or does not want us, `UsageError` for another kind of URL.
    """
    parts = urlsplit(url)
    secure = parts.scheme in ("wss", "https")
    if parts.hostname is None or (not secure and parts.scheme not in ("ws", "http")):
        raise UsageError(f"{url!r} is no address of a server; write https://host/acp, or wss://host/acp")
    if secure and tls is None:
        import ssl as ssl_module  # noqa: PLC0415  (loaded for TLS alone)

        tls = ssl_module.create_default_context()
    port = parts.port or (443 if secure else 80)
    key = base64.b64encode(os.urandom(16))
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    asked = {"Host": host, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
             "Sec-WebSocket-Key": key.decode(), **(headers or {})}  # fmt: skip
    if any("\r" in value or "\n" in value for value in (target, *asked.values())):
        raise UsageError("a header must not hold a line break")
    request = f"GET {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in asked.items()) + "\r\n"
    handshake = _Handshake(request.encode(), key, limit, (ping, pong))
    try:
        await asyncio.get_running_loop().create_connection(
            lambda: handshake, parts.hostname, port, ssl=tls if secure else None
        )
    except OSError as e:
        raise unreachable(host, e) from None
    return await handshake.shake_hands()


class _Handshake(asyncio.Protocol):
    """Sends the request and reads the answer; then passes everything on to the transport it made."""

    def __init__(self, request: bytes, key: bytes, limit: int, signs: tuple[float | None, float]) -> None:
        self._request = request
        self._accept = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
        self._limit = limit
        self._ping, self._pong = signs
        self._answer = bytearray()
        self._stream: asyncio.Transport | None = None
        self._websocket: WebSocketTransport | None = None
        self._done: asyncio.Future[WebSocketTransport] = asyncio.get_running_loop().create_future()

    async def shake_hands(self) -> WebSocketTransport:
        try:
            return await self._done
        except BaseException:
            if self._stream is not None:
                self._stream.abort()
            raise

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._stream = transport
        set_keepalive(transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._websocket is not None:
            self._websocket.data_received(data)
            return
        self._answer += data
        end = self._answer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._answer) > HEAD_BYTES:
                self._fail("the answer to the handshake does not end")
            return
        head, rest = bytes(self._answer[:end]), bytes(self._answer[end + 4 :])
        status, fields = _parsed(head)
        if status != 101:
            self._refused(status, fields, rest)
        elif fields.get("sec-websocket-accept", "").encode() != self._accept:
            self._fail("the server does not speak WebSocket")
        elif not self._done.done():
            assert self._stream is not None
            self._websocket = WebSocketTransport(
                self._stream, client=True, limit=self._limit, ping=self._ping, pong=self._pong
            )
            self._websocket.headers = fields
            self._done.set_result(self._websocket)
            if rest:
                self._websocket.data_received_early(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._websocket is not None:
            self._websocket.connection_lost(exc)
        else:
            self._fail("the server closed the connection during the handshake")

    def resume_writing(self) -> None:
        if self._websocket is not None:
            self._websocket.resume_writing()

    def _refused(self, status: int, fields: dict[str, str], body: bytes) -> None:
        said = body.decode(errors="replace").strip()[:500]
        self._fail(f"the server answered {status}" + (f": {said}" if said else ""), status, fields)

    def _fail(self, reason: str, status: int | None = None, fields: dict[str, str] | None = None) -> None:
        if not self._done.done():
            self._done.set_exception(ConnectionRefused(reason, status, fields))


def _parsed(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    status = int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0
    fields = (line.partition(":") for line in lines)
    return status, {name.strip().lower(): value.strip() for name, _, value in fields}


def set_keepalive(transport: asyncio.BaseTransport, seconds: int = 30) -> None:
    """Let the system notice a peer that is gone, where it can: one that answers no probe, or takes nothing."""
    import socket  # noqa: PLC0415

    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    settings = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": seconds * 1_000}
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in settings.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
