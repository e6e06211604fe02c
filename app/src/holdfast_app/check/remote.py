"""A remote agent as a target: each start is a connection over its WebSocket; `Endpoint` takes plain HTTP requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.client.http_requests import HttpRequests
from holdfast.errors import ConnectionRefused, UsageError
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.client.http_requests import Answer
    from holdfast.errors import ConnectionLost
    from holdfast.transport import Line
    from holdfast.transport.websocket import WebSocketTransport
    from holdfast_app.check.target import Link

MAX_LINE_BYTES = 64 << 20


class Endpoint:
    """The address of a remote agent, for single requests."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url
        self._token = token

    @property
    def has_token(self) -> bool:
        """Whether there is a token."""
        return self._token is not None

    async def post(
        self,
        params: object,
        *,
        method: str = "initialize",
        token: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """POST a request; without the token if `token` is False."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **(headers or {})}
        if token and self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        return await HttpRequests(self._url, {}, None).post(body, {**sent, "Connection": "close"})


class UrlTarget:
    """A remote agent, by its address."""

    def __init__(self, url: str, token: str | None) -> None:
        self.name = url
        self.endpoint: Endpoint = Endpoint(url, token)
        self._token = token

    async def start(self, cwd: str) -> Link:
        """Connect; raise `UsageError` where nobody is there or nobody is let in."""
        del cwd
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        try:
            return SocketLink(await connect_websocket(self.name, headers=headers, limit=MAX_LINE_BYTES))
        except ConnectionRefused as e:
            given = "this token was not taken" if self._token is not None else "give its token by --token-file"
            raise UsageError(f"{e}: {given}" if e.status in (401, 403) else str(e)) from None

    def sweep(self) -> None:
        """Do nothing: what runs over there is not ours."""


class SocketLink:
    """A connection to a remote agent."""

    is_process = False
    stderr = ""
    children: frozenset[int] = frozenset()

    def __init__(self, transport: WebSocketTransport) -> None:
        self._transport = transport
        self._on_line: Callable[[bytes], None] = _ignore
        self._on_end: Callable[[], None] = _nothing

    def open(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Begin to read."""
        self._on_line, self._on_end = on_line, on_end
        self._transport.open(self)

    def lines_received(self, lines: Sequence[Line]) -> None:
        """Take what arrived."""
        for line in lines:
            if isinstance(line, bytes):
                self._on_line(line)

    def input_ended(self, reason: ConnectionLost | None) -> None:
        """Note the end."""
        del reason
        self._on_end()

    def send(self, data: bytes) -> None:
        """Send lines, each in a frame of its own."""
        for line in data.removesuffix(b"\n").split(b"\n"):
            self._transport.send(line)

    async def kill(self, *, alone: bool = False) -> None:
        """Cut the connection: a remote agent cannot be killed from here."""
        del alone
        await self._transport.close(0.0)

    async def close(self, patience: float) -> int | None:
        """Close the connection."""
        await self._transport.close(min(patience, 1.0))
        return 0

    async def dispose(self) -> None:
        """Close the connection."""
        await self._transport.close(0.1)


def _ignore(line: bytes) -> Any:
    del line


def _nothing() -> None: ...
