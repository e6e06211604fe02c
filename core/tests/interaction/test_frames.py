"""What is answered to each line, good and bad (A2, A3, A4, A5)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Raw

from core.tests.support.links import PATIENCE
from core.tests.support.talk import talk
from holdfast.errors import RemoteError
from holdfast.peer import Routes

if TYPE_CHECKING:
    from core.tests.support.links import Link

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601


def echoing() -> Routes:
    async def echo(params: Raw) -> object:
        return params

    routes = Routes()
    routes.request("echo", echo)
    return routes


@pytest.mark.requirement("A2")
@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"jsonrpc":"2.0","id":1,"method":"echo"',
        b'{"jsonrpc":"2.0","id":1,"method":"echo"}x',
        b'{"jsonrpc":"2.0","id":1,"method":"echo","params":[NaN]}',
        b'{"jsonrpc":"2.0","id":1,"method":"echo","params":["\xff"]}',
        b'{"jsonrpc":"2.0","id":1,"method":"echo","params":' + b"[" * 128 + b"]" * 128 + b"}",
        b"[" * 100_000,
        b"[1,",
        b'{"id":1.5, garbage',
        b"hello\x00world",
        b"Content-Length: 52",
    ],
)
async def test_what_is_no_json_is_answered_with_a_parse_error_and_a_null_id(link: Link, line: bytes) -> None:
    async with talk(link) as (_, other):
        other.say(line)
        assert await other.hear_error() == (None, PARSE_ERROR)
        assert await other.is_alive()


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("line", [b"", b" ", b"\r", b"\t \r"])
async def test_a_blank_line_is_not_answered(link: Link, line: bytes) -> None:
    async with talk(link) as (_, other):
        other.say(line, line)
        assert await other.is_alive()


@pytest.mark.requirement("A2")
async def test_a_request_with_a_lone_surrogate_is_served_with_its_id(link: Link) -> None:
    async with talk(link, echoing()) as (_, other):
        other.say(rb'{"jsonrpc":"2.0","id":7,"method":"echo","params":["cut \ud83d", "whole \ud83d\ude00"]}')
        assert await other.hear() == {"jsonrpc": "2.0", "id": 7, "result": ["cut \ufffd", "whole \U0001f600"]}
        assert await other.is_alive()


@pytest.mark.requirement("A2")
async def test_a_notification_with_a_lone_surrogate_is_handled(link: Link) -> None:
    told: list[object] = []

    async def tell(params: list[str]) -> None:
        told.extend(params)

    routes = Routes()
    routes.notification("tell", tell, list[str])
    async with talk(link, routes) as (_, other):
        other.say(rb'{"jsonrpc":"2.0","method":"tell","params":["\ude00"]}')
        assert await other.is_alive()
    assert told == ["\ufffd"]


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("packed", [False, True], ids=["line", "batch"])
async def test_a_response_with_a_lone_surrogate_reaches_whoever_waits_for_it(link: Link, packed: bool) -> None:
    async with talk(link) as (peer, other):
        asked = asyncio.ensure_future(peer.request("read", result=str))
        line = rb'{"jsonrpc":"2.0","id":%d,"result":"cut \ud83d"}' % (await other.hear())["id"]
        other.say(b"[%b]" % line if packed else line)
        async with asyncio.timeout(PATIENCE):
            assert await asked == "cut \ufffd"
        assert await other.is_alive()


@pytest.mark.requirement("A3")
@pytest.mark.parametrize("line", [b"null", b"42", b'"x"', b"true", b"-1.5e3", b"{}", b"[]", b" [ ] "])
async def test_json_that_is_no_request_is_answered_with_an_invalid_request(link: Link, line: bytes) -> None:
    async with talk(link) as (_, other):
        other.say(line)
        assert await other.hear_error() == (None, INVALID_REQUEST)
        assert await other.is_alive()


@pytest.mark.requirement("A3")
@pytest.mark.parametrize(
    ("message", "id_"),
    [
        ({"id": 7, "method": "echo"}, 7),
        ({"jsonrpc": "1.0", "id": "a", "method": "echo"}, "a"),
        ({"jsonrpc": "2.0", "id": 7, "method": 3}, 7),
        ({"jsonrpc": "2.0", "id": 7, "method": "echo", "params": "p"}, 7),
        ({"jsonrpc": "2.0", "id": 7}, 7),
        ({"jsonrpc": "2.0", "id": None, "method": "echo"}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "echo"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "echo"}, None),
        ({"jsonrpc": "2.0", "method": "echo", "params": 3}, None),
    ],
)
async def test_an_object_that_is_no_request_is_answered_with_its_id_where_one_is_readable(
    link: Link, message: dict[str, Any], id_: object
) -> None:
    async with talk(link, echoing()) as (_, other):
        other.say(message)
        assert await other.hear_error() == (id_, INVALID_REQUEST)
        assert await other.is_alive()


@pytest.mark.requirement("A3")
@pytest.mark.parametrize("method", ["nobody", "_nobody", "", "$/progress", "session/new", "é" * 1_000])
async def test_a_request_for_an_unknown_method_is_answered_so(link: Link, method: str) -> None:
    async with talk(link) as (_, other):
        other.ask(1, method)
        assert await other.hear_error() == (1, METHOD_NOT_FOUND)


@pytest.mark.requirement("A3")
@pytest.mark.parametrize("method", ["nobody", "_nobody", "$/progress", ""])
async def test_an_unknown_notification_is_ignored(link: Link, method: str) -> None:
    async with talk(link) as (_, other):
        other.tell(method, {"a": 1})
        assert await other.is_alive()


@pytest.mark.requirement("A3")
async def test_requests_in_a_batch_are_answered_in_one_array(link: Link) -> None:
    async with talk(link, echoing()) as (_, other):
        other.say(
            [
                {"jsonrpc": "2.0", "id": 1, "method": "echo", "params": [1]},
                {"jsonrpc": "2.0", "method": "told"},
                {"jsonrpc": "2.0", "id": "2", "method": "nobody"},
                {"jsonrpc": "2.0", "id": 99, "result": "to nothing we asked"},
                None,
                42,
                "x",
                [],
                {"id": 3},
            ]
        )
        answers: list[dict[str, Any]] = await other.hear()
        results = [answer for answer in answers if "result" in answer]
        errors = [(answer["id"], answer["error"]["code"]) for answer in answers if "error" in answer]
        assert results == [{"jsonrpc": "2.0", "id": 1, "result": [1]}]
        assert sorted(errors, key=repr) == sorted(
            [("2", METHOD_NOT_FOUND), (3, INVALID_REQUEST), *[(None, INVALID_REQUEST)] * 4], key=repr
        )
        assert await other.is_alive()


@pytest.mark.requirement("A3")
async def test_a_batch_of_one_request_is_answered_with_an_array_of_one(link: Link) -> None:
    async with talk(link, echoing()) as (_, other):
        other.say([{"jsonrpc": "2.0", "id": 1, "method": "echo"}])
        assert await other.hear() == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


@pytest.mark.requirement("A3")
async def test_a_batch_that_asks_for_nothing_is_not_answered(link: Link) -> None:
    async with talk(link) as (_, other):
        other.say([{"jsonrpc": "2.0", "method": "told"}, {"jsonrpc": "2.0", "id": 5, "result": 1}])
        assert await other.is_alive()


@pytest.mark.requirement("A3")
async def test_a_batch_is_answered_when_its_slowest_request_is(link: Link) -> None:
    go = asyncio.Event()

    async def wait(_params: Raw) -> str:
        await go.wait()
        return "waited"

    routes = echoing()
    routes.request("wait", wait)
    async with talk(link, routes) as (_, other):
        other.say(
            [{"jsonrpc": "2.0", "id": 1, "method": "wait"}, {"jsonrpc": "2.0", "id": 2, "method": "echo"}],
            {"jsonrpc": "2.0", "id": 3, "method": "echo"},
        )
        assert (await other.hear())["id"] == 3
        go.set()
        assert sorted(answer["id"] for answer in await other.hear()) == [1, 2]


@pytest.mark.requirement("A3")
async def test_a_batch_with_too_many_entries_is_refused_as_a_whole(link: Link) -> None:
    async with talk(link) as (_, other):
        other.say([{"jsonrpc": "2.0", "id": 1, "method": "m"}] * 1_025)
        assert await other.hear_error() == (None, INVALID_REQUEST)
        assert await other.is_alive()


@pytest.mark.requirement("A4")
async def test_a_line_over_the_limit_is_answered_with_its_id_and_the_connection_lives(link: Link) -> None:
    async with talk(link, echoing(), limit=10_000) as (_, other):
        long = "x" * 20_000
        other.ask(7, "echo", {"text": long})
        assert await other.hear_error() == (7, INVALID_REQUEST)
        other.say({"params": {"text": long}, "method": "echo", "jsonrpc": "2.0", "id": "last"})
        assert await other.hear_error() == ("last", INVALID_REQUEST)
        other.say(b"\x00" * 20_000)
        assert await other.hear_error() == (None, INVALID_REQUEST)
        assert await other.is_alive()


@pytest.mark.requirement("A4")
@pytest.mark.parametrize("where", ["first", "last"])
async def test_a_response_over_the_limit_fails_whoever_waits_for_it(link: Link, where: str) -> None:
    async with talk(link, limit=10_000) as (peer, other):
        asked = asyncio.ensure_future(peer.request("something long"))
        id_ = (await other.hear())["id"]
        result = {"result": "x" * 20_000}
        other.say({"id": id_, **result} if where == "first" else {**result, "id": id_})
        with pytest.raises(RemoteError, match="10000 bytes"):
            await asked
        assert await other.is_alive()


@pytest.mark.requirement("A5")
@pytest.mark.parametrize(
    "id_", [0, -1, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, "", "1", "é😀", 'q"\\\n', "x" * 10_000]
)
async def test_ids_come_back_unchanged(link: Link, id_: int | str) -> None:
    async with talk(link, echoing()) as (_, other):
        other.ask(id_, "echo", {"a": 1})
        answer = await other.hear()
        assert answer == {"jsonrpc": "2.0", "id": id_, "result": {"a": 1}}
        assert type(answer["id"]) is type(id_)


@pytest.mark.requirement("A5")
async def test_requests_that_share_an_id_are_each_answered(link: Link) -> None:
    async with talk(link, echoing()) as (_, other):
        other.say(*[{"jsonrpc": "2.0", "id": 1, "method": "echo", "params": [n]} for n in range(3)])
        assert sorted([(await other.hear())["result"] for _ in range(3)]) == [[0], [1], [2]]


@pytest.mark.requirement("A5")
@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 12345, "result": 1},
        {"jsonrpc": "2.0", "id": "never sent", "error": {"code": 1, "message": "m"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Toad sends these"}},
        {"jsonrpc": "2.0", "error": {"code": -32601, "message": "and without an id"}},
        {"jsonrpc": "2.0", "id": None, "result": 1},
        {"jsonrpc": "2.0", "id": 1.5, "result": 1},
        {"jsonrpc": "2.0", "id": 12345, "result": 1, "error": 2},
    ],
)
async def test_an_answer_to_nothing_we_asked_is_ignored(link: Link, message: dict[str, Any]) -> None:
    async with talk(link) as (peer, other):
        asked = asyncio.ensure_future(peer.request("real"))
        id_ = (await other.hear())["id"]
        other.say(message)
        assert await other.is_alive()
        other.say({"jsonrpc": "2.0", "id": id_, "result": "the answer"})
        assert await asked == Raw(b'"the answer"')


@pytest.mark.requirement("A5")
async def test_a_second_answer_to_the_same_request_is_ignored(link: Link) -> None:
    async with talk(link) as (peer, other):
        asked = asyncio.ensure_future(peer.request("m"))
        id_ = (await other.hear())["id"]
        other.say({"id": id_, "result": "first"}, {"id": id_, "result": "second"}, {"id": id_, "result": 1, "error": 2})
        assert await asked == Raw(b'"first"')
        assert await other.is_alive()


@pytest.mark.requirement("A5")
@pytest.mark.parametrize(
    "answer",
    [
        {"result": 1, "error": {"code": 1, "message": "both"}},
        {"error": None},
        {"error": "no"},
        {"error": {"code": "1", "message": "m"}},
        {"jsonrpc": "1.0", "result": 1},
    ],
)
async def test_a_broken_answer_fails_whoever_waits_for_it_and_is_not_answered(
    link: Link, answer: dict[str, Any]
) -> None:
    async with talk(link) as (peer, other):
        asked = asyncio.ensure_future(peer.request("m"))
        id_ = (await other.hear())["id"]
        other.say({"id": id_, **answer})
        with pytest.raises(RemoteError):
            await asked
        assert await other.is_alive()


@pytest.mark.parametrize("data", [b"1e999", b"-1e999", b"9" * 5_000, b'{"a":[1e400]}'])
async def test_an_error_with_a_number_nobody_can_read_still_reaches_whoever_waits(link: Link, data: bytes) -> None:
    async with talk(link) as (peer, other):
        asked = asyncio.ensure_future(peer.request("m"))
        id_ = (await other.hear())["id"]
        other.say(b'{"jsonrpc":"2.0","id":%d,"error":{"code":5,"message":"m","data":%b}}' % (id_, data))
        with pytest.raises(RemoteError) as caught:
            await asked
        assert (caught.value.code, caught.value.message) == (5, "m")
        assert await other.is_alive()


async def test_parameters_come_back_byte_for_byte(link: Link) -> None:
    params = b'{"z":1,  "a":[1.50, 1e999, -0, 12345678901234567890123],"u":"\\u00e9\xc3\xa9"}'
    async with talk(link, echoing()) as (_, other):
        other.say(b'{"jsonrpc":"2.0","id":1,"method":"echo","params":%b}' % params)
        (line,) = await other.heard.get(1)
        assert isinstance(line, bytes)
        assert params in line
        assert json.loads(line)["id"] == 1
