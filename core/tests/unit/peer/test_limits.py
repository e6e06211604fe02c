"""How much a peer takes before it stops reading (P7)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.support.feed import FeedTransport
from holdfast.peer import Peer, PeerLimits, Routes

if TYPE_CHECKING:
    from msgspec import Raw

pytestmark = pytest.mark.requirement("P7")

UNREAD = 256 << 10
CHUNK = 16 << 10


@pytest.mark.parametrize(
    "line",
    [
        b"1",
        b"{",
        b'{"jsonrpc":"2.0","method":"n"}',
        b'{"jsonrpc":"2.0","id":1,"method":"n"}',
        b"[1,1,1,1]",
        b"[" + b"1," * 999 + b"1]",
        b"x" * 10_000,
    ],
)
async def test_reading_stops_when_what_waits_costs_too_much_however_short_its_lines(line: bytes) -> None:
    """A line of one byte costs two hundred when it waits; four million of them would fill the memory."""
    go = asyncio.Event()

    async def block(_params: Raw) -> None:
        await go.wait()

    routes = Routes()
    routes.notification("block", block)
    transport = FeedTransport()
    async with Peer(transport, routes, limits=PeerLimits(unread=UNREAD)):
        await asyncio.sleep(0)
        transport.feed(b'{"jsonrpc":"2.0","method":"block"}\n')
        await asyncio.sleep(0)
        chunk = (line + b"\n") * (CHUNK // len(line))
        chunks = 0
        while not transport.paused:
            transport.feed(chunk)
            chunks += 1
            assert chunks * CHUNK <= 2 * UNREAD
        frames = chunk.count(b"\n") + chunk.count(b",")
        assert chunks * frames * 100 < 2 * UNREAD + frames * 100
        assert transport.paused
        go.set()
        async with asyncio.timeout(40):
            await transport.resumed.wait()


async def test_reading_goes_on_when_all_that_waited_was_looked_at() -> None:
    told = 0

    async def tell(_params: Raw) -> None:
        nonlocal told
        told += 1

    routes = Routes()
    routes.notification("n", tell)
    transport = FeedTransport()
    async with Peer(transport, routes, limits=PeerLimits(unread=10_000)):
        await asyncio.sleep(0)
        for _ in range(5):
            transport.feed(b'{"jsonrpc":"2.0","method":"n"}\n' * 100)
            assert transport.paused
            async with asyncio.timeout(40):
                await transport.resumed.wait()
    assert told == 500
