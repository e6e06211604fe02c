"""A reader that stalls has bounded bytes waiting, is dropped with a reason, and keeps nobody else waiting (H7, P7)."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from pathlib import Path
from typing import Any

import pytest

from core.tests.support.links import PATIENCE
from core.tests.support.remote import Remote, served
from holdfast.server.remote import RemoteLimits, event_streams

pytestmark = pytest.mark.requirement("H7", "P7")

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def is_kept(remote: Remote, client: socket.socket) -> bool:
    """Whether the server has not closed its end of a connection."""
    ends = f"0100007F:{remote.port:04X} 0100007F:{client.getsockname()[1]:04X} 01 "  # established
    return ends in Path("/proc/self/net/tcp").read_text()


async def until_given_up(remote: Remote, client: socket.socket) -> None:
    async with asyncio.timeout(PATIENCE):
        while is_kept(remote, client):  # noqa: ASYNC110  (the system tells nobody)
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
            other = await remote.client("http")  # of whom no sign of life is asked, however slow this machine is
            session = await other.new()
            upgrade = (
                f"GET /acp HTTP/1.1\r\nhost: 127.0.0.1:{remote.port}\r\nauthorization: Bearer ada\r\n"
                "upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n"
                "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            stalled = deaf(remote, upgrade.encode())
            assert is_kept(remote, stalled)
            async with asyncio.timeout(PATIENCE):
                while len(remote.server.connections) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            stalled.sendall(masked(INITIALIZE))
            resume: dict[str, Any] = {"sessionId": session, "cwd": "/project", "mcpServers": []}
            stalled.sendall(masked({"jsonrpc": "2.0", "id": 1, "method": "session/resume", "params": resume}))
            await other.prompt(session, "/stream 20000")
            await until_given_up(remote, stalled)
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
        assert is_kept(remote, stalled)
        loading = {"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": load}
        posting = asyncio.ensure_future(remote.ask("POST", body=loading, acp_connection_id=connection))
        assert (await posting).status == 202
        await until_given_up(remote, stalled)
        await other.prompt(session, "hello")
        stalled.close()
