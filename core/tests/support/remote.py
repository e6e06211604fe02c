"""A server over the network for tests, in this process, on our own uvicorn; and ways to reach it."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from core.tests.support.acp import Client
from core.tests.support.links import PATIENCE
from core.tests.support.web_links import serving as serving_app
from holdfast.agent.port import AuthorAgent
from holdfast.client.http_transport import HttpClientTransport
from holdfast.engine import EngineLimits
from holdfast.server import Host
from holdfast.server.remote import Names, RemoteLimits, RemoteServer, Workspaces
from holdfast.store import EventWindow
from holdfast.testing.demo_agent import agent as demo
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from holdfast import Agent
    from holdfast.server.remote import RemoteRequest
    from holdfast.server.remote.door import DoorLimits
    from holdfast.transport import Transport

WAYS = ("websocket", "asgi websocket", "http")
"""How a client gets to the server."""


class ByName:
    """An authenticator of a test: the token is the name."""

    async def principal(self, request: RemoteRequest) -> str | None:
        return request.bearer


class Reply(NamedTuple):
    """An answer of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Remote:
    """A server that runs."""

    def __init__(self, server: RemoteServer, port: int) -> None:
        self.server = server
        self.port = port
        self.url = f"http://127.0.0.1:{port}/acp"
        self._transports: list[Transport] = []

    async def transport(self, way: str, token: str | None = "ada", **headers: str) -> Transport:
        """Connect in one of the `WAYS`."""
        sent = {**({} if token is None else {"Authorization": f"Bearer {token}"}), **headers}
        if way == "http":
            made: Transport = HttpClientTransport(self.url, headers=sent)
        else:
            made = await connect_websocket(self.url, headers=sent)
        self._transports.append(made)
        return made

    async def client(self, way: str = "websocket", version: int = 1, token: str = "ada", **capabilities: Any) -> Client:
        """Connect a client and let it introduce itself."""
        client = Client(await self.transport(way, token), version)
        await client.initialize(**capabilities)
        return client

    async def ask(
        self, method: str, path: str = "/acp", body: bytes | object = b"", *, token: str | None = "ada", **headers: str
    ) -> Reply:
        """Send a request as it is given; names of headers have underscores."""
        fields = {"host": f"127.0.0.1:{self.port}", "connection": "close"}
        if token is not None:
            fields["authorization"] = f"Bearer {token}"
        if body != b"":
            fields["content-type"] = "application/json"
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if method != "GET":
            fields.setdefault("content-length", str(len(data)))
        return await self.raw(method, path, fields, data)

    async def raw(self, method: str, path: str, fields: Mapping[str, str], data: bytes) -> Reply:
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return await self.bytes(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + data)

    async def bytes(self, data: bytes, *, whole: bool = True) -> Reply:
        """Send bytes on a connection of their own; return the answer, up to its end or only its beginning."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            async with asyncio.timeout(PATIENCE):
                writer.write(data)
                head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode("latin-1").strip().split("\r\n")
                named = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.read() if whole else b""
        finally:
            writer.transport.abort()
        return Reply(int(first.split()[1]), named, body)

    async def close(self) -> None:
        for transport in self._transports:
            await transport.close(0.1)


@asynccontextmanager
async def served(
    agent: Agent = demo,
    store: Path | str = ":memory:",
    *,
    way: str = "websocket",
    limits: RemoteLimits | None = None,
    window: EventWindow | None = EventWindow(),  # noqa: B008
    send_buffer: int | None = None,
    door: DoorLimits | None = None,
    tls: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncGenerator[Remote]:
    """Serve an agent in this process, perhaps with little room in the system for what is sent."""
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    host = Host(AuthorAgent(agent), store=str(store), limits=EngineLimits(keep_events=window))
    names = Names([])
    anywhere = Workspaces(["/"])
    chosen: dict[str, Any] = {"authenticator": ByName(), "limits": limits, "workspaces": anywhere, **settings}
    server = RemoteServer(host, names=names, **chosen)
    protocol: dict[str, Any] = {"ws": WebSocketsSansIOProtocol} if way == "asgi websocket" else {}
    protocol |= tls or {}
    async with serving_app(server, send_buffer=send_buffer, door=door, **protocol) as port:
        if server.names is names:
            server.names = Names([f"127.0.0.1:{port}", f"localhost:{port}"])
        remote = Remote(server, port)
        try:
            yield remote
        finally:
            await remote.close()
            async with asyncio.timeout(PATIENCE):
                await server.close()
