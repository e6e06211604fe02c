"""A peer at one end of a link and a test at the other, which says and hears plain bytes."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from core.tests.support.links import PATIENCE, Collector
from holdfast.peer import Peer, PeerLimits, Routes
from holdfast.transport import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from core.tests.support.links import Link
    from holdfast.transport import Transport

QUICK = PeerLimits(cancel_grace=0.02, linger=0.02, end_grace=0.02, flush=PATIENCE)
"""Limits for tests about what happens when the patience with handlers ends: soon. What was answered still arrives."""


class OtherEnd:
    """The test's end of the link."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.heard = Collector()
        self._taken = 0
        transport.open(self.heard)

    def say(self, *lines: bytes | dict[str, Any] | list[Any]) -> None:
        """Send lines, in one piece."""
        for line in lines:
            self.transport.send(line if isinstance(line, bytes) else json.dumps(line).encode())
        self.transport.flush()

    def ask(self, id_: object, method: str, params: object = None) -> None:
        """Send a request."""
        self.say({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})

    def tell(self, method: str, params: object = None) -> None:
        """Send a notification."""
        self.say({"jsonrpc": "2.0", "method": method, "params": params})

    def cancel(self, id_: object) -> None:
        self.tell("$/cancel_request", {"requestId": id_})

    async def hear(self) -> Any:
        """Wait for the next line."""
        self._taken += 1
        line = (await self.heard.get(self._taken))[-1]
        assert isinstance(line, bytes)
        return json.loads(line)

    async def hear_error(self) -> tuple[object, int]:
        """Wait for an error answer; give its id and its code."""
        answer = await self.hear()
        assert answer.keys() == {"jsonrpc", "id", "error"}, answer
        return answer["id"], answer["error"]["code"]

    async def is_alive(self) -> bool:
        """Ask for something that every peer answers: what it does not know. Fails if anything was unheard."""
        self.ask("alive?", "nobody answers this")
        return await self.hear_error() == ("alive?", -32601)


class Arrivals:
    """Counts what a peer has received, whether or not its turn has come."""

    def __init__(self, peer: Peer) -> None:
        self._count = 0
        self._news = asyncio.Event()
        peer.observe(self._see)

    def _see(self, direction: str, _line: bytes) -> None:
        if direction == "in":
            self._count += 1
            self._news.set()

    async def reach(self, count: int) -> None:
        """Wait for that many lines."""
        async with asyncio.timeout(PATIENCE):
            while self._count < count:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def talk(
    link: Link, routes: Routes | None = None, limits: PeerLimits | None = None, limit: int = MAX_LINE_BYTES
) -> AsyncGenerator[tuple[Peer, OtherEnd]]:
    """Let a peer serve one end of a link while the test holds the other."""
    async with link(limit=limit) as (near, far):
        other = OtherEnd(far)
        async with Peer(near, routes or Routes(), limits=limits) as peer:
            yield peer, other
