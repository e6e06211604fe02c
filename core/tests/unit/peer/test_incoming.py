"""One request, one answer."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.feed import FeedTransport
from holdfast.jsonrpc import encode_result
from holdfast.peer import Peer, PeerLimits, Routes
from holdfast.peer.incoming import BatchAnswer, IncomingRequest

if TYPE_CHECKING:
    from msgspec import Raw


LIMIT = 1_000


class Sent:
    """Takes what is sent."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def __call__(self, encoded: bytes, *, now: bool = False) -> None:
        self.lines.append(encoded)

    @property
    def messages(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]


def test_a_request_is_answered_once_however_often_it_is_tried() -> None:
    sent = Sent()
    request = IncomingRequest(1, LIMIT, sent, None)
    request.answer(encode_result(1, "first"))
    request.answer(encode_result(1, "second"))
    request.give_up()
    assert [message["result"] for message in sent.messages] == ["first"]


def test_a_request_that_is_given_up_is_answered_as_cancelled() -> None:
    sent = Sent()
    IncomingRequest("a", LIMIT, sent, None).give_up()
    assert sent.messages == [
        {"jsonrpc": "2.0", "id": "a", "error": {"code": -32800, "message": "Request cancelled"}},
    ]


def test_the_answers_to_a_batch_leave_when_the_last_is_there() -> None:
    sent = Sent()
    batch = BatchAnswer(2, LIMIT, sent)
    batch.add(encode_result(1, "a"))
    assert sent.lines == []
    batch.add(encode_result(2, "b"))
    (array,) = sent.messages
    assert [answer["result"] for answer in array] == ["a", "b"]


@pytest.mark.parametrize("packed", [False, True], ids=["line", "batch"])
async def test_a_task_that_a_handler_left_running_does_not_hold_the_connection(packed: bool) -> None:
    """It may live as long as a session does, and that outlives connections."""
    left: list[asyncio.Task[None]] = []

    async def wait() -> None:
        await asyncio.Event().wait()

    async def begin(_params: Raw) -> None:
        left.append(asyncio.create_task(wait()))

    async def connect() -> weakref.ref[Peer]:
        routes = Routes()
        routes.request("begin", begin)
        transport = FeedTransport()
        async with Peer(transport, routes) as peer:
            await asyncio.sleep(0)
            line = b'{"jsonrpc":"2.0","id":1,"method":"begin"}'
            transport.feed(b"[%b]\n" % line if packed else line + b"\n")
            for _ in range(10):
                await asyncio.sleep(0)
            assert len(transport.sent) == 1
            return weakref.ref(peer)

    peer = await asyncio.create_task(connect())
    await asyncio.sleep(0)
    gc.collect()
    assert peer() is None
    assert not left[0].done()
    left[0].cancel()


async def test_a_cancelled_request_is_not_held_longer_than_it_takes() -> None:
    """The patience with its handler may be long; its parameters may be megabytes."""

    async def wait(_params: Raw) -> None:
        await asyncio.Event().wait()

    routes = Routes()
    routes.request("m", wait)
    transport = FeedTransport()
    async with Peer(transport, routes, limits=PeerLimits(cancel_grace=3_600)):
        await asyncio.sleep(0)
        tracemalloc.start()
        try:
            for n in range(20):
                transport.feed(b'{"jsonrpc":"2.0","id":%d,"method":"m","params":["%b"]}\n' % (n, b"x" * 1_000_000))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                transport.feed(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}\n' % n)
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(transport.sent) == 20
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert held < 5_000_000
