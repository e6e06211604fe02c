"""`$/cancel_request`, theirs and ours (A9)."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.feed import FeedTransport
from core.tests.support.links import PATIENCE
from core.tests.support.talk import QUICK, Arrivals, talk
from holdfast.errors import RemoteError
from holdfast.peer import Peer, PeerLimits, Routes

if TYPE_CHECKING:
    from msgspec import Raw

    from core.tests.support.links import Link

pytestmark = pytest.mark.requirement("A9")

CANCELLED = -32800


class Work:
    """Handlers that tell the test what happens to them."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.release = asyncio.Event()
        self.routes = Routes()
        self.routes.request("work", self.work)
        self.routes.request("ordered", self.work, ordered=True)
        self.routes.request("stubborn", self.stubborn)
        self.routes.request("stubborn ordered", self.stubborn, ordered=True)
        self.routes.request("polite", self.polite)

    async def work(self, _params: Raw) -> str:
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "done"

    async def stubborn(self, _params: Raw) -> str:
        self.started.set()
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
        return "done all the same"

    async def polite(self, _params: Raw) -> str:
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
        return "what there was"


@pytest.mark.parametrize("method", ["work", "ordered"])
@pytest.mark.parametrize("id_", [1, 0, "a", 2**63 - 1])
async def test_a_request_at_work_is_cancelled_and_answered_so(link: Link, method: str, id_: object) -> None:
    work = Work()
    async with talk(link, work.routes) as (_, other):
        other.ask(id_, method)
        await work.started.wait()
        other.cancel(id_)
        assert await other.hear_error() == (id_, CANCELLED)
        assert work.cancelled.is_set()
        assert await other.is_alive()


@pytest.mark.parametrize("ordered", [False, True], ids=["beside", "ordered"])
async def test_a_request_cancelled_before_its_handler_began_is_answered(link: Link, ordered: bool) -> None:
    """The handler's task is made in one tick and takes its first step in the next; the fuzzer found the gap."""
    routes = Routes()
    async with talk(link, routes, PeerLimits(cancel_grace=3_600)) as (peer, other):

        async def work(_params: Raw) -> None:
            await asyncio.Event().wait()

        async def cancel_the_next(_params: Raw) -> None:
            asyncio.get_running_loop().call_soon(other_cancels)

        def other_cancels() -> None:
            peer.lines_received([b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}'])

        routes.request("work", work, ordered=ordered)
        routes.notification("cancel the next", cancel_the_next)
        other.say({"jsonrpc": "2.0", "method": "cancel the next"}, {"jsonrpc": "2.0", "id": 1, "method": "work"})
        assert await other.hear_error() == (1, CANCELLED)
        assert await other.is_alive()


async def test_a_handler_may_answer_with_what_it_has(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes) as (_, other):
        other.ask(1, "polite")
        await work.started.wait()
        other.cancel(1)
        assert (await other.hear())["result"] == "what there was"
        assert await other.is_alive()


async def test_a_handler_that_was_cancelled_decides_its_answer_undisturbed(link: Link) -> None:
    """A second cancellation does not interrupt what the first one made it do."""
    deciding, decided = asyncio.Event(), asyncio.Event()
    cancellations = 0

    async def insert(_params: Raw) -> str:
        nonlocal cancellations
        while not decided.is_set():
            try:
                await decided.wait()
            except asyncio.CancelledError:
                cancellations += 1
                deciding.set()
        return "inserted"

    routes = Routes()
    routes.request("insert", insert)
    async with talk(link, routes) as (_, other):
        other.ask(1, "insert")
        assert await other.is_alive()
        for _ in range(5):
            other.cancel(1)
        async with asyncio.timeout(PATIENCE):
            await deciding.wait()
        assert await other.is_alive()
        decided.set()
        assert (await other.hear())["result"] == "inserted"
        assert await other.is_alive()
    assert cancellations == 1


@pytest.mark.parametrize("ordered", [False, True], ids=["beside", "ordered"])
@pytest.mark.parametrize("cancelled", ["before", "after"])
async def test_a_shielded_request_is_answered_by_its_handler_alone(link: Link, cancelled: str, ordered: bool) -> None:
    """However long that takes: what cannot be undone any more must not be answered as if it were."""
    begun, shielded, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    routes = Routes()
    async with talk(link, routes, QUICK) as (peer, other):

        async def insert(_params: Raw) -> str:
            begun.set()
            if cancelled == "before":
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
            peer.shield_request()
            shielded.set()
            await go_on.wait()  # a cancellation from here on would be seen as an error
            return "inserted"

        routes.request("insert", insert, ordered=ordered)
        other.ask(1, "insert")
        async with asyncio.timeout(PATIENCE):
            await begun.wait()
            if cancelled == "before":
                other.cancel(1)
            await shielded.wait()
        arrivals = Arrivals(peer)
        other.cancel(1)
        await arrivals.reach(1)
        await asyncio.sleep(3 * QUICK.cancel_grace)  # longer than others are waited for
        go_on.set()
        assert (await other.hear())["result"] == "inserted"
        assert await other.is_alive()


async def test_a_shielded_request_is_cancelled_when_the_connection_ends(link: Link) -> None:
    cancelled = asyncio.Event()
    routes = Routes()
    async with talk(link, routes, QUICK) as (peer, other):

        async def work(_params: Raw) -> None:
            peer.shield_request()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        peer.shield_request()  # of no use here, and no harm
        routes.request("work", work)
        other.ask(1, "work")
        assert await other.is_alive()
    assert cancelled.is_set()


@pytest.mark.parametrize("insert_at", range(7))
@pytest.mark.parametrize("cancel_at", range(7))
@pytest.mark.parametrize("insert_first", [True, False])
async def test_what_was_inserted_is_never_answered_as_cancelled(
    cancel_at: int, insert_at: int, insert_first: bool
) -> None:
    """The cancellation comes at every moment around the one from which on it is too late (C6)."""
    inserting: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    begun = False

    async def prompt(_params: Raw) -> str:
        nonlocal begun
        begun = True
        try:
            return await asyncio.shield(inserting)
        except asyncio.CancelledError:
            if inserting.done():
                return inserting.result()
            inserting.cancel()
            raise

    def insert() -> None:
        if not inserting.done():
            inserting.set_result("inserted")

    routes = Routes()
    routes.request("prompt", prompt)
    transport = FeedTransport()
    async with Peer(transport, routes):
        await asyncio.sleep(0)
        transport.feed(b'{"jsonrpc":"2.0","id":1,"method":"prompt"}\n')
        for tick in range(10):
            if tick == insert_at and insert_first:
                insert()
            if tick == cancel_at:
                transport.feed(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}\n')
            if tick == insert_at and not insert_first:
                insert()
            await asyncio.sleep(0)
    (answer,) = [json.loads(line) for line in transport.sent]
    if begun and not inserting.cancelled():
        assert answer["result"] == "inserted"
    else:
        assert answer["error"]["code"] == CANCELLED


async def test_a_handler_that_swallows_the_cancellation_is_answered_for(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes, QUICK) as (_, other):
        other.ask(1, "stubborn")
        await work.started.wait()
        other.cancel(1)
        assert await other.hear_error() == (1, CANCELLED)
        assert work.cancelled.is_set()
        work.release.set()  # it ends now; there was an answer, so there is no other
        assert await other.is_alive()


async def test_an_ordered_handler_that_swallows_the_cancellation_does_not_block_the_way_for_ever(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes, QUICK) as (_, other):
        other.ask(1, "stubborn ordered")
        await work.started.wait()
        other.cancel(1)
        assert await other.hear_error() == (1, CANCELLED)
        assert await other.is_alive()
        work.release.set()


async def test_cancelling_again_and_again_gives_one_answer(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes, QUICK) as (_, other):
        other.ask(1, "stubborn")
        await work.started.wait()
        for _ in range(5):
            other.cancel(1)
        assert await other.hear_error() == (1, CANCELLED)
        work.release.set()
        assert await other.is_alive()


async def test_a_request_that_waits_for_its_turn_can_be_cancelled_there(link: Link) -> None:
    """It overtakes: the request that blocks the way goes on."""
    work = Work()
    async with talk(link, work.routes) as (peer, other):
        arrivals = Arrivals(peer)
        other.ask(1, "ordered")
        await work.started.wait()
        other.ask(2, "work")
        other.cancel(2)
        await arrivals.reach(3)
        work.release.set()
        assert (await other.hear())["result"] == "done"
        assert await other.hear_error() == (2, CANCELLED)
        assert await other.is_alive()


async def test_a_request_cancelled_in_the_same_write_is_answered_once(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes) as (_, other):
        other.say(
            {"jsonrpc": "2.0", "id": 1, "method": "work"},
            {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}},
        )
        assert await other.hear_error() == (1, CANCELLED)
        assert await other.is_alive()


@pytest.mark.parametrize("then", ["line", "entry"])
async def test_a_request_in_a_batch_can_be_cancelled(link: Link, then: str) -> None:
    work = Work()
    async with talk(link, work.routes) as (_, other):
        cancel: dict[str, Any] = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}
        batch: list[Any] = [{"jsonrpc": "2.0", "id": 1, "method": "work"}]
        other.say(*([[*batch, cancel]] if then == "entry" else [batch, cancel]))
        (answer,) = await other.hear()
        assert (answer["id"], answer["error"]["code"]) == (1, CANCELLED)
        assert await other.is_alive()


async def test_a_batch_that_waits_for_its_turn_can_be_cancelled_there(link: Link) -> None:
    work = Work()
    async with talk(link, work.routes) as (peer, other):
        arrivals = Arrivals(peer)
        other.ask(1, "ordered")
        await work.started.wait()
        other.say([{"jsonrpc": "2.0", "id": 2, "method": "work"}])
        other.cancel(2)
        await arrivals.reach(3)
        work.release.set()
        assert (await other.hear())["result"] == "done"
        (answer,) = await other.hear()
        assert (answer["id"], answer["error"]["code"]) == (2, CANCELLED)


@pytest.mark.parametrize(
    "params",
    [None, {}, [], [1], {"requestId": None}, {"requestId": 1.0}, {"requestId": "1"}, {"requestId": [1]}, {"id": 1}],
)
async def test_a_cancellation_of_nothing_is_ignored(link: Link, params: object) -> None:
    work = Work()
    async with talk(link, work.routes) as (_, other):
        other.ask(1, "work")
        await work.started.wait()
        other.tell("$/cancel_request", params)
        other.cancel(99)
        assert await other.is_alive()
        assert not work.cancelled.is_set()
        work.release.set()
        assert (await other.hear())["result"] == "done"


async def test_a_cancellation_that_comes_too_late_is_ignored(link: Link) -> None:
    work = Work()
    work.release.set()
    async with talk(link, work.routes) as (_, other):
        other.ask(1, "work")
        assert (await other.hear())["result"] == "done"
        other.cancel(1)
        assert await other.is_alive()


# Ours


async def test_when_our_caller_is_cancelled_so_is_the_request_over_there(link: Link) -> None:
    async with talk(link) as (peer, other):
        asked = asyncio.ensure_future(peer.request("slow", {"a": 1}))
        request = await other.hear()
        asked.cancel()
        cancel = await other.hear()
        assert cancel == {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": request["id"]}}
        with pytest.raises(asyncio.CancelledError):
            await asked
        other.say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": CANCELLED, "message": "cancelled"}})
        assert await other.is_alive()


async def test_a_timeout_of_ours_cancels_the_request_over_there(link: Link) -> None:
    async with talk(link) as (peer, other):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await peer.request("slow")
        request, cancel = await other.hear(), await other.hear()
        assert cancel["params"] == {"requestId": request["id"]}


async def test_when_a_request_of_theirs_is_cancelled_so_is_what_its_handler_asked_them(link: Link) -> None:
    routes = Routes()
    async with talk(link, routes) as (peer, other):

        async def handle(_params: Raw) -> object:
            return await peer.request("may I?")

        routes.request("do", handle)
        other.ask("theirs", "do")
        ours = (await other.hear())["id"]
        other.cancel("theirs")
        assert (await other.hear())["params"] == {"requestId": ours}
        assert await other.hear_error() == ("theirs", CANCELLED)


async def test_requests_of_ours_have_ids_of_their_own(link: Link) -> None:
    async with talk(link) as (peer, other):
        asked = [asyncio.ensure_future(peer.request("m", [n])) for n in range(10)]
        requests = [await other.hear() for _ in asked]
        assert len({request["id"] for request in requests}) == 10
        for request in reversed(requests):
            other.say({"jsonrpc": "2.0", "id": request["id"], "result": request["params"]})
        assert [bytes(await answer) for answer in asked] == [b"[%d]" % n for n in range(10)]


async def test_an_error_answer_raises_with_its_code_message_and_data(link: Link) -> None:
    async with talk(link) as (peer, other):
        asked = asyncio.ensure_future(peer.request("m"))
        id_ = (await other.hear())["id"]
        other.say({"jsonrpc": "2.0", "id": id_, "error": {"code": 7, "message": "no", "data": {"why": [1]}}})
        with pytest.raises(RemoteError) as caught:
            await asked
        assert (caught.value.code, caught.value.message, caught.value.data) == (7, "no", {"why": [1]})
