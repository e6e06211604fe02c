"""Feeding groups of lines to a peer, and holding what it says against what it owes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from core.tests.support.feed import FeedTransport
from core.tests.support.judged import compare, judged_routes
from core.tests.support.oracle import RESULT, Verdict, answer, judge
from core.tests.torture.inputs import LINE_LIMIT, Group
from holdfast.errors import HoldfastError
from holdfast.peer import Peer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgspec import Raw

ASKED = 3
"""Before each group the peer itself asks this many things, so that answers in the group meet somebody who waits."""

PATIENCE = 40.0

_ALIVE = Verdict(answer("alive?", RESULT))
_ALIVE_LINE = b'{"jsonrpc":"2.0","id":"alive?","method":"echo"}\n'
_ALIVE_ANSWER = b'{"jsonrpc":"2.0","id":"alive?","result":{}}'


class _Watched(FeedTransport):
    """Notes when the peer says that it is alive."""

    def __init__(self) -> None:
        super().__init__(LINE_LIMIT)
        self.alive = asyncio.Event()

    def send(self, line: bytes) -> None:
        self.sent.append(line)
        if line == _ALIVE_ANSWER:
            self.alive.set()


class Trial:
    """One peer and its life: any number of groups, then the end of its input."""

    def __init__(self) -> None:
        self.transport = _Watched()
        routes = judged_routes()
        routes.urgent_notification("urgent", _be_told)
        self._peer = Peer(self.transport, routes)
        self._life = asyncio.ensure_future(self._peer.run())

    async def put(self, number: int) -> tuple[Group, str]:
        """Try one group; say what was wrong, if anything."""
        asked = [asyncio.ensure_future(self._peer.request("ask")) for _ in range(ASKED)]
        await asyncio.sleep(0)
        group = Group(number, [line[22 : line.index(b",", 22)] for line in self.transport.sent])
        self.transport.sent.clear()
        wrong = await self.feed(group.chunks, group.lines, group.known)
        await self._settle(asked)
        return group, wrong

    async def feed(self, chunks: Sequence[bytes], lines: Sequence[bytes], known: dict[bytes, Verdict]) -> str:
        """Let bytes arrive and compare what comes back with what the lines in them are owed."""
        sent = self.transport.sent
        for at, chunk in enumerate(chunks):
            self.transport.feed(chunk)
            if at & 1:
                await asyncio.sleep(0)
        self.transport.alive.clear()
        self.transport.feed(_ALIVE_LINE)
        try:
            async with asyncio.timeout(PATIENCE):
                await self.transport.alive.wait()
        except TimeoutError:
            return "it does not answer any more"
        for _ in range(4):  # one that came before and waits a tick, or is being cancelled, may answer after it
            await asyncio.sleep(0)
        try:
            wrong = compare([*(known.get(line) or judge(line) for line in lines), _ALIVE], sent)
        except (AssertionError, ValueError, KeyError, TypeError) as e:
            wrong = f"it said what is no answer: {e!r}"
        sent.clear()
        return wrong

    async def _settle(self, asked: Sequence[asyncio.Future[Raw]]) -> None:
        for answer_ in asked:
            answer_.cancel()
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(outcome, Exception) and not isinstance(outcome, HoldfastError):
                raise outcome
        self.transport.sent.clear()

    async def end(self, last: bytes) -> str:
        """End the input in the middle of a line; the peer must answer it and be done."""
        self.transport.feed(last)
        self.transport.end()
        await self._life
        return compare([judge(last)], self.transport.sent)


def _be_told(_params: Raw) -> None: ...


async def shrink(group: Group) -> list[bytes]:
    """Leave out lines one by one as long as what is left still fails by itself."""
    lines = list(group.lines)
    at = 0
    while at < len(lines):
        fewer = lines[:at] + lines[at + 1 :]
        trial = Trial()
        await asyncio.sleep(0)
        if await trial.feed([line + b"\n" for line in fewer], fewer, group.known):
            lines = fewer
        else:
            at += 1
        await trial.end(b"")
    return lines
