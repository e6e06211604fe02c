"""Reading and writing descriptors by the loop and by threads."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from typing import TYPE_CHECKING

import pytest

from core.tests.support.links import PATIENCE
from holdfast.transport.descriptors import LoopInput, LoopOutput, PipeTransport, open_input, open_output
from holdfast.transport.threads import ThreadInput, ThreadOutput

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


class Chunks:
    """What an input read."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self._news = asyncio.Event()

    def __call__(self, chunk: bytes) -> None:
        self.chunks.append(chunk)
        self._news.set()

    async def end(self) -> bytes:
        """Wait for the end; give all that came before."""
        async with asyncio.timeout(PATIENCE):
            while not self.chunks or self.chunks[-1]:
                self._news.clear()
                await self._news.wait()
        return b"".join(self.chunks)


async def test_the_loop_reads_what_it_can_watch_and_a_thread_reads_the_rest(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    read, write = os.pipe()
    file = os.open(tmp_path / "file", os.O_RDONLY)
    by_loop, by_thread = open_input(read, chunks := Chunks()), open_input(file, content := Chunks())
    assert isinstance(by_loop, LoopInput)
    assert isinstance(by_thread, ThreadInput)
    by_loop.resume()
    by_thread.resume()
    assert await content.end() == b"content"
    os.write(write, b"piped")
    os.close(write)
    assert await chunks.end() == b"piped"
    by_loop.close()
    by_thread.close()


@pytest.mark.parametrize("threads", [False, True], ids=["loop", "thread"])
async def test_nothing_is_read_before_it_is_asked_for(threads: bool) -> None:
    read, write = os.pipe()
    input_ = open_input(read, chunks := Chunks(), threads=threads)
    os.write(write, b"early")
    for _ in range(10):
        await asyncio.sleep(0)
    assert chunks.chunks == []
    assert select.select([read], [], [], 0)[0], "it was taken"
    input_.resume()
    os.close(write)
    assert await chunks.end() == b"early"
    input_.close()


@pytest.mark.requirement("P7")
async def test_a_thread_does_not_heap_up_what_the_loop_is_too_busy_to_take() -> None:
    """While the loop is blocked, as careless agent code does, the other side has to wait."""
    read, write = os.pipe()
    input_ = ThreadInput(read, chunks := Chunks())
    input_.resume()
    os.set_blocking(write, False)
    written = 0
    while written < 16 * MIB and select.select([], [write], [], 0.2)[1]:  # the loop does not run meanwhile
        written += os.write(write, b"x" * 4_096)
    assert written < MIB
    os.close(write)
    assert len(await chunks.end()) == written
    input_.close()


@pytest.mark.requirement("A11")
async def test_a_writer_that_hangs_up_is_noticed_while_reading_is_paused() -> None:
    read, write = os.pipe()
    input_ = LoopInput(read, chunks := Chunks())
    input_.resume()
    input_.pause()
    os.write(write, b"x" * 60_000)
    os.close(write)
    assert len(await chunks.end()) == 60_000
    input_.close()


@pytest.mark.requirement("A11")
async def test_a_socket_whose_other_end_will_say_no_more_is_noticed_while_reading_is_paused() -> None:
    near, far = socket.socketpair()
    with far:
        input_ = LoopInput(near.detach(), chunks := Chunks())
        input_.resume()
        input_.pause()
        far.sendall(b"last")
        far.shutdown(socket.SHUT_WR)
        assert await chunks.end() == b"last"
        input_.close()


async def test_a_writer_that_is_only_silent_is_not_taken_for_gone() -> None:
    read, write = os.pipe()
    input_ = LoopInput(read, chunks := Chunks())
    input_.resume()
    input_.pause()
    os.write(write, b"still here")
    await asyncio.sleep(0.25)  # longer than the interval of looking; what must not happen has no event to wait for
    assert chunks.chunks == []
    os.close(write)
    await chunks.end()
    input_.close()


async def test_what_is_sent_in_one_tick_leaves_in_one_system_call() -> None:
    """A packet socket keeps what was written apart: one packet is one write."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with far:
        far.setblocking(False)
        read, silent = os.pipe()
        transport = PipeTransport(read, near.detach())
        for n in range(100):
            transport.send(b"%d" % n)
        await asyncio.sleep(0)
        transport.send(b"next tick")
        await asyncio.sleep(0)
        assert far.recv(MIB) == b"".join(b"%d\n" % n for n in range(100))
        assert far.recv(MIB) == b"next tick\n"
        await transport.close(0)
        os.close(silent)


async def test_a_line_sent_now_takes_what_waited_along_in_one_system_call() -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with far:
        far.setblocking(False)
        read, silent = os.pipe()
        transport = PipeTransport(read, near.detach())
        transport.send(b"queued")
        transport.send_now(b"now")
        assert far.recv(MIB) == b"queued\nnow\n"
        transport.send(b"same tick")
        transport.send(b"too")
        await asyncio.sleep(0)
        assert far.recv(MIB) == b"same tick\ntoo\n"
        await transport.close(0)
        os.close(silent)


async def test_a_burst_in_one_tick_does_not_wait_to_be_joined() -> None:
    read, write = os.pipe()
    silent_read, silent_write = os.pipe()
    transport = PipeTransport(silent_read, write)
    for _ in range(40):
        transport.send(b"x" * 100_000)
    assert select.select([read], [], [], 0)[0]
    os.close(read)
    await transport.close(0)
    os.close(silent_write)


@pytest.mark.parametrize("kind", [LoopOutput, ThreadOutput])
async def test_an_output_tells_when_what_waited_was_written(kind: type[LoopOutput | ThreadOutput]) -> None:
    read, write = os.pipe()
    progressed = asyncio.Event()
    output = kind(write, progressed.set)
    output.write(b"x" * MIB)
    assert output.unsent > 0
    got = 0
    async with asyncio.timeout(PATIENCE):
        while got < MIB:  # and not once more: a read of an empty pipe would not return
            got += len(await asyncio.to_thread(os.read, read, MIB))
        while output.unsent:
            progressed.clear()
            await progressed.wait()
    os.close(read)
    assert not output.broken
    output.close()
    assert got == MIB


@pytest.mark.parametrize("kind", [LoopOutput, ThreadOutput])
async def test_an_output_that_nobody_can_read_is_broken_and_holds_nothing(
    kind: type[LoopOutput | ThreadOutput],
) -> None:
    read, write = os.pipe()
    told = asyncio.Event()
    output = kind(write, told.set)
    os.close(read)
    output.write(b"x" * MIB)
    async with asyncio.timeout(PATIENCE):
        await told.wait()
    assert output.broken
    assert output.unsent == 0
    output.write(b"more")
    assert output.unsent == 0
    output.close()


@pytest.mark.parametrize("kind", [LoopOutput, ThreadOutput])
async def test_an_output_that_was_closed_while_stuck_stays_broken(kind: type[LoopOutput | ThreadOutput]) -> None:
    """Whatever its thread still writes when the reader comes back."""
    read, write = os.pipe()
    progressed = asyncio.Event()
    output = kind(write, progressed.set)
    output.write(b"x" * MIB)
    output.close()
    assert output.broken
    assert output.unsent == 0
    while await asyncio.to_thread(os.read, read, MIB):
        pass
    for _ in range(10):
        await asyncio.sleep(0)
    assert output.broken
    assert output.unsent == 0
    os.close(read)


async def test_an_output_gives_a_shared_descriptor_back_as_it_was() -> None:
    near, far = socket.socketpair()
    with near, far:
        output = open_output(os.dup(near.fileno()), lambda: None)
        assert not os.get_blocking(near.fileno())
        output.close()
        assert os.get_blocking(near.fileno())
