"""What a server's process says, on its way to the SDK: no faster than it is understood, and nothing but messages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification
from tests.support.links import PATIENCE

from holdfast.mcp.pipes import FAIR_LINES, Pipes
from holdfast.transport import memory_pair

if TYPE_CHECKING:
    from holdfast.transport import Transport


class Watch:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def process_ended(self, reason: str) -> None:
        self.reasons.append(reason)

    def last_words(self, stderr: str) -> None:
        raise AssertionError("there is no process")


def linked(limit: int = 1_000) -> tuple[Pipes, Transport, Watch]:
    """Make pipes that lead to a transport in memory."""
    near, far = memory_pair(limit)
    watch = Watch()
    pipes = Pipes(near, watch)
    near.open(pipes)
    return pipes, far, watch


def line(n: int) -> bytes:
    return b'{"jsonrpc":"2.0","method":"notifications/%d"}' % n


async def method_of(pipes: Pipes) -> str:
    async with asyncio.timeout(PATIENCE):
        item = await pipes.receive()
    assert isinstance(item.message, JSONRPCNotification)
    return item.message.method


async def ticks(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.requirement("E3", "P7")
async def test_it_is_read_no_faster_than_it_is_understood() -> None:
    pipes, far, _ = linked()
    for n in range(100):
        far.send(line(n))
        await ticks(3)
    assert far.unsent > 98 * len(line(0))  # the first was taken, and nobody has come for it
    assert [await method_of(pipes) for _ in range(100)] == [f"notifications/{n}" for n in range(100)]
    assert far.unsent == 0


@pytest.mark.requirement("E3")
async def test_others_have_their_turn_while_what_is_no_message_is_skipped() -> None:
    pipes, far, _ = linked()
    for _ in range(FAIR_LINES * 20):
        far.send(b"noise")
    far.send(line(1))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    await ticks(3)
    before = turns
    assert await method_of(pipes) == "notifications/1"
    assert turns - before >= 19
    beside.cancel()


@pytest.mark.requirement("E3")
@pytest.mark.parametrize(
    "noise", [b"", b"hello", b"{", b"[]", b"null", b"42", b"{}", b'{"jsonrpc":"2.0"}', b"\xff", b" {}"]
)
async def test_what_is_no_message_is_skipped(noise: bytes) -> None:
    pipes, far, watch = linked()
    far.send(noise)
    far.send(line(1))
    assert await method_of(pipes) == "notifications/1"
    assert watch.reasons == []


@pytest.mark.requirement("E3")
async def test_a_message_that_is_too_long_is_the_end_and_what_came_before_is_heard() -> None:
    pipes, far, watch = linked(100)
    far.send(line(1))
    far.send(b"x" * 200)
    far.send(line(2))
    assert await method_of(pipes) == "notifications/1"
    with pytest.raises(anyio.EndOfStream):
        await pipes.receive()
    assert watch.reasons == ["it sent a message of more than 100 bytes"]
    with pytest.raises(anyio.BrokenResourceError):
        await pipes.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/x")))


@pytest.mark.requirement("E3")
async def test_the_end_is_told_once_and_what_came_before_is_heard() -> None:
    pipes, far, watch = linked()
    far.send(line(1))
    await far.close(0.1)
    assert await method_of(pipes) == "notifications/1"
    with pytest.raises(anyio.EndOfStream):
        await pipes.receive()
    with pytest.raises(anyio.EndOfStream):
        await pipes.receive()
    assert len(watch.reasons) == 1
