"""What follows an answer follows the array that the answer is in (A3, P5)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, serving
from core.tests.support.links import PATIENCE, Collector
from core.tests.support.talk import QUICK, talk
from holdfast.errors import InvalidParams
from holdfast.peer import Peer, Routes
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from msgspec import Raw

    from core.tests.support.links import Link

pytestmark = pytest.mark.requirement("A3", "P5")

PACKED = pytest.mark.parametrize("packed", [False, True], ids=["line", "batch"])


def request(id_: int, method: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method}


def answering(peer: Peer, routes: Routes, after: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
    """Route `new` to a handler that has something to say once it is answered."""

    async def new(_params: Raw) -> str:
        await after(lambda: peer.notify("about the new one"))
        return "new one"

    routes.request("new", new)
    routes.request("new in order", new, ordered=True)


def heard(line: Any) -> object:
    """Return what a line says: a method, a result, or a list of results."""
    if isinstance(line, list):
        return [heard(entry) for entry in line]  # pyright: ignore[reportUnknownVariableType]
    return line.get("method") or line.get("result") or line["error"]["code"]


@PACKED
@pytest.mark.parametrize("method", ["new", "new in order"])
@pytest.mark.parametrize("then", ["returns", "waits", "is in a task"])
async def test_what_a_handler_has_to_say_after_its_answer_is_sent_after_it(
    link: Link, packed: bool, method: str, then: str
) -> None:
    routes = Routes()
    async with talk(link, routes) as (peer, other):

        async def after(callback: Callable[[], None]) -> None:
            peer.after_answer(callback)
            if then == "waits":
                for _ in range(5):
                    await asyncio.sleep(0)

        async def after_in_a_task(callback: Callable[[], None]) -> None:
            await asyncio.shield(after(callback))

        answering(peer, routes, after_in_a_task if then == "is in a task" else after)
        other.say([request(1, method)] if packed else request(1, method))
        answer = "new one"
        assert heard(await other.hear()) == ([answer] if packed else answer)
        assert heard(await other.hear()) == "about the new one"
        assert await other.is_alive()


async def test_what_follows_an_answer_in_a_batch_waits_for_the_slowest_of_it(link: Link) -> None:
    go = asyncio.Event()

    async def wait(_params: Raw) -> str:
        await go.wait()
        return "waited"

    routes = Routes()
    routes.request("wait", wait)
    async with talk(link, routes) as (peer, other):

        async def after(callback: Callable[[], None]) -> None:
            peer.after_answer(callback)

        answering(peer, routes, after)
        other.say([request(1, "new"), request(2, "wait"), request(3, "new")])
        assert await other.is_alive()  # nothing was said so far
        go.set()
        assert heard(await other.hear()) == ["new one", "new one", "waited"]
        assert [heard(await other.hear()) for _ in range(2)] == ["about the new one"] * 2


@PACKED
@pytest.mark.parametrize("how", ["fails", "cannot be encoded", "is too large", "is cancelled", "is given up"])
async def test_what_follows_a_result_is_not_said_where_there_is_none(link: Link, packed: bool, how: str) -> None:
    """An error does not name what was made: whoever reads it knows nothing of that."""
    routes = Routes()
    registered, release = asyncio.Event(), asyncio.Event()
    async with talk(link, routes, QUICK, limit=2_000) as (peer, other):

        async def make(_params: Raw) -> object:
            peer.after_answer(lambda: peer.notify("about what nobody knows"))
            registered.set()
            if how == "fails":
                raise InvalidParams("no")
            if how == "cannot be encoded":
                return object()
            if how == "is too large":
                return "x" * 3_000
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    if how == "is cancelled":
                        raise
            peer.after_answer(lambda: peer.notify("about what nobody knows"))
            return None

        routes.request("make", make)
        other.say([request(1, "make")] if packed else request(1, "make"))
        async with asyncio.timeout(PATIENCE):
            await registered.wait()
        other.cancel(1)
        answer = await other.hear()
        assert ((answer[0] if packed else answer)["error"]["code"]) < 0
        release.set()
        assert await other.is_alive()


async def test_what_follows_an_answer_that_was_sent_or_no_answer_at_all_is_done_at_once(link: Link) -> None:
    routes = Routes()
    left: list[asyncio.Task[None]] = []
    go = asyncio.Event()
    async with talk(link, routes) as (peer, other):
        done: list[str] = []

        async def later() -> None:
            await go.wait()
            peer.after_answer(lambda: done.append("in a task that its handler left"))

        async def make(_params: Raw) -> None:
            left.append(asyncio.create_task(later()))

        async def note(_params: Raw) -> None:
            peer.after_answer(lambda: done.append("in the handler of a notification"))

        routes.request("make", make)
        routes.notification("note", note)
        peer.after_answer(lambda: done.append("in no handler"))
        assert done == ["in no handler"]
        other.tell("note")
        other.ask(1, "make")
        await other.hear()
        go.set()
        async with asyncio.timeout(PATIENCE):
            await left[0]
        assert done[1:] == ["in the handler of a notification", "in a task that its handler left"]


async def test_what_follows_an_answer_in_a_batch_may_be_said_while_the_batch_still_waits(link: Link) -> None:
    routes = Routes()
    left: list[asyncio.Task[None]] = []
    go, last = asyncio.Event(), asyncio.Event()
    async with talk(link, routes) as (peer, other):

        async def later() -> None:
            await go.wait()
            peer.after_answer(lambda: peer.notify("said late"))

        async def make(_params: Raw) -> str:
            left.append(asyncio.create_task(later()))
            return "made"

        async def wait(_params: Raw) -> str:
            await last.wait()
            return "waited"

        routes.request("make", make)
        routes.request("wait", wait)
        other.say([request(1, "make"), request(2, "wait")])
        assert await other.is_alive()
        go.set()
        async with asyncio.timeout(PATIENCE):
            await left[0]
        assert await other.is_alive()
        last.set()
        assert [heard(await other.hear()) for _ in range(2)] == [["made", "waited"], "said late"]


async def test_what_fails_after_an_answer_harms_nobody(link: Link, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("it failed")

    routes = Routes()
    async with talk(link, routes) as (peer, other):

        async def make(_params: Raw) -> str:
            peer.after_answer(fail)
            peer.after_answer(lambda: peer.notify("second"))
            return "made"

        routes.request("make", make)
        other.ask(1, "make")
        assert [heard(await other.hear()) for _ in range(2)] == ["made", "second"]
        assert await other.is_alive()
    assert "it failed" in caplog.text


# Through an agent


@pytest.mark.parametrize("version", [1, 2])
async def test_nothing_is_said_about_sessions_made_in_a_batch_before_the_array_that_names_them(version: int) -> None:
    """The second session takes a moment; what is to be said about the first waits for it."""
    async with serving(demo) as host:
        client = await host.client(version)
        client.transport.open(there := Collector())
        new: dict[str, Any] = {"method": "session/new", "params": {"cwd": CWD, "mcpServers": []}}
        client.say([{"jsonrpc": "2.0", "id": n, **new} for n in range(1, 4)] + [None])
        lines = [line for line in await there.get(4) if isinstance(line, bytes)]
        assert lines[0].startswith(b"[")
        array: list[Any] = json.loads(lines[0])
        updates: list[Any] = [json.loads(line) for line in lines[1:]]
        made = {answer["result"]["sessionId"] for answer in array if "result" in answer}
        assert len(made) == 3
        assert [answer["error"]["code"] for answer in array if "error" in answer] == [-32600]
        assert {update["params"]["sessionId"] for update in updates} == made
