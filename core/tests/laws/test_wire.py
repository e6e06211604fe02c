"""Laws of the wire: whatever bytes arrive, in whatever pieces, each line gets what it is owed and the peer lives on."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.tests.support.coroutines import run_alone
from core.tests.support.feed import FeedTransport
from core.tests.support.judged import compare, judged_routes, read_answer
from core.tests.support.oracle import METHODS, RESULT, Verdict, answer, judge
from holdfast.jsonrpc import (
    Batch,
    Invalid,
    Malformed,
    Notification,
    Request,
    Response,
    decode,
    encode_result,
    oversized,
)
from holdfast.peer import Peer, Routes
from holdfast.transport.lines import LineSplitter, Oversized

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.requirement("A2", "A3", "A4", "A5")


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Handlers that fail on purpose are logged whole; here that is noise."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


# Lines that are nearly right: a mistake hides where everything around it is good.

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8)
    | st.sampled_from(["2.0", "echo", "later", "refuse", "fail", "told", "failing", "$/cancel_request", ""])
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
ids = st.integers(-3, 3) | st.integers() | st.sampled_from(["", "1", "a"]) | st.text(st.characters(codec="utf-8"))
methods = st.sampled_from([*METHODS, "told", "failing", "nobody", "_nobody"]) | st.text(
    st.characters(codec="utf-8"), max_size=5
)
params = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), values, max_size=3) | st.lists(
    values, max_size=3
)
requests = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": ids, "method": methods}, optional={"params": params})
notifications = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "method": methods}, optional={"params": params})
cancels: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "jsonrpc": st.just("2.0"),
        "method": st.just("$/cancel_request"),
        "params": st.fixed_dictionaries({"requestId": ids | scalars}),
    }
)
responses = st.fixed_dictionaries(
    {"id": ids | st.none()}, optional={"jsonrpc": st.just("2.0"), "result": values, "error": values}
)
strange = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]), values, max_size=6
)
messages: st.SearchStrategy[Any] = requests | notifications | cancels | responses | strange | values
frames = messages | st.lists(messages, max_size=5)


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """Write a frame as some serializer would: spaced or not, escaped or not."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\r ")]))
    text = json.dumps(draw(frames), ensure_ascii=draw(st.booleans()), separators=separators)
    return text.encode().replace(b"\n", b"")


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Cut, overwrite or repeat a part of a frame."""
    line = bytearray(draw(written()))
    at = draw(st.integers(0, len(line)))
    end = draw(st.integers(at, len(line)))
    match draw(st.sampled_from(["cut", "truncate", "overwrite", "repeat"])):
        case "cut":
            del line[at:end]
        case "truncate":
            del line[at:]
        case "overwrite":
            line[at:end] = draw(st.binary(max_size=4) | st.sampled_from([b"NaN", b"\\ud800", b'"', b"[[", b"1e999"]))
        case _:
            line[at:at] = line[at:end]
    return bytes(line).replace(b"\n", b"")


def nested(draw: st.DrawFn) -> bytes:
    depth = draw(st.integers(120, 140))
    inside = draw(st.sampled_from([b"", b'"]]"', b'"[["', rb'"\"["']))
    opening, closing = draw(st.sampled_from([(b"[", b"]"), (b'{"a":', b"}")]))
    return b'{"jsonrpc":"2.0","id":1,"method":"echo","params":%b%b%b}' % (
        opening * depth,
        inside or b"[]",
        closing * depth,
    )


junk = st.binary(max_size=40).map(lambda line: line.replace(b"\n", b""))
lines = written() | damaged() | junk | st.composite(nested)()


@given(junk | damaged() | written())
@example(b'{"id":1.5, garbage')
@example(b"[1,")
@example(rb'[{"jsonrpc":"2.0","method":"\q"}]')
def test_decoding_never_raises(line: bytes) -> None:
    assert isinstance(decode(line), Request | Notification | Response | Invalid | Malformed | Batch)


@given(st.binary(max_size=200), st.binary(max_size=200), st.integers(1))
def test_judging_the_ends_of_an_oversized_line_never_raises(head: bytes, tail: bytes, limit: int) -> None:
    assert isinstance(oversized(head, tail, limit), Invalid)


@given(st.data())
def test_lines_are_the_same_whatever_the_chunks(data: st.DataObject) -> None:
    stream = data.draw(st.lists(st.binary(max_size=30)).map(b"\n".join))
    limit = data.draw(st.integers(1, 40))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    splitter = LineSplitter(limit)
    got: list[bytes | Oversized] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += splitter.feed(stream[start:end])
    got += splitter.end()
    whole = stream.split(b"\n")
    if not whole[-1]:
        whole.pop()
    expected = [
        line if len(line) <= limit else Oversized(line[:limit], line[-limit:], limit, len(line)) for line in whole
    ]
    assert got == expected


@settings(max_examples=100)
@given(st.lists(lines, max_size=12), st.data())
def test_every_line_gets_what_it_is_owed_and_nothing_ends_the_connection(
    sent: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(line + b"\n" for line in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    run_alone(_answers_what_it_owes(sent, chunks))


async def _answers_what_it_owes(sent: list[bytes], chunks: list[bytes]) -> None:
    transport = FeedTransport()
    async with Peer(transport, judged_routes()):
        await asyncio.sleep(0)
        for chunk in chunks:
            transport.feed(chunk)
        await ask(transport, b'{"jsonrpc":"2.0","id":"alive?","method":"echo"}')
    still_alive = Verdict(answer("alive?", RESULT))
    assert compare([*map(judge, sent), still_alive], transport.sent) == ""


async def ask(transport: FeedTransport, line: bytes) -> None:
    """Let a request arrive and everything before it be answered; bounded, since handlers here end by themselves."""
    transport.feed(line + b"\n")
    for _ in range(1_000):
        await asyncio.sleep(0)
        if transport.sent and read_answer(transport.sent[-1]) == answer("alive?", RESULT):
            break
    for _ in range(5):  # a handler that waits a tick may answer after one that came later
        await asyncio.sleep(0)


@given(written(), st.data())
def test_a_frame_cut_off_by_the_end_of_the_input_is_judged_like_any_other_line(
    line: bytes, data: st.DataObject
) -> None:
    cut = line[: data.draw(st.integers(0, len(line)))]

    async def run() -> None:
        transport = FeedTransport()
        async with Peer(transport, judged_routes()):
            await asyncio.sleep(0)
            transport.feed(cut)
            transport.end()
        assert compare([judge(cut)], transport.sent) == ""

    run_alone(run())


@given(st.lists(st.integers(0, 1_200), max_size=20), st.data())
def test_every_request_is_answered_once_in_lines_no_longer_than_the_limit(
    lengths: list[int], data: st.DataObject
) -> None:
    """A4, P6: whether its answer fits, fits only outside its batch, or does not fit at all."""
    limit = data.draw(st.integers(200, 1_000))
    sent = [{"jsonrpc": "2.0", "id": n, "method": "text", "params": [length]} for n, length in enumerate(lengths)]
    cut = data.draw(st.integers(0, len(sent)))

    async def text(params: list[int]) -> str:
        return "x" * params[0]

    async def run() -> None:
        routes = Routes()
        routes.request("text", text, list[int])
        transport = FeedTransport()
        transport.max_line = limit  # of what is sent alone: the batch may be longer than that
        async with Peer(transport, routes):
            await asyncio.sleep(0)
            transport.feed(json.dumps(sent[:cut]).encode() + b"\n" if cut else b"")
            for request in sent[cut:]:
                transport.feed(json.dumps(request).encode() + b"\n")
            for _ in range(1_000):  # at its end a peer waits for answers only for a while
                await asyncio.sleep(0)
        assert all(len(line) <= limit for line in transport.sent)
        replies: list[Any] = []
        for line in transport.sent:
            reply: Any = json.loads(line)
            replies += reply if isinstance(reply, list) else [reply]
        assert sorted(reply["id"] for reply in replies) == list(range(len(sent)))
        for reply in replies:
            id_: int = reply["id"]
            fits = len(encode_result(id_, "x" * lengths[id_])) <= limit - 2 * (id_ < cut)
            assert ("result" in reply) == fits

    run_alone(run())


@given(requests)
def test_an_echo_comes_back_as_it_was_sent(request: dict[str, Any]) -> None:
    """A5."""
    request = {**request, "method": "echo"}

    async def run() -> None:
        transport = FeedTransport()
        async with Peer(transport, judged_routes()):
            await asyncio.sleep(0)
            transport.feed(json.dumps(request).encode() + b"\n")
        (reply,) = transport.sent
        assert json.loads(reply) == {"jsonrpc": "2.0", "id": request["id"], "result": request.get("params", {})}

    run_alone(run())
