"""A reader that stalls has bounded bytes waiting, is dropped with a reason, and keeps nobody else waiting (H7, P7)."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.support.links import PATIENCE
from tests.support.remote import Remote, served

from holdfast.server.remote import RemoteLimits, event_streams

pytestmark = pytest.mark.requirement("H7", "P7")

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def sockets() -> int:
    """Return how many sockets this process has open."""
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found += str(entry.readlink()).startswith("socket:")
        except OSError:
            continue
    return found


async def until_fewer(than: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while sockets() >= than:  # noqa: ASYNC110  (the system tells nobody)
            await asyncio.sleep(0.02)


def deaf(remote: Remote, request: bytes) -> socket.socket:
    """Connect with little room for what comes, send a request, and never read."""
    connected = socket.socket()
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connected.connect(("127.0.0.1", remote.port))
    connected.sendall(request)
    return connected


def masked(message: object) -> bytes:
    payload = json.dumps(message).encode()
    return b"\x81\xfe" + len(payload).to_bytes(2) + bytes(4) + payload


async def test_a_websocket_that_gives_no_sign_of_life_is_closed_and_its_turn_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = RemoteLimits(ping=0.3, pong=0.3)
    with caplog.at_level(logging.INFO):
        async with served(limits=limits) as remote:
            other = await remote.client()
            session = await other.new()
            upgrade = (
                f"GET /acp HTTP/1.1\r\nhost: 127.0.0.1:{remote.port}\r\nauthorization: Bearer ada\r\n"
                "upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n"
                "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            stalled = deaf(remote, upgrade.encode())
            await asyncio.sleep(0.1)
            stalled.sendall(masked(INITIALIZE))
            resume: dict[str, Any] = {"sessionId": session, "cwd": "/project", "mcpServers": []}
            stalled.sendall(masked({"jsonrpc": "2.0", "id": 1, "method": "session/resume", "params": resume}))
            await asyncio.sleep(0.1)
            before = sockets()
            await other.prompt(session, "/stream 20000")
            await until_fewer(before)
            assert remote.server.connections.unsent < 1 << 20
            await other.prompt(session, "hello")
            stalled.close()


async def test_a_stream_of_events_that_nobody_takes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "STALL_SECONDS", 0.5)
    # Where the system had room for all of it the system would give the reader up, half a minute later.
    async with served(send_buffer=4_096) as remote:
        begun = await remote.ask("POST", body=INITIALIZE)
        connection = begun.headers["acp-connection-id"]
        head = f"host: 127.0.0.1:{remote.port}\r\nauthorization: Bearer ada\r\nacp-connection-id: {connection}\r\n"
        other = await remote.client()
        session = await other.new()
        load: dict[str, Any] = {"sessionId": session, "cwd": "/project", "mcpServers": []}
        await other.prompt(session, "/think " + "x" * 1_000_000)
        stalled = deaf(remote, f"GET /acp HTTP/1.1\r\n{head}accept: text/event-stream\r\n\r\n".encode())
        await asyncio.sleep(0.2)
        before = sockets()
        loading = {"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": load}
        posting = asyncio.ensure_future(remote.ask("POST", body=loading, acp_connection_id=connection))
        assert (await posting).status == 202
        await until_fewer(before)
        await other.prompt(session, "hello")
        stalled.close()
