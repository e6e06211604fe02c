"""Nodes that reach each other over TLS, behind a load balancer that gives every connection to the next of them."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from contextlib import ExitStack, asynccontextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.nodes import Node
from core.tests.support import postgres
from core.tests.support.acp import Client
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

pytestmark = [pytest.mark.timeout(300), pytest.mark.requirement("F4")]


def certificate(place: Path) -> tuple[Path, Path]:
    """Make a certificate that is its own authority."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    cert, key = place / "cert.pem", place / "key.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


class TlsNode(Node):
    """A node that clients and other nodes reach over TLS alone."""

    def __init__(self, place: Path, name: str, store: str, cert: Path, key: Path) -> None:
        super().__init__(place, name, store)
        self.base = self.base.replace("http:", "https:")
        self.url = f"{self.base}/acp"
        self.trust = ssl.create_default_context(cafile=str(cert))
        self._env["SSL_CERT_FILE"] = str(cert)
        self._options = (
            *("--no-auth", "--grace", "0", "--node-url", self.base),
            *("--tls-cert", str(cert), "--tls-key", str(key)),
        )

    def called(self, name: str) -> TlsNode:
        """Let clients call it by another name, too: that of the load balancer."""
        self._options = (*self._options, "--name", name)
        return self


@asynccontextmanager
async def balancer(ports: list[int]) -> AsyncGenerator[int]:
    """Pass each connection on to the next port, byte by byte; give the port to connect to."""
    turns, open_ends = cycle(ports), set[asyncio.StreamWriter]()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there = await asyncio.open_connection("127.0.0.1", next(turns))
        open_ends.update((writer, there))
        await asyncio.gather(pump(reader, there), pump(there_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for end in open_ends:
            end.close()
        await asyncio.sleep(0.1)


async def test_clients_behind_a_load_balancer_share_a_session_whose_nodes_are_linked_over_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    address = postgres.empty_database()
    nodes = [TlsNode(tmp_path, name, address, cert, key) for name in ("a", "b", "c")]
    async with balancer([node.port for node in nodes]) as port:
        with ExitStack() as stack:
            for node in nodes:
                stack.enter_context(node.called(f"127.0.0.1:{port}"))
            clients = [await _client(f"https://127.0.0.1:{port}/acp") for _ in nodes]  # each at another node
            try:
                session = await clients[0].new(str(tmp_path))
                for client in clients[1:]:
                    await client.resume(session, str(tmp_path), replayFrom={"type": "start"})
                for number, client in enumerate(clients, start=1):
                    await client.ask("session/prompt", {"sessionId": session, "prompt": _text(f"{number}")})
                    told = "".join(f"{n} " for count in range(1, number + 1) for n in range(count))
                    for other in clients:
                        await other.until(lambda other=other, told=told: other.said() == told)
            finally:
                for client in clients:
                    await client.transport.close(0.2)
    performed = (tmp_path / "performed").read_text().splitlines()
    assert performed == ["1", "2", "3"]


async def _client(url: str) -> Client:
    client = Client(await connect_websocket(url), 2)
    about: dict[str, Any] = {"info": {"name": "test", "version": "0"}, "capabilities": {"session": {"notices": {}}}}
    await client.ask("initialize", {"protocolVersion": 2, **about})
    return client


def _text(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]
