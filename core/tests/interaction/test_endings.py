"""What happens to work, theirs and ours, when a connection ends (A11, P6)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.links import PATIENCE
from core.tests.support.talk import QUICK, Arrivals, OtherEnd, talk
from holdfast.errors import ConnectionLost
from holdfast.peer import Peer, PeerLimits, Routes

if TYPE_CHECKING:
    from msgspec import Raw

    from core.tests.support.links import Link

pytestmark = pytest.mark.requirement("A11")

CANCELLED = -32800


class Half:
    """A link whose near end a peer serves until the far end has said its last word."""

    def __init__(self, peer: Peer, other: OtherEnd) -> None:
        self.peer = peer
        self.other = other
        self.arrivals = Arrivals(peer)
        self.running = asyncio.ensure_future(peer.run())

    async def over(self) -> None:
        """Wait until the peer is done."""
        async with asyncio.timeout(PATIENCE):
            await self.running


async def test_what_was_read_before_the_end_is_served(link: Link) -> None:
    handled: list[str] = []

    async def note(_params: Raw) -> None:
        await asyncio.sleep(0)
        handled.append("note")

    async def work(_params: Raw) -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        handled.append("work")
        return "done"

    routes = Routes()
    routes.notification("note", note)
    routes.request("work", work)
    async with link() as (near, far):
        half = Half(Peer(near, routes), OtherEnd(far))
        half.other.tell("note")
        half.other.ask(1, "work")
        half.other.tell("note")
        half.other.say(b"nonsense")
        await half.arrivals.reach(4)
        half.peer.close()
        await half.over()
        heard = [await half.other.hear() for _ in range(2)]
    assert sorted(handled) == ["note", "note", "work"]
    assert sorted((answer["id"], "result" in answer) for answer in heard if answer["id"]) == [(1, True)]
    assert [answer["error"]["code"] for answer in heard if not answer["id"]] == [-32700]


async def test_work_that_goes_on_is_cancelled_and_answered(link: Link) -> None:
    cancelled = asyncio.Event()

    async def work(_params: Raw) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    routes = Routes()
    routes.request("work", work)
    async with link() as (near, far):
        half = Half(Peer(near, routes, limits=QUICK), OtherEnd(far))
        half.other.ask(1, "work")
        await half.arrivals.reach(1)
        half.peer.close()
        answer = await half.other.hear()
        assert answer["id"] == 1 and answer["error"]["code"] == CANCELLED
        assert "connect again" in answer["error"]["message"]  # nobody has cancelled it
        await half.over()
    assert cancelled.is_set()


async def test_what_was_cancelled_while_it_waited_is_answered_as_cancelled(link: Link) -> None:
    async def work(_params: Raw) -> None:
        await asyncio.Event().wait()

    routes = Routes()
    routes.request("first", work, ordered=True)
    routes.request("second", work)
    async with link() as (near, far):
        half = Half(Peer(near, routes, limits=QUICK), OtherEnd(far))
        half.other.ask(1, "first")
        half.other.ask(2, "second")
        half.other.say({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 2}})
        await half.arrivals.reach(3)
        half.peer.close()
        answers = {answer["id"]: answer["error"] for answer in [await half.other.hear() for _ in range(2)]}
        assert "connect again" in answers[1]["message"] and answers[2]["message"] == "Request cancelled"
        await half.over()


@pytest.mark.parametrize("packed", [False, True], ids=["line", "batch"])
async def test_work_that_will_not_stop_is_answered_for(
    link: Link, packed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    release = asyncio.Event()
    ended = asyncio.Event()

    async def stubborn(_params: Raw) -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        ended.set()
        return "too late"

    routes = Routes()
    routes.request("stubborn", stubborn)
    async with link() as (near, far):
        half = Half(Peer(near, routes, limits=QUICK), OtherEnd(far))
        request = {"jsonrpc": "2.0", "id": 1, "method": "stubborn"}
        half.other.say([request] if packed else request)
        await half.arrivals.reach(1)
        half.peer.close()
        heard = await half.other.hear()
        await half.over()
        (answer,) = heard if packed else [heard]
        assert (answer["id"], answer["error"]["code"]) == (1, CANCELLED)
        release.set()
        async with asyncio.timeout(PATIENCE):
            await ended.wait()
        await half.other.heard.end()
        assert len(half.other.heard.lines) == 1
    assert "stubborn" in caplog.text


@pytest.mark.parametrize("kind", ["ordered request", "notification"])
async def test_what_was_never_looked_at_is_answered(link: Link, kind: str) -> None:
    """Something blocks the way for longer than the patience; what waits behind it is owed an answer all the same."""

    async def block(_params: Raw) -> None:
        await asyncio.Event().wait()

    routes = Routes()
    routes.request("block", block, ordered=True)
    routes.notification("block", block)
    async with link() as (near, far):
        half = Half(Peer(near, routes, limits=QUICK), OtherEnd(far))
        if kind == "notification":
            half.other.tell("block")
        else:
            half.other.ask("block", "block")
        half.other.ask(1, "work")
        half.other.say(b"nonsense", b"{}", [{"jsonrpc": "2.0", "id": 2, "method": "work"}, 42])
        half.other.say({"jsonrpc": "2.0", "method": "told"}, {"jsonrpc": "2.0", "id": 7, "result": 1})
        await half.arrivals.reach(7)
        half.peer.close()
        await half.over()
        await half.other.heard.end()
        owed = 4 if kind == "notification" else 5
        heard: list[Any] = [await half.other.hear() for _ in range(owed)]
        assert len(half.other.heard.lines) == owed
    (batch,) = [line for line in heard if "id" not in line]
    singles = [(line["id"], line["error"]["code"]) for line in heard if "id" in line]
    blocked = [] if kind == "notification" else [("block", CANCELLED)]
    assert sorted(singles, key=repr) == sorted([*blocked, (1, CANCELLED), (None, -32700), (None, -32600)], key=repr)
    assert sorted([(answer["id"], answer["error"]["code"]) for answer in batch], key=repr) == [
        (2, CANCELLED),
        (None, -32600),
    ]


async def test_a_batch_that_was_looked_at_in_part_is_answered_whole(link: Link) -> None:
    async def block(_params: Raw) -> None:
        await asyncio.Event().wait()

    async def echo(params: Raw) -> Raw:
        return params

    routes = Routes()
    routes.request("block", block, ordered=True)
    routes.request("echo", echo)
    async with link() as (near, far):
        half = Half(Peer(near, routes, limits=QUICK), OtherEnd(far))
        half.other.say([{"jsonrpc": "2.0", "id": n, "method": m} for n, m in enumerate(["echo", "block", "echo"])])
        await half.arrivals.reach(1)
        half.peer.close()
        answers = await half.other.hear()
        await half.over()
    assert sorted((answer["id"], "result" in answer) for answer in answers) == [(0, True), (1, False), (2, False)]


async def test_when_the_other_side_goes_away_our_requests_fail(link: Link) -> None:
    async with link() as (near, far):
        half = Half(Peer(near, Routes()), OtherEnd(far))
        asked = [asyncio.ensure_future(half.peer.request("m")) for _ in range(3)]
        for _ in asked:
            await half.other.hear()
        await far.close(0.1)
        await half.over()
        for answer in asked:
            with pytest.raises(ConnectionLost):
                await answer
        with pytest.raises(ConnectionLost):
            await half.peer.request("another")
        half.peer.notify("told")


async def test_a_handler_that_waits_for_an_answer_is_freed_when_the_other_side_goes_away(link: Link) -> None:
    outcome: list[str] = []
    routes = Routes()
    async with link() as (near, far):
        half = Half(Peer(near, routes), OtherEnd(far))

        async def ask_back(_params: Raw) -> None:
            try:
                await half.peer.request("may I?")
            except ConnectionLost:
                outcome.append("lost")

        routes.request("m", ask_back)
        half.other.ask(1, "m")
        await half.other.hear()
        await far.close(0.1)
        await half.over()
    assert outcome == ["lost"]


async def test_answers_that_were_read_before_the_end_reach_whoever_waits(link: Link) -> None:
    async with link() as (near, far):
        half = Half(Peer(near, Routes()), OtherEnd(far))
        asked = asyncio.ensure_future(half.peer.request("m", result=str))
        id_ = (await half.other.hear())["id"]
        half.other.say({"jsonrpc": "2.0", "id": id_, "result": "just in time"})
        await half.arrivals.reach(1)
        await far.close(0.1)
        assert await asked == "just in time"
        await half.over()


async def test_leaving_the_block_ends_the_connection(link: Link) -> None:
    async with link() as (near, far):
        other = OtherEnd(far)
        async with Peer(near, Routes()) as peer:
            peer.notify("hello")
        assert (await other.hear())["method"] == "hello"
        assert await other.heard.end() is None


async def test_an_exception_in_the_block_comes_out_of_it_and_ends_the_connection(link: Link) -> None:
    async with link() as (near, far):
        other = OtherEnd(far)
        with pytest.raises(KeyError):
            async with Peer(near, Routes()):
                raise KeyError
        await other.heard.end()


async def test_cancelling_the_run_ends_the_work_and_the_connection(link: Link) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def work(_params: Raw) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    routes = Routes()
    routes.request("work", work)
    async with link() as (near, far):
        half = Half(Peer(near, routes, limits=QUICK), OtherEnd(far))
        half.other.ask(1, "work")
        await started.wait()
        half.running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await half.over()
        assert await half.other.hear_error() == (1, CANCELLED)
        await half.other.heard.end()
    assert cancelled.is_set()


async def test_a_peer_that_ends_while_the_other_side_does_not_read_gives_up_soon(link: Link) -> None:
    limits = PeerLimits(flush=0.02)
    async with link() as (near, far):
        half = Half(Peer(near, Routes(), limits=limits), OtherEnd(far))
        far.pause()
        for _ in range(8):
            half.peer.notify("much", "x" * (1 << 20))
        half.peer.close()
        await half.over()


async def test_two_peers_may_ask_each_other_at_the_same_time(link: Link) -> None:
    async def double(n: list[int]) -> int:
        return 2 * n[0]

    routes = Routes()
    routes.request("double", double, list[int])
    async with link() as (near, far), Peer(near, routes) as left, Peer(far, routes) as right:
        async with asyncio.timeout(PATIENCE):
            answers = await asyncio.gather(
                *[left.request("double", [n], result=int) for n in range(200)],
                *[right.request("double", [n], result=int) for n in range(200)],
            )
    assert answers == [2 * n for n in range(200)] * 2


@pytest.mark.requirement("P7")
async def test_while_the_other_side_does_not_read_its_requests_are_not_looked_at(link: Link) -> None:
    served = 0

    async def much(_params: Raw) -> str:
        nonlocal served
        served += 1
        return "x" * 100_000

    routes = Routes()
    routes.request("much", much)
    async with talk(link, routes, PeerLimits(unsent=500_000)) as (peer, other):
        arrivals = Arrivals(peer)
        other.transport.pause()
        for n in range(500):
            other.ask(n, "much")
        await arrivals.reach(500)
        assert served < 50
        assert peer.unsent < 5 << 20
        other.transport.resume()
        assert sorted([(await other.hear())["id"] for _ in range(500)]) == list(range(500))
        assert served == 500
