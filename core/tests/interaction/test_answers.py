"""Every request gets exactly one answer, whatever its handler does, and no internals in it (P6)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from msgspec import Raw

from core.tests.support.talk import QUICK, OtherEnd, talk
from holdfast.errors import InternalError, InvalidParams, RequestCancelled, RequestError
from holdfast.peer import Peer, PeerLimits, Routes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from core.tests.support.links import Link

pytestmark = pytest.mark.requirement("P6")

SECRET = "hunter2"


def answering(handle: Callable[[Raw], Awaitable[object]], *, ordered: bool = False) -> Routes:
    routes = Routes()
    routes.request("m", handle, ordered=ordered)
    return routes


class Odd(BaseException):
    """Not even an `Exception`."""


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (RuntimeError(SECRET), -32603),
        (KeyError(SECRET), -32603),
        (RecursionError(SECRET), -32603),
        (MemoryError(SECRET), -32603),
        (UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET), -32603),
        (TimeoutError(SECRET), -32603),
        (StopAsyncIteration(SECRET), -32603),
        (ExceptionGroup(SECRET, [ValueError(SECRET)]), -32603),
        (SystemExit(SECRET), -32603),
        (Odd(SECRET), -32603),
        (asyncio.CancelledError(SECRET), -32800),
        (InternalError("we failed"), -32603),
        (InvalidParams("no"), -32602),
        (RequestCancelled("cancelled"), -32800),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
@pytest.mark.parametrize("ordered", [False, True], ids=["beside", "ordered"])
async def test_a_handler_that_raises_is_answered_without_internals(
    link: Link, raised: BaseException, code: int, ordered: bool
) -> None:
    async def handle(_params: Raw) -> None:
        raise raised

    async with talk(link, answering(handle, ordered=ordered)) as (_, other):
        other.ask(1, "m")
        answer = await other.hear()
        assert (answer["id"], answer["error"]["code"]) == (1, code)
        assert SECRET not in str(answer)
        assert await other.is_alive()


async def test_an_internal_error_carries_the_reference_under_which_it_is_logged(
    link: Link, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(_params: Raw) -> None:
        raise RuntimeError(SECRET)

    async with talk(link, answering(handle)) as (_, other):
        other.ask(1, "m")
        reference = (await other.hear())["error"]["data"]["reference"]
    assert reference in caplog.text
    assert SECRET in caplog.text


async def test_a_refusal_goes_out_with_its_message_and_data(link: Link) -> None:
    async def handle(_params: Raw) -> None:
        raise InvalidParams("no such color", {"color": "plaid"})

    async with talk(link, answering(handle)) as (_, other):
        other.ask(1, "m")
        error = (await other.hear())["error"]
        assert error == {"code": -32602, "message": "no such color", "data": {"color": "plaid"}}


def _endless() -> dict[str, Any]:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    return endless


class Explosive(dict[str, object]):
    """Fails when it is looked at."""

    def __len__(self) -> int:
        raise RuntimeError(SECRET)

    def items(self) -> Any:
        raise RuntimeError(SECRET)


UNENCODABLE = [object(), {1j: 2}, _endless(), {"a": {(1, 2): 3}}, Explosive(a=object())]
HALF_CHARACTERS = ["\ud800", {"a": ["\udcff"]}]


@pytest.mark.parametrize("result", HALF_CHARACTERS, ids=["text", "nested"])
async def test_half_a_character_in_a_result_is_replaced(link: Link, result: object) -> None:
    async def handle(_params: Raw) -> object:
        return result

    async with talk(link, answering(handle)) as (_, other):
        other.ask(1, "m")
        assert (await other.hear())["result"] in ("\ufffd", {"a": ["\ufffd"]})


@pytest.mark.parametrize("result", UNENCODABLE, ids=lambda value: type(value).__name__)
async def test_a_result_that_cannot_be_encoded_is_answered_with_an_internal_error(link: Link, result: object) -> None:
    async def handle(_params: Raw) -> object:
        return result

    async with talk(link, answering(handle)) as (_, other):
        other.ask(1, "m")
        assert await other.hear_error() == (1, -32603)
        assert await other.is_alive()


@pytest.mark.parametrize("data", [*UNENCODABLE, *HALF_CHARACTERS], ids=lambda value: type(value).__name__)
async def test_a_refusal_whose_data_cannot_be_encoded_goes_out_without_it(link: Link, data: object) -> None:
    async def handle(_params: Raw) -> None:
        raise InvalidParams("no", data)

    async with talk(link, answering(handle)) as (_, other):
        other.ask(1, "m")
        assert (await other.hear())["error"] == {"code": -32602, "message": "no"}


async def test_a_refusal_that_names_a_file_whose_name_is_no_text_goes_out(link: Link) -> None:
    async def handle(_params: Raw) -> None:
        raise InvalidParams("no such file: " + b"caf\xe9".decode(errors="surrogateescape"))

    async with talk(link, answering(handle)) as (_, other):
        other.ask(1, "m")
        assert (await other.hear())["error"]["message"] == "no such file: caf?"


async def test_a_handler_that_returns_nothing_to_wait_for_is_answered(link: Link) -> None:
    def handle(_params: Raw) -> int:
        return 3

    async with talk(link, answering(cast("Callable[[Raw], Awaitable[object]]", handle))) as (_, other):
        other.ask(1, "m")
        assert await other.hear_error() == (1, -32603)


class Color(msgspec.Struct, forbid_unknown_fields=True):
    color: str


@pytest.mark.parametrize("params", [None, {}, [], {"color": 3}, {"color": "red", "shade": 1}, [1]])
async def test_parameters_that_do_not_fit_are_refused_before_the_handler_sees_them(link: Link, params: object) -> None:
    async def handle(_color: Color) -> None:
        pytest.fail("the handler saw them")

    routes = Routes()
    routes.request("m", handle, Color)
    async with talk(link, routes) as (_, other):
        other.ask(1, "m", params)
        assert await other.hear_error() == (1, -32602)


async def test_parameters_arrive_in_the_type_the_handler_asked_for(link: Link) -> None:
    async def handle(color: Color) -> str:
        return color.color.upper()

    routes = Routes()
    routes.request("m", handle, Color)
    async with talk(link, routes) as (_, other):
        other.ask(1, "m", {"color": "red"})
        assert (await other.hear())["result"] == "RED"


async def test_a_fallback_answers_what_has_no_route(link: Link) -> None:
    async def fallback(request: object) -> str:
        return type(request).__name__

    async with talk(link, Routes(fallback)) as (_, other):
        other.ask(1, "anything")
        assert (await other.hear())["result"] == "Request"


async def test_routes_may_be_replaced_while_the_peer_runs(link: Link) -> None:
    async with talk(link) as (peer, other):
        assert await other.is_alive()

        async def handle(_params: Raw) -> str:
            return "new"

        peer.routes = answering(handle)
        other.ask(1, "m")
        assert (await other.hear())["result"] == "new"


async def test_more_requests_at_once_than_allowed_are_refused_and_the_others_served(link: Link) -> None:
    go = asyncio.Event()

    async def handle(_params: Raw) -> str:
        await go.wait()
        return "done"

    async with talk(link, answering(handle), PeerLimits(requests=3)) as (_, other):
        other.say(*[{"jsonrpc": "2.0", "id": n, "method": "m"} for n in range(5)])
        assert [await other.hear_error() for _ in range(2)] == [(3, -32603), (4, -32603)]
        go.set()
        assert sorted([(await other.hear())["id"] for _ in range(3)]) == [0, 1, 2]
        other.ask(9, "m")
        assert (await other.hear())["id"] == 9


async def test_requests_are_served_beside_each_other(link: Link) -> None:
    met = asyncio.Barrier(3)

    async def handle(_params: Raw) -> int:
        return await met.wait()

    async with talk(link, answering(handle)) as (_, other):
        other.say(*[{"jsonrpc": "2.0", "id": n, "method": "m"} for n in range(3)])
        assert sorted([(await other.hear())["id"] for _ in range(3)]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("raised", "urgent"),
    [
        (RuntimeError(SECRET), False),
        (asyncio.CancelledError(), False),
        (SystemExit(3), False),
        (Odd(), False),
        (RuntimeError(SECRET), True),
        (SystemExit(3), True),
        (Odd(), True),
    ],
    ids=repr,
)
async def test_a_notification_whose_handler_raises_is_passed_over(
    link: Link, raised: BaseException, urgent: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A dead dispatcher would leave every later request unanswered."""

    def fail(_params: Raw) -> None:
        raise raised

    async def fail_too(_params: Raw) -> None:
        raise raised

    routes = Routes()
    if urgent:
        routes.urgent_notification("n", fail)
    else:
        routes.notification("n", fail_too)
    async with talk(link, routes) as (_, other):
        other.say(*[{"jsonrpc": "2.0", "method": "n"}] * 2, [{"jsonrpc": "2.0", "method": "n"}])
        assert await other.is_alive()
    assert caplog.records


async def test_a_notification_whose_parameters_do_not_fit_is_passed_over(link: Link) -> None:
    async def handle(_color: Color) -> None:
        pytest.fail("the handler saw them")

    routes = Routes()
    routes.notification("n", handle, Color)
    async with talk(link, routes) as (_, other):
        other.tell("n", {"color": 3})
        assert await other.is_alive()


async def test_an_observer_that_fails_harms_nobody(link: Link) -> None:
    def observe(_direction: str, _line: bytes) -> None:
        raise RuntimeError(SECRET)

    async with talk(link) as (peer, other):
        peer.observe(observe)
        assert await other.is_alive()


async def test_observers_see_every_frame_as_it_is_on_the_wire(link: Link) -> None:
    seen: list[tuple[str, bytes]] = []
    async with talk(link) as (peer, other):
        peer.observe(lambda direction, line: seen.append((direction, line)))
        other.say(b'{"jsonrpc":"2.0",   "method":"n"}', b"nonsense")
        await other.hear()
        peer.notify("out", {"a": 1})
        await other.hear()
    assert seen[:2] == [("in", b'{"jsonrpc":"2.0",   "method":"n"}'), ("in", b"nonsense")]
    assert [direction for direction, _ in seen[2:]] == ["out", "out"]
    assert seen[3][1] == b'{"jsonrpc":"2.0","method":"out","params":{"a":1}}'


async def test_a_code_of_its_own_goes_out_as_it_is(link: Link) -> None:
    class Teapot(RequestError):
        code = -31999

    async def handle(_params: Raw) -> None:
        raise Teapot("short and stout")

    async with talk(link, answering(handle)) as (_, other):
        other.ask(1, "m")
        assert await other.hear_error() == (1, -31999)


async def test_a_handler_that_cancels_its_own_task_is_answered(link: Link) -> None:
    async def handle(_params: Raw) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async with talk(link, answering(handle), QUICK) as (_, other):
        other.ask(1, "m")
        assert await other.hear_error() == (1, -32800)
        assert await other.is_alive()


async def test_a_notification_handler_that_cancels_the_dispatcher_does_not_leave_the_other_side_hanging(
    link: Link, caplog: pytest.LogCaptureFixture
) -> None:
    """It runs in the dispatcher's task. What it cancels is gone, and then the connection ends, which can be seen."""
    caplog.set_level(logging.CRITICAL)

    async def handle(_params: Raw) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    routes = Routes()
    routes.notification("n", handle)
    async with link() as (near, far):
        other = OtherEnd(far)
        async with asyncio.timeout(30):
            peer = asyncio.ensure_future(Peer(near, routes, limits=QUICK).run())
            other.say({"jsonrpc": "2.0", "method": "n"}, {"jsonrpc": "2.0", "id": 1, "method": "m"})
            await other.heard.end()
            await peer
        assert await other.hear_error() == (1, -32800)
