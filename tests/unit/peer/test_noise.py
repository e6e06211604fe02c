"""A peer whose other end prints things that are no messages, and is lost in the end."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.feed import FeedTransport

from holdfast.errors import ConnectionLost
from holdfast.peer import Peer, Routes

NOISE = [b"Loading model\xe2\x80\xa6", b"", b"\xff\xfe", b"42", b"null", b'{"level":"info"}', b"[]", b'"text"']


@pytest.mark.parametrize("answers", [True, False])
async def test_what_is_no_message_is_answered_only_by_a_peer_that_should(answers: bool) -> None:
    transport = FeedTransport()
    async with Peer(transport, Routes(), answers_noise=answers):
        await asyncio.sleep(0)
        transport.feed(b"".join(line + b"\n" for line in NOISE))
        transport.feed(b'{"jsonrpc":"2.0","id":1}\n{"jsonrpc":"2.0","id":2,"method":"nobody"}\n')
        for _ in range(20):
            await asyncio.sleep(0)
        noise = [it for it in transport.sent if b'"id":null' in it]
        assert len(noise) == (len(NOISE) - 1 if answers else 0)  # a blank line says nothing to anybody
        assert len([it for it in transport.sent if b'"id":1' in it or b'"id":2' in it]) == 2


async def test_it_is_told_once_that_no_answer_will_come_after_all_that_came_before() -> None:
    transport = FeedTransport()
    told: list[object] = []

    async def note(params: object) -> None:
        await asyncio.sleep(0)
        told.append("noted")

    routes = Routes()
    routes.notification("note", note)
    peer = Peer(transport, routes)
    peer.on_lost = told.append
    async with peer:
        await asyncio.sleep(0)
        asking = asyncio.create_task(peer.request("anything"))
        await asyncio.sleep(0)
        transport.feed(b'{"jsonrpc":"2.0","method":"note"}\n' * 2)
        transport.end()
        with pytest.raises(ConnectionLost):
            await asking
        assert told[:2] == ["noted", "noted"]
    assert len(told) == 3
    assert isinstance(told[2], ConnectionLost)
