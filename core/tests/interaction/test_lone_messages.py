"""A message that nothing is before takes a short way; it must not wear the peer out, nor let in more than may come."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.support.talk import talk
from holdfast.peer import PeerLimits, Routes

if TYPE_CHECKING:
    from msgspec import Raw

    from core.tests.support.links import Link


async def echo(_params: Raw) -> object:
    return {}


def echoing() -> Routes:
    routes = Routes()
    routes.request("echo", echo)
    return routes


@pytest.mark.requirement("A4")
async def test_requests_one_at_a_time_never_fill_what_may_wait(link: Link) -> None:
    async with talk(link, echoing(), limits=PeerLimits(unread=20_000)) as (_, other):
        for number in range(300):  # far more than may wait, but nothing ever waits
            other.ask(number, "echo")
            assert (await other.hear())["id"] == number


async def test_an_answer_longer_than_what_may_wait_does_not_stop_the_reading(link: Link) -> None:
    async with talk(link, echoing(), limits=PeerLimits(unread=20_000)) as (peer, other):
        asked = asyncio.create_task(peer.request("big", result=str))
        other.say({"jsonrpc": "2.0", "id": (await other.hear())["id"], "result": "x" * 50_000})
        async with asyncio.timeout(30):
            assert len(await asked) == 50_000
        other.ask(1, "echo")
        assert (await other.hear())["id"] == 1


async def test_many_requests_in_one_piece_are_begun_one_after_the_other(link: Link) -> None:
    limits = PeerLimits(requests=4)
    async with talk(link, echoing(), limits=limits) as (_, other):
        other.say(*({"jsonrpc": "2.0", "id": number, "method": "echo"} for number in range(100)))
        answers = [await other.hear() for _ in range(100)]
    assert sorted(answer["id"] for answer in answers) == list(range(100))
    assert all(answer.get("result") == {} for answer in answers)
