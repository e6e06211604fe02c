"""Requests that need no task: taken as they come, answered when there is an answer (A9, P6)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.support.links import PATIENCE
from core.tests.support.talk import QUICK, talk
from holdfast.errors import InvalidParams
from holdfast.peer import PeerLimits, Routes

if TYPE_CHECKING:
    from msgspec import Raw

    from core.tests.support.links import Link
    from holdfast.peer import IncomingRequest

pytestmark = pytest.mark.requirement("A9", "P6")

CANCELLED = -32800


class Work:
    """A method that takes its requests at once, and lets the test answer them."""

    def __init__(self) -> None:
        self.taken: asyncio.Queue[IncomingRequest] = asyncio.Queue()
        self.cancelled = asyncio.Event()
        self.takes = True
        self.routes = Routes()
        self.routes.request("work", self.work, at_once=self.work_at_once)

    async def work(self, _params: Raw) -> str:
        return "in a task"

    def work_at_once(self, params: Raw, request: IncomingRequest) -> bool:
        if b"wrong" in bytes(params):
            raise InvalidParams("It is wrong")
        if self.takes:
            request.on_cancel = self.cancelled.set
            self.taken.put_nowait(request)
        return self.takes


async def test_it_is_answered_when_there_is_an_answer(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes) as (_, other):
        other.ask(1, "work", {})
        other.ask("two", "work", {})
        first, second = await work.taken.get(), await work.taken.get()
        assert await other.is_alive()
        second.succeed({"done": 2})
        assert await other.hear() == {"jsonrpc": "2.0", "id": "two", "result": {"done": 2}}
        first.fail(InvalidParams("Not today"))
        assert await other.hear_error() == (1, InvalidParams.code)
        first.succeed("once more")
        assert await other.is_alive(), "whoever answers twice is heard once"


async def test_one_that_is_not_taken_has_a_task_and_one_that_raises_is_answered(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes) as (_, other):
        other.ask(1, "work", {"wrong": True})
        assert await other.hear_error() == (1, InvalidParams.code)
        work.takes = False
        other.ask(2, "work", {})
        assert (await other.hear())["result"] == "in a task"


async def test_an_ordered_one_that_is_answered_at_once_holds_nothing_up(link: Link) -> None:
    work = Work()
    work.routes.request("ordered", work.work, ordered=True, at_once=work.work_at_once)
    async with talk(link, work.routes) as (_, other):
        other.ask(1, "ordered", {"wrong": True})
        assert await other.hear_error() == (1, InvalidParams.code)
        assert await other.is_alive()
        other.ask(2, "ordered", {})
        request = await work.taken.get()
        other.ask(3, "work", {"wrong": True})
        request.succeed("first")
        assert [(await other.hear())["id"] for _ in range(2)] == [2, 3]


async def test_a_result_that_cannot_be_encoded_is_an_error(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes) as (_, other):
        other.ask(1, "work", {})
        (await work.taken.get()).succeed(object())
        assert (await other.hear_error())[0] == 1
        assert await other.is_alive()


async def test_it_may_be_cancelled_and_decides_what_it_answers(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes) as (_, other):
        other.ask(1, "work", {})
        request = await work.taken.get()
        other.cancel(1)
        async with asyncio.timeout(PATIENCE):
            await work.cancelled.wait()
        request.succeed("what there was")
        assert (await other.hear())["result"] == "what there was"


async def test_one_that_is_cancelled_and_not_answered_is_answered_for(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes, QUICK) as (_, other):
        other.ask(1, "work", {})
        await work.taken.get()
        other.cancel(1)
        assert await other.hear_error() == (1, CANCELLED)
        assert await other.is_alive()


async def test_in_a_batch_its_answer_goes_with_the_others(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes) as (_, other):
        other.say([{"jsonrpc": "2.0", "id": number, "method": "work"} for number in (1, 2)])
        first, second = await work.taken.get(), await work.taken.get()
        second.succeed("b")
        first.succeed("a")
        assert {answer["id"]: answer["result"] for answer in await other.hear()} == {1: "a", 2: "b"}


async def test_at_the_end_of_the_input_it_has_a_moment_then_it_is_cancelled_and_answered_for(link: Link) -> None:
    work = Work()
    limits = PeerLimits(linger=0.05, end_grace=0.05, flush=PATIENCE)
    async with talk(link, work.routes, limits) as (peer, other):
        other.ask(1, "work", {})
        other.ask(2, "work", {})
        answered, _ = await work.taken.get(), await work.taken.get()
        peer.close()
        answered.succeed("in time")
        assert (await other.hear())["result"] == "in time"
        async with asyncio.timeout(PATIENCE):
            await work.cancelled.wait()
        assert await other.hear_error() == (2, CANCELLED)
