"""What a server's process sends, on its way to the SDK: bounded, paced, and nothing but messages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from core.tests.support.links import PATIENCE
from holdfast.mcp.pacing import ReadBudget
from holdfast.mcp.streams import UNREAD_BYTES, ProcessStreams
from holdfast.transport import memory_pair

if TYPE_CHECKING:
    from holdfast.transport import Transport


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def connection_ended(self, reason: str) -> None:
        self.reasons.append(reason)

    def process_exited(self, stderr: str) -> None:
        raise AssertionError("there is no process")


def linked(limit: int = 1_000) -> tuple[ProcessStreams, Transport, Listener]:
    """Make streams that lead to a transport in memory."""
    near, far = memory_pair(limit)
    listener = Listener()
    streams = ProcessStreams(near, listener)
    near.open(streams)
    return streams, far, listener


def line(n: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"notifications/%d"}' % n


async def method_of(streams: ProcessStreams) -> str:
    async with asyncio.timeout(PATIENCE):
        item = await streams.receive()
    assert isinstance(item.message, JSONRPCNotification)
    return item.message.method


async def ticks(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Clock:
    """How much time a budget has made others wait, without waiting."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slept: list[float] = []
        monkeypatch.setattr("holdfast.mcp.streams.asyncio.sleep", self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    @property
    def total(self) -> float:
        return sum(self.slept)


@pytest.mark.requirement("E3", "P7")
async def test_a_process_is_not_read_while_enough_of_what_it_sent_waits() -> None:
    streams, far, _ = linked(UNREAD_BYTES)
    long = b'{"jsonrpc":"2.0","method":"notifications/long","params":{"text":"%b"}}' % (b"x" * (UNREAD_BYTES // 2))
    for _ in range(10):
        far.send(long)
        await ticks(3)
    assert far.unsent == 8 * len(long)  # two were taken, and that was too much
    assert [await method_of(streams) for _ in range(10)] == ["notifications/long"] * 10
    assert far.unsent == 0


@pytest.mark.requirement("E3", "P7")
async def test_others_have_their_turn_while_a_burst_is_read() -> None:
    streams, far, _ = linked()
    for n in range(60):
        far.send(line(n))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    await ticks(3)
    before = turns
    assert [await method_of(streams) for _ in range(60)] == [f"notifications/{n}" for n in range(60)]
    assert turns - before >= 60 * ReadBudget.MESSAGE / ReadBudget.SLICE - 1
    beside.cancel()


@pytest.mark.requirement("P7")
@pytest.mark.parametrize(
    "message",
    [line(1), b'{"jsonrpc":"2.0","id":"again","method":"roots/list"}', b'{"jsonrpc":"2.0","id":77,"result":{}}'],
    ids=["notifications", "requests", "responses to nothing"],
)
async def test_a_server_that_never_stops_talking_is_read_slowly(
    message: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams, far, _ = linked()
    count = 1_000
    for _ in range(count):
        far.send(message)
    await ticks(3)
    clock = Clock(monkeypatch)
    for _ in range(count):
        await streams.receive()
    assert clock.total >= (count * ReadBudget.MESSAGE - 2 * ReadBudget.BURST) / ReadBudget.SHARE


@pytest.mark.requirement("P7")
@pytest.mark.parametrize("noise", [b"x", b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}'])
async def test_what_nobody_needs_is_skipped_at_little_cost_but_not_without_end(
    noise: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams, far, _ = linked()
    few, many = 1_000, 200_000
    clock = Clock(monkeypatch)
    for count, most in ((few, 0.0), (many, float("inf"))):
        for _ in range(count):
            far.send(noise)
        far.send(line(count))
        assert await method_of(streams) == f"notifications/{count}"
        assert clock.total <= most
    assert clock.total >= (many * ReadBudget.LINE - 2 * ReadBudget.BURST) / ReadBudget.SHARE


def progress(token: str, n: int) -> bytes:
    about = b'{"progressToken":"%b","progress":%d}' % (token.encode(), n)
    return b'{"jsonrpc":"2.0","method":"notifications/progress","params":%b}' % about


async def told_until(streams: ProcessStreams, answers: int) -> list[tuple[str, int]]:
    """Receive until so many requests are answered; give tokens and numbers of progress, and ("answer", id)."""
    told: list[tuple[str, int]] = []
    while answers:
        async with asyncio.timeout(PATIENCE):
            message = (await streams.receive()).message
        if isinstance(message, JSONRPCNotification):
            about = message.params or {}
            told.append((about["progressToken"], int(about["progress"])))
        else:
            assert isinstance(message, JSONRPCResponse)
            told.append(("answer", int(message.id)))
            answers -= 1
    return told


@pytest.mark.requirement("P7", "E4")
async def test_much_progress_does_not_hold_the_result_back(monkeypatch: pytest.MonkeyPatch) -> None:
    streams, far, _ = linked()
    for n in (1, 2):
        await streams.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=n, method="tools/call")))
    Clock(monkeypatch)
    count = 1_000
    for n in range(count):
        far.send(progress("a", n))
        far.send(progress("b", n))
    for n in (1, 2):
        far.send(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % n)
    told = await told_until(streams, 2)
    assert told[:4] == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert told[-4:] == [("a", count - 1), ("b", count - 1), ("answer", 1), ("answer", 2)]
    assert told[:-2] == sorted(told[:-2], key=lambda each: each[1])
    assert len(told) < count


@pytest.mark.requirement("E4")
async def test_the_newest_progress_is_told_when_no_result_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    streams, far, _ = linked()
    Clock(monkeypatch)
    for n in range(1_000):
        far.send(progress("a", n))
    told = -1
    while told != 999:
        async with asyncio.timeout(PATIENCE):
            message = (await streams.receive()).message
        assert isinstance(message, JSONRPCNotification)
        told = (message.params or {})["progress"]
    far.send(line(1))
    assert await method_of(streams) == "notifications/1"


@pytest.mark.requirement("P7", "E4")
async def test_what_we_asked_for_is_read_at_once_however_much_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    streams, far, _ = linked()
    clock = Clock(monkeypatch)
    for n in range(2_000):
        await streams.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=n, method="tools/call")))
        far.send(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % n)
        assert isinstance((await streams.receive()).message, JSONRPCResponse)
    assert clock.total == 0


@pytest.mark.requirement("P7")
async def test_an_answer_that_comes_twice_or_to_a_cancelled_request_was_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams, far, _ = linked()
    clock = Clock(monkeypatch)
    cancelled = JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 2})
    for n in (1, 2):
        await streams.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=n, method="tools/call")))
    await streams.send(SessionMessage(cancelled))
    for _ in range(1_000):
        for n in (1, 2):
            far.send(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % n)
            await streams.receive()
    assert clock.total >= (1_999 * ReadBudget.MESSAGE - 2 * ReadBudget.BURST) / ReadBudget.SHARE


@pytest.mark.requirement("E3")
@pytest.mark.parametrize(
    "noise", [b"", b"hello", b"{", b"[]", b"null", b"42", b"{}", b'{"jsonrpc":"2.0"}', b"\xff", b" {}", b'{"method":5}']
)
async def test_what_is_no_message_is_skipped(noise: bytes) -> None:
    streams, far, listener = linked()
    far.send(noise)
    far.send(line(1))
    assert await method_of(streams) == "notifications/1"
    assert listener.reasons == []


@pytest.mark.requirement("E3")
async def test_a_message_that_is_too_long_is_the_end_and_what_came_before_is_heard() -> None:
    streams, far, listener = linked(100)
    far.send(line(1))
    far.send(b"x" * 200)
    far.send(line(2))
    assert await method_of(streams) == "notifications/1"
    with pytest.raises(anyio.EndOfStream):
        await streams.receive()
    assert listener.reasons == ["it sent a message of more than 100 bytes"]
    with pytest.raises(anyio.BrokenResourceError):
        await streams.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/x")))


@pytest.mark.requirement("E3")
async def test_the_end_is_told_once_and_what_came_before_is_heard() -> None:
    streams, far, listener = linked()
    far.send(line(1))
    await far.close(0.1)
    assert await method_of(streams) == "notifications/1"
    with pytest.raises(anyio.EndOfStream):
        await streams.receive()
    with pytest.raises(anyio.EndOfStream):
        await streams.receive()
    assert len(listener.reasons) == 1
