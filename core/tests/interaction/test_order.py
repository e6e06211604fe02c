"""Notifications in order, responses in their place, urgent ones ahead (A10, P5)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.talk import Arrivals, talk
from holdfast.errors import InvalidAnswer, RemoteError
from holdfast.peer import Peer, Routes

if TYPE_CHECKING:
    from msgspec import Raw

    from core.tests.support.links import Link

pytestmark = pytest.mark.requirement("A10")


def note(n: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "note", "params": [n]}


async def test_notifications_are_handled_one_after_the_other_in_the_order_they_came(link: Link) -> None:
    """The official SDK starts a task for each; a slow one is then overtaken."""
    order: list[str] = []
    done = asyncio.Event()

    async def handle(params: list[int]) -> None:
        (n,) = params
        order.append(f"begin {n}")
        for _ in range((7 * n) % 5):
            await asyncio.sleep(0)
        order.append(f"end {n}")
        if n == 99:
            done.set()

    routes = Routes()
    routes.notification("note", handle, list[int])
    async with talk(link, routes) as (_, other):
        other.say(*map(note, range(50)))
        other.say([note(n) for n in range(50, 60)])
        other.say(*map(note, range(60, 100)))
        async with asyncio.timeout(30):
            await done.wait()
    assert order == [f"{what} {n}" for n in range(100) for what in ("begin", "end")]


async def test_a_response_is_released_only_after_every_notification_before_it_was_handled(link: Link) -> None:
    """With the official SDK a load returned when none of the four replayed updates had been handled."""
    handled: list[int] = []

    async def handle(params: list[int]) -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        handled.extend(params)

    routes = Routes()
    routes.notification("note", handle, list[int])
    async with talk(link, routes) as (peer, other):
        asked = asyncio.ensure_future(peer.request("load"))
        id_ = (await other.hear())["id"]
        other.say(*map(note, range(4)), {"jsonrpc": "2.0", "id": id_, "result": None}, *map(note, range(4, 8)))
        await asked
        assert handled == [0, 1, 2, 3]


async def test_an_error_response_is_released_in_its_place_too(link: Link) -> None:
    handled: list[int] = []

    async def handle(params: list[int]) -> None:
        await asyncio.sleep(0)
        handled.extend(params)

    routes = Routes()
    routes.notification("note", handle, list[int])
    async with talk(link, routes) as (peer, other):
        for answer in ({"error": {"code": 1, "message": "m"}}, {"error": "broken"}):
            handled.clear()
            asked = asyncio.ensure_future(peer.request("load"))
            id_ = (await other.hear())["id"]
            other.say(*map(note, range(4)), {"id": id_, **answer})
            with pytest.raises(RemoteError):
                await asked
            assert handled == [0, 1, 2, 3]


@pytest.mark.parametrize("cut", [1, 2, 3])
async def test_whoever_waited_for_a_response_runs_before_the_notification_after_it(link: Link, cut: int) -> None:
    """Also where the notification arrives, in another read, while what came before is still being handled."""
    order: list[str] = []
    reached, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handle(params: list[int]) -> None:
        order.append(f"note {params[0]}")
        if params == [0]:
            reached.set()
            await go_on.wait()
        if params == [2]:
            done.set()

    async def ask(peer: Peer) -> None:
        await peer.request("new")
        order.append("response")

    routes = Routes()
    routes.notification("note", handle, list[int])
    async with talk(link, routes) as (peer, other):
        arrivals = Arrivals(peer)
        asked = asyncio.ensure_future(ask(peer))
        id_ = (await other.hear())["id"]
        lines = [note(0), {"jsonrpc": "2.0", "id": id_, "result": None}, note(1), note(2)]
        other.say(*lines[:cut])
        await reached.wait()
        other.say(*lines[cut:])
        async with asyncio.timeout(30):
            await arrivals.reach(4)
            go_on.set()
            await done.wait()
            await asked
    assert order == ["note 0", "response", "note 1", "note 2"]


async def test_a_request_has_run_to_its_first_wait_before_the_next_message_is_looked_at(link: Link) -> None:
    order: list[str] = []
    done = asyncio.Event()

    async def begin(params: list[int]) -> None:
        order.append(f"request {params[0]}")
        await asyncio.sleep(0)

    async def handle(params: list[int]) -> None:
        order.append(f"note {params[0]}")
        if params == [9]:
            done.set()

    routes = Routes()
    routes.request("begin", begin, list[int])
    routes.notification("note", handle, list[int])
    async with talk(link, routes) as (_, other):
        begins = [{"jsonrpc": "2.0", "id": n, "method": "begin", "params": [n]} for n in range(10)]
        mixed = [message for n in range(10) for message in (begins[n], note(n))]
        other.say(*mixed[:6], mixed[6:14], *mixed[14:])
        async with asyncio.timeout(30):
            await done.wait()
    assert order == [f"{what} {n}" for n in range(10) for what in ("request", "note")]


async def test_nothing_overtakes_an_ordered_request(link: Link) -> None:
    """What comes pipelined behind `initialize` is served after it."""
    order: list[str] = []

    async def begin(_params: Raw) -> str:
        order.append("begin")
        for _ in range(10):
            await asyncio.sleep(0)
        order.append("end")
        return "begun"

    async def handle(_params: Raw) -> None:
        order.append("note")

    async def later(_params: Raw) -> None:
        order.append("later")

    routes = Routes()
    routes.request("initialize", begin, ordered=True)
    routes.request("later", later)
    routes.notification("note", handle)
    async with talk(link, routes) as (_, other):
        other.say(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize"},
            {"jsonrpc": "2.0", "method": "note"},
            {"jsonrpc": "2.0", "id": 2, "method": "later"},
        )
        assert [(await other.hear())["id"] for _ in range(2)] == [1, 2]
    assert order == ["begin", "end", "note", "later"]


@pytest.mark.requirement("P5")
@pytest.mark.parametrize("packed", [False, True], ids=["line", "batch"])
async def test_an_urgent_notification_is_told_at_once_and_once_more_in_its_place(link: Link, packed: bool) -> None:
    order: list[str] = []
    stop, done = asyncio.Event(), asyncio.Event()

    async def blocked(_params: Raw) -> None:
        order.append("blocked")
        await stop.wait()
        order.append("free")

    def cancel(_params: Raw) -> None:
        order.append("cancel")
        stop.set()

    async def last(_params: Raw) -> None:
        done.set()

    routes = Routes()
    routes.notification("block", blocked)
    routes.notification("last", last)
    routes.urgent_notification("cancel", cancel)
    async with talk(link, routes) as (_, other):
        urgent: dict[str, Any] = {"jsonrpc": "2.0", "method": "cancel"}
        other.say({"jsonrpc": "2.0", "method": "block"}, {"jsonrpc": "2.0", "method": "ordinary"})
        other.say([urgent] if packed else urgent, {"jsonrpc": "2.0", "method": "last"})
        async with asyncio.timeout(30):
            await done.wait()
    assert sorted(order) == ["blocked", "cancel", "cancel", "free"]
    assert order.index("cancel") < order.index("free")
    assert order[-1] == "cancel"


# A handler that the dispatcher waits for may ask, too


ASKING = ["notification", "ordered request"]


def asking(peer: Peer, routes: Routes, kind: str, outcome: asyncio.Future[object]) -> None:
    """Route `m` to a handler that asks the other side something before it is done."""

    async def handle(_params: Raw) -> None:
        try:
            outcome.set_result(await peer.request("may I?", result=str))
        except Exception as e:  # noqa: BLE001
            outcome.set_exception(e)

    if kind == "notification":
        routes.notification("m", handle)
    else:
        routes.request("m", handle, ordered=True)


@pytest.mark.parametrize("kind", ASKING)
@pytest.mark.parametrize("packed", [False, True], ids=["line", "batch"])
async def test_a_handler_that_blocks_the_way_gets_its_answer_all_the_same(link: Link, kind: str, packed: bool) -> None:
    routes = Routes()
    async with talk(link, routes) as (peer, other):
        outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        asking(peer, routes, kind, outcome)
        other.ask(1, "m") if kind != "notification" else other.tell("m")
        asked = await other.hear()
        other.tell("something else first")
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": "yes"}
        other.say([answer] if packed else answer)
        async with asyncio.timeout(30):
            assert await outcome == "yes"


@pytest.mark.parametrize("kind", ASKING)
@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        ({"error": {"code": 1, "message": "no"}}, RemoteError),
        ({"result": "yes", "error": "broken"}, RemoteError),
        ({"result": "x" * 20_000}, RemoteError),
        ({"result": 3}, InvalidAnswer),
    ],
    ids=["refused", "broken", "oversized", "unfit"],
)
async def test_a_handler_that_blocks_the_way_is_told_that_its_answer_failed(
    link: Link, kind: str, answer: dict[str, Any], raised: type[Exception]
) -> None:
    routes = Routes()
    async with talk(link, routes, limit=10_000) as (peer, other):
        outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        asking(peer, routes, kind, outcome)
        other.ask(1, "m") if kind != "notification" else other.tell("m")
        asked = await other.hear()
        other.say({"jsonrpc": "2.0", "id": asked["id"], **answer})
        async with asyncio.timeout(30):
            with pytest.raises(raised):
                await outcome


@pytest.mark.parametrize("kind", ASKING)
@pytest.mark.parametrize("asks", ["while it is handled", "afterwards"])
async def test_a_task_that_a_handler_left_running_gets_its_answers_in_their_place(
    link: Link, kind: str, asks: str
) -> None:
    """It was started by one the dispatcher waited for, and the dispatcher does not wait for it."""
    handled: list[int] = []
    left: list[asyncio.Task[list[int]]] = []
    begin = asyncio.Event()
    routes = Routes()
    async with talk(link, routes) as (peer, other):

        async def load() -> list[int]:
            if asks == "afterwards":
                await begin.wait()
            await peer.request("load")
            return list(handled)

        async def handle(_params: Raw) -> None:
            left.append(asyncio.create_task(load()))
            await asyncio.sleep(0)

        async def slowly(params: list[int]) -> None:
            for _ in range(5):
                await asyncio.sleep(0)
            handled.extend(params)

        if kind == "notification":
            routes.notification("m", handle)
            other.tell("m")
        else:
            routes.request("m", handle, ordered=True)
            other.ask(1, "m")
        routes.notification("note", slowly, list[int])
        if kind != "notification" and asks == "afterwards":
            assert (await other.hear())["id"] == 1
        begin.set()
        asked = await other.hear()
        if asked.get("method") is None:
            asked = await other.hear()
        elif kind != "notification" and asks == "while it is handled":
            assert (await other.hear())["id"] == 1
        other.say(*map(note, range(4)), {"jsonrpc": "2.0", "id": asked["id"], "result": None}, *map(note, range(4, 8)))
        async with asyncio.timeout(30):
            assert await left[0] == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ASKING)
async def test_tasks_that_a_handler_waits_for_get_their_answers_while_it_blocks_the_way(link: Link, kind: str) -> None:
    routes = Routes()
    async with talk(link, routes) as (peer, other):
        outcome: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()

        async def handle(_params: Raw) -> None:
            async with asyncio.timeout(30), asyncio.TaskGroup() as group:
                asked = [group.create_task(peer.request("may I?", result=str)) for _ in range(3)]
            outcome.set_result([answer.result() for answer in asked])

        routes.notification("m", handle)
        routes.request("m", handle, ordered=True)
        other.ask(1, "m") if kind != "notification" else other.tell("m")
        for _ in range(3):
            other.say({"jsonrpc": "2.0", "id": (await other.hear())["id"], "result": "yes"})
        assert await outcome == ["yes"] * 3


async def test_what_we_tell_and_ask_leaves_in_the_order_we_said_it(link: Link) -> None:
    async with talk(link) as (peer, other):
        asked: list[asyncio.Task[Raw]] = []
        for n in range(100):
            peer.notify("told", [n])
            asked.append(asyncio.create_task(peer.request("asked", [n])))
            await asyncio.sleep(0)
        heard = [await other.hear() for _ in range(200)]
        assert [message["params"][0] for message in heard] == [n // 2 for n in range(200)]
        for request in heard[1::2]:
            other.say({"jsonrpc": "2.0", "id": request["id"], "result": None})
        await asyncio.gather(*asked)
