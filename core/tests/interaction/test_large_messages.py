"""No line of ours is longer than the limit: what would be becomes an error where it is made (A4)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.links import PATIENCE
from core.tests.support.talk import OtherEnd, talk
from holdfast.errors import InvalidParams, MessageTooLarge, RequestError
from holdfast.peer import Routes

if TYPE_CHECKING:
    from msgspec import Raw

    from core.tests.support.links import Link

pytestmark = pytest.mark.requirement("A4")

LIMIT = 10_000
INTERNAL_ERROR = -32603


async def text(params: list[int]) -> str:
    return "x" * params[0]


async def refuse(params: list[int]) -> None:
    raise InvalidParams("no", "x" * params[0])


def talking() -> Routes:
    routes = Routes()
    routes.request("text", text, list[int])
    routes.request("refuse", refuse, list[int])
    return routes


def request(id_: object, size: int, method: str = "text") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": [size]}


def sizes(other: OtherEnd) -> list[int]:
    """Return how long the lines are that were heard; complain of one over the limit."""
    assert all(isinstance(line, bytes) for line in other.heard.lines), "a line over the limit"
    return [len(line) for line in other.heard.lines]


def overhead(id_: int) -> int:
    return len(b'{"jsonrpc":"2.0","id":%d,"result":""}' % id_)


async def test_an_answer_may_be_as_long_as_a_line_and_no_longer(link: Link) -> None:
    async with talk(link, talking(), limit=LIMIT) as (peer, other):
        assert peer.max_line == LIMIT
        longest = LIMIT - overhead(1)
        other.say(request(1, longest))
        assert len((await other.hear())["result"]) == longest
        other.say(request(2, longest + 1))
        answer = await other.hear()
        assert (answer["id"], answer["error"]["code"]) == (2, INTERNAL_ERROR)
        assert "too large" in answer["error"]["message"]
        assert str(LIMIT) in answer["error"]["message"]
        assert max(sizes(other)) == LIMIT
        assert await other.is_alive()


async def test_an_error_whose_data_is_too_large_goes_out_as_another_error(link: Link) -> None:
    async with talk(link, talking(), limit=LIMIT) as (_, other):
        other.say(request(1, LIMIT, "refuse"))
        assert await other.hear_error() == (1, INTERNAL_ERROR)
        assert await other.is_alive()
        sizes(other)


async def test_an_answer_whose_id_alone_fills_a_line_goes_out_without_it(link: Link) -> None:
    async with talk(link, talking(), limit=LIMIT) as (_, other):
        id_ = "i" * (LIMIT - len('{"jsonrpc":"2.0","id":"","method":"m"}'))
        other.say(b'{"jsonrpc":"2.0","id":"%b","method":"m"}' % id_.encode())
        assert await other.hear_error() == (None, INTERNAL_ERROR)
        other.say(b'{"jsonrpc":"2.0","id":"%b","method":3}' % id_.encode())
        assert (await other.hear())["id"] is None
        assert await other.is_alive()
        sizes(other)


async def test_answers_that_fit_one_by_one_but_not_in_one_array_go_out_in_several(link: Link) -> None:
    async with talk(link, talking(), limit=LIMIT) as (_, other):
        other.say([request(n, 3_000) for n in range(10)] + [None])
        arrays = [await other.hear() for _ in range(4)]
        assert sorted([answer["id"] for array in arrays for answer in array], key=repr) == [*range(10), None]
        assert all(len(answer["result"]) == 3_000 for array in arrays for answer in array if "result" in answer)
        assert await other.is_alive()
        sizes(other)


async def test_an_answer_in_a_batch_has_the_brackets_around_it(link: Link) -> None:
    async with talk(link, talking(), limit=LIMIT) as (_, other):
        longest = LIMIT - 2 - overhead(1)
        other.say([request(1, longest)])
        assert len((await other.hear())[0]["result"]) == longest
        other.say([request(1, longest + 1), request(2, LIMIT, "refuse")])
        answers = await other.hear()
        codes = {answer["id"]: answer["error"]["code"] for answer in answers}
        assert codes == {1: INTERNAL_ERROR, 2: INTERNAL_ERROR}
        assert max(sizes(other)) == LIMIT
        assert await other.is_alive()


async def test_a_batch_whose_refusals_alone_fill_a_line_is_answered_entry_by_entry(link: Link) -> None:
    async with talk(link, limit=LIMIT) as (_, other):
        other.say(b"[" + b"1," * 999 + b"1]")
        answered = 0
        while answered < 1_000:
            answered += len(await other.hear())
        assert answered == 1_000
        sizes(other)
        assert await other.is_alive()


async def test_a_notification_that_is_too_large_is_refused_where_it_is_made(link: Link) -> None:
    async with talk(link, limit=LIMIT) as (peer, other):
        with pytest.raises(MessageTooLarge) as caught:
            peer.notify("told", "x" * LIMIT)
        assert caught.value.limit == LIMIT < caught.value.size
        peer.notify("told", "x")
        assert (await other.hear())["params"] == "x"


async def test_a_request_that_is_too_large_is_refused_where_it_is_made(link: Link) -> None:
    async with talk(link, limit=LIMIT) as (peer, other):
        with pytest.raises(MessageTooLarge):
            await peer.request("asked", "x" * LIMIT)
        assert await other.is_alive()
        asked = asyncio.ensure_future(peer.request("asked", result=str))
        other.say({"jsonrpc": "2.0", "id": (await other.hear())["id"], "result": "yes"})
        async with asyncio.timeout(PATIENCE):
            assert await asked == "yes"


async def test_a_handler_that_says_too_much_is_answered_with_what_went_wrong(link: Link) -> None:
    routes = Routes()
    async with talk(link, routes, limit=LIMIT) as (peer, other):

        async def handle(_params: Raw) -> None:
            peer.notify("told", "x" * LIMIT)

        routes.request("m", handle)
        other.ask(1, "m")
        answer = await other.hear()
        assert (answer["id"], answer["error"]["code"]) == (1, INTERNAL_ERROR)
        assert "too large" in answer["error"]["message"]


@pytest.mark.parametrize("cut", [1, 4_000, LIMIT * 4])
async def test_a_block_with_a_line_that_is_too_large_is_not_sent(link: Link, cut: int) -> None:
    async with talk(link, limit=LIMIT) as (peer, other):
        longest = b'"' + b"x" * (LIMIT - 2) + b'"\n'
        block = b'"before"\n' + longest + b'"behind"\n'
        peer.send_block(*(block[at : at + cut] for at in range(0, len(block), cut)))
        assert [await other.hear() for _ in range(3)] == ["before", "x" * (LIMIT - 2), "behind"]
        block = b'"before"\n"x' + longest[1:] + b'"behind"\n'
        with pytest.raises(MessageTooLarge):
            peer.send_block(*(block[at : at + cut] for at in range(0, len(block), cut)))
        assert await other.is_alive()


def test_a_message_that_is_too_large_is_told_to_the_other_side_as_it_is() -> None:
    assert isinstance(MessageTooLarge(2, 1), RequestError)
