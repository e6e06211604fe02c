"""A reader that stops harms only itself: memory stays bounded, others go on, and at last it is given up (P7)."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from core.tests.support.links import PATIENCE
from core.tests.support.wire import Wire, memory
from holdfast.errors import ConnectionLost
from holdfast.peer import Peer, PeerLimits, Routes
from holdfast.transport.descriptors import PipeTransport

if TYPE_CHECKING:
    from msgspec import Raw

pytestmark = pytest.mark.requirement("P7")

MIB = 1 << 20


@pytest.mark.parametrize(
    "line",
    [b"1\n", b"{\n", b'{"jsonrpc":"2.0","id":1,"method":"echo"}\n', b"[" + b"1," * 999 + b"1]\n"],
    ids=["numbers", "braces", "requests", "batches"],
)
def test_a_client_that_floods_and_does_not_read_the_answers_has_to_wait(line: bytes) -> None:
    """However short its lines are: a frame that waits costs a hundred times the two bytes of `1`."""
    with Wire("agent.py", stderr=False) as wire:
        assert wire.is_alive()
        before = memory(wire.process.pid, "VmHWM")
        written = wire.stuff(line * (1 + 100_000 // len(line)))
        assert written < 64 * MIB
        assert memory(wire.process.pid, "VmHWM") - before < 48 * MIB


def test_an_agent_that_tells_more_than_its_client_reads_gives_it_up() -> None:
    """It tells a gigabyte and never looks whether anybody reads; it must neither keep that nor wait for ever."""
    with Wire("agent.py", env={"REPORT_PEAK": ""}) as wire:
        wire.ask(1, "flood", [1_000, MIB])
        assert wire.status(2 * PATIENCE) == 0
        peak = wire.errors().rpartition("peak ")[2]
        assert int(peak) < 160 * MIB


def test_an_agent_with_slow_handlers_does_not_take_in_more_than_it_can_handle() -> None:
    with Wire("agent.py", stderr=False) as wire:
        assert wire.is_alive()
        before = memory(wire.process.pid, "VmHWM")
        wire.tell("stuck")
        assert wire.stuff(b'{"jsonrpc":"2.0","method":"note","params":["%b"]}\n' % (b"x" * 100)) < 64 * MIB
        assert memory(wire.process.pid, "VmHWM") - before < 48 * MIB


async def test_other_connections_go_on_while_one_reader_has_stopped() -> None:
    """Eleven connections in one process; all are told the same, as much as a long replay, and one never reads."""
    count, others = 2_000, 10
    text = "x" * 2_000
    received = [0] * others
    stalled_read, stalled_write = os.pipe()
    silent_read, silent_write = os.pipe()
    stalled = Peer(
        PipeTransport(silent_read, stalled_write), Routes(), limits=PeerLimits(linger=0, end_grace=0.1, flush=0)
    )

    async def tell(peer: Peer) -> int:
        told = 0
        for _ in range(count):
            peer.notify("update", [text])
            told += 1
            await peer.drain()
        return told

    async def stream(number: int) -> None:
        done = asyncio.Event()

        async def count_it(_params: Raw) -> None:
            received[number] += 1
            if received[number] == count:
                done.set()

        routes = Routes()
        routes.notification("update", count_it)
        (here, there), (back_here, back_there) = os.pipe(), os.pipe()
        reader = Peer(PipeTransport(here, back_there), routes)
        async with Peer(PipeTransport(back_here, there), Routes()) as teller, reader:
            await tell(teller)
            await done.wait()

    try:
        async with stalled:
            stuck = asyncio.ensure_future(tell(stalled))
            async with asyncio.timeout(30):
                await asyncio.gather(*[stream(number) for number in range(others)])
            assert received == [count] * others
            assert not stuck.done()
            assert stalled.unsent < 2 * MIB
            stuck.cancel()
    finally:
        os.close(stalled_read)
        os.close(silent_write)


async def test_whoever_asked_a_reader_that_was_given_up_is_told() -> None:
    """Nobody waits for ever for one that will never answer."""
    far_read, near_write = os.pipe()
    near_read, far_write = os.pipe()
    try:
        limits = PeerLimits(linger=0.1, end_grace=0.1, flush=0.1)
        async with Peer(PipeTransport(near_read, near_write), Routes(), limits=limits) as peer:
            asked = asyncio.ensure_future(peer.request("m"))
            await asyncio.sleep(0)
            for _ in range(100):
                peer.notify("much", "x" * MIB)
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(ConnectionLost, match="does not read"):
                    await asked
    finally:
        os.close(far_read)
        os.close(far_write)
