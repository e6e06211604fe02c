"""A peer whose other end prints things that are no messages, and is lost in the end."""

from __future__ import annotations

import asyncio
import logging

import pytest

from core.tests.support.feed import FeedTransport
from holdfast.errors import ConnectionLost
from holdfast.peer import DroppedLine, Peer, Routes

NOISE = [b"Loading model\xe2\x80\xa6", b"", b"\xff\xfe", b"42", b"null", b'{"level":"info"}', b"[]", b'"text"']

LOST = [
    b'{"jsonrpc":"2.0","method":"update","params":["%b"]}' % (b"x" * 1_000),
    b'{"result":"%b","id":{"no":"id"}}' % (b"x" * 1_000),
    b'{"result":1}',
]
"""A notification and a response that are too long, and a response to nobody."""


@pytest.mark.parametrize("answers", [True, False])
async def test_what_is_no_message_is_answered_only_by_a_peer_that_should(answers: bool) -> None:
    transport = FeedTransport()
    async with Peer(transport, Routes(), answers_noise=answers):
        await asyncio.sleep(0)
        transport.feed(b"".join(line + b"\n" for line in NOISE))
        transport.feed(b'{"jsonrpc":"2.0","id":1}\n{"jsonrpc":"2.0","id":2,"method":"nobody"}\n')
        for _ in range(20):
            await asyncio.sleep(0)
        noise = [line for line in transport.sent if b'"id":null' in line]
        assert len(noise) == (len(NOISE) - 1 if answers else 0)  # a blank line says nothing to anybody
        assert len([line for line in transport.sent if b'"id":1' in line or b'"id":2' in line]) == 2


@pytest.mark.requirement("A4")
async def test_whoever_listens_is_told_of_every_line_that_is_dropped_and_of_no_other() -> None:
    transport = FeedTransport(limit=100)
    dropped: list[DroppedLine] = []
    peer = Peer(transport, Routes(), answers_noise=False)
    peer.on_dropped_line = dropped.append
    async with peer:
        await asyncio.sleep(0)
        for line in NOISE:
            transport.feed(line + b"\n")
        for line in LOST:
            transport.feed(line + b"\n")
        handled = [
            b'{"jsonrpc":"2.0","method":"nobody"}',
            b'{"jsonrpc":"2.0","id":1,"method":"nobody"}',
            b'{"jsonrpc":"2.0","id":2,"method":"nobody","params":["%b"]}' % (b"x" * 1_000),
            b'{"jsonrpc":"2.0","id":3,"result":1}',
            b'{"jsonrpc":"2.0","id":4,"result":"%b"}' % (b"x" * 1_000),
        ]
        transport.feed(b"".join(line + b"\n" for line in handled))
        for _ in range(20):
            await asyncio.sleep(0)
    assert [line.size for line in dropped] == [len(line) for line in NOISE + LOST if line]
    reasons = [line.reason for line in dropped]
    assert dropped[0].head == NOISE[0]
    assert "UTF-8" in reasons[1]
    assert "100 bytes" in reasons[-3]
    assert "100 bytes" in reasons[-2]
    assert [line.was_message for line in dropped] == [*([False] * (len(dropped) - 3)), True, True, True]
    assert all(len(line.head) <= 4_096 for line in dropped)


@pytest.mark.requirement("A4")
async def test_an_endless_line_is_told_of_with_its_whole_size() -> None:
    transport = FeedTransport(limit=10_000)
    dropped: list[DroppedLine] = []
    peer = Peer(transport, Routes(), answers_noise=False)
    peer.on_dropped_line = dropped.append
    async with peer:
        await asyncio.sleep(0)
        for _ in range(1_000):
            transport.feed(b"x" * 1_000)
        transport.feed(b"\n")
    assert [line.size for line in dropped] == [1_000_000]


async def test_whoever_fails_when_told_of_a_dropped_line_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: DroppedLine) -> None:
        raise RuntimeError("it failed")

    transport = FeedTransport()
    peer = Peer(transport, Routes(), answers_noise=False)
    peer.on_dropped_line = fail
    async with peer:
        await asyncio.sleep(0)
        transport.feed(b'noise\n{"jsonrpc":"2.0","id":1,"method":"nobody"}\n')
        for _ in range(10):
            await asyncio.sleep(0)
    assert len(transport.sent) == 1
    assert "it failed" in caplog.text


async def test_a_dropped_line_that_looks_like_a_message_is_a_warning_where_nobody_listens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    transport = FeedTransport(limit=100)
    async with Peer(transport, Routes(), answers_noise=False):
        await asyncio.sleep(0)
        for line in [b"npm notice", b'{"level":"info"}', LOST[0]]:
            transport.feed(line + b"\n")
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "WARNING"]
    assert "npm notice" in caplog.text


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
