"""One request, one answer."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from typing import TYPE_CHECKING

from tests.support.feed import FeedTransport

from holdfast.jsonrpc import Request, encode_result
from holdfast.peer import Limits, Peer, Routes
from holdfast.peer.calls import BatchAnswer, Call

if TYPE_CHECKING:
    from msgspec import Raw


def test_a_call_is_answered_once_however_often_it_is_tried() -> None:
    sent: list[bytes] = []
    call = Call(Request(1, "m", None), sent.append)
    call.answer(encode_result(1, "first"))
    call.answer(encode_result(1, "second"))
    call.give_up()
    assert [json.loads(line)["result"] for line in sent] == ["first"]


def test_a_call_that_is_given_up_is_answered_as_cancelled() -> None:
    sent: list[bytes] = []
    Call(Request("a", "m", None), sent.append).give_up()
    assert json.loads(sent[0]) == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -32800, "message": "Request cancelled"},
    }


def test_the_answers_to_a_batch_leave_when_the_last_is_there() -> None:
    sent: list[bytes] = []
    batch = BatchAnswer(2, sent.append)
    batch.add(encode_result(1, "a"))
    assert sent == []
    batch.add(encode_result(2, "b"))
    assert [it["result"] for it in json.loads(sent[0])] == ["a", "b"]


async def test_a_cancelled_request_is_not_held_longer_than_it_takes() -> None:
    """The patience with its handler may be long; its parameters may be megabytes."""

    async def wait(_params: Raw) -> None:
        await asyncio.Event().wait()

    routes = Routes()
    routes.request("m", wait)
    transport = FeedTransport()
    async with Peer(transport, routes, limits=Limits(cancel_grace=3_600)):
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
