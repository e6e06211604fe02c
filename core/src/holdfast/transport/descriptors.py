"""Lines over file descriptors, whatever those are: pipes, terminals, sockets, files.

`PipeTransport` reads lines from one descriptor and writes lines to another. Below it, `open_input` and `open_output`
read and write chunks of bytes beside an event loop: where the loop can watch a descriptor it does, where it cannot a
thread reads or writes instead (`holdfast.transport.threads`). Their callers do not know which.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections import deque
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import ConnectionLost
from holdfast.transport.lines import MAX_LINE_BYTES, LineSplitter
from holdfast.transport.port import MAX_UNSENT_BYTES
from holdfast.transport.threads import READ_BYTES, ThreadInput, ThreadOutput

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.transport.port import Receiver

BURST_BYTES = 1 << 20
"""When a single tick queues more than this it is sent at once, so that the queue stays short."""

PIECES_AT_ONCE = 64
"""So many pieces are written by one system call; systems take 1,024."""

HANGUP_SECONDS = 0.1
"""While reading is paused, how often to look whether the writer has hung up."""


class PipeTransport:
    """Reads lines from one descriptor and writes lines to another; owns both."""

    def __init__(self, read_fd: int, write_fd: int, *, limit: int = MAX_LINE_BYTES, threads: bool = False) -> None:
        self.max_line = limit
        self._loop = asyncio.get_running_loop()
        self._lines = LineSplitter(limit)
        self._receiver: Receiver | None = None
        self._ended = False
        self._reason: ConnectionLost | None = None
        self._closed = False
        self._queue: list[bytes] = []
        self._queued = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []  # who drains, and below how many bytes
        self._input = open_input(read_fd, self._chunk_read, threads=threads)
        self._output = open_output(write_fd, self._progressed, threads=threads)

    @property
    def unsent(self) -> int:
        """How many bytes wait for the other side to read."""
        return self._queued + self._output.unsent

    def open(self, receiver: Receiver) -> None:
        """Begin to read."""
        self._receiver = receiver
        if self._ended:  # by a signal perhaps, before anybody listened
            self._loop.call_soon(receiver.input_ended, self._reason)
        else:
            self._input.resume()

    def send(self, line: bytes) -> None:
        """Send a line at the end of this loop tick."""
        if self._output.broken:  # as it is once closed, too
            return
        if b"\n" in line:  # legal between the tokens of JSON that was written elsewhere, not on a line of ours
            line = line.replace(b"\n", b" ")
        if not self._queue:
            self._loop.call_soon(self.flush)
        self._queue.append(line)
        self._queued += len(line) + 1
        if self._queued > BURST_BYTES:
            self.flush()

    def send_now(self, line: bytes) -> None:
        """Send a line now."""
        if not self._output.broken:
            self._queue.append(line.replace(b"\n", b" "))
            self.flush()

    def send_block(self, *pieces: bytes) -> None:
        """Send whole lines now."""
        if not self._output.broken:
            self.flush()
            self._write(*pieces)

    def flush(self) -> None:
        """Send what is queued now instead of at the end of the tick."""
        if self._queue:
            self._queue.append(b"")  # so that the last line ends with a newline too
            data = b"\n".join(self._queue)
            self._queue.clear()
            self._queued = 0
            self._write(data)

    def _write(self, *pieces: bytes) -> None:
        self._output.write(*pieces)
        if self._output.unsent > MAX_UNSENT_BYTES:
            self._output.close()
            self._loop.call_soon(self._progressed)

    def pause(self) -> None:
        """Stop reading."""
        self._input.pause()

    def resume(self) -> None:
        """Read again."""
        if self._receiver is not None and not self._ended:
            self._input.resume()

    async def drain(self, below: int) -> None:
        """Wait until fewer than `below` bytes are unsent, or none ever will be."""
        self.flush()
        while self._output.unsent >= below and not self._output.broken:
            progress: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((below, progress))
            await progress

    def end_input(self, reason: ConnectionLost | None = None) -> None:
        """Stop reading and tell the receiver that the input has ended."""
        if not self._ended:
            self._ended = True
            self._reason = reason
            self._stop_reading()
            if self._receiver is not None:
                self._receiver.input_ended(reason)

    async def close(self, flush_for: float) -> None:
        """Stop reading, send what is unsent within `flush_for` seconds, close both descriptors."""
        if self._closed:
            return
        self._ended = True
        self._stop_reading()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(flush_for):
                    await self.drain(1)
        finally:
            self._closed = True
            self._queue.clear()
            self._output.close()
            self._wake(0)

    def _stop_reading(self) -> None:
        self._input.close()

    def _chunk_read(self, chunk: bytes) -> None:
        if self._ended or self._receiver is None:
            return
        if lines := self._lines.feed(chunk) if chunk else self._lines.end():
            self._receiver.lines_received(lines)
        if not chunk:
            self.end_input()

    def _progressed(self) -> None:
        if self._output.broken:
            # Nothing can be answered any more, so there is no use in hearing more.
            self.end_input(ConnectionLost("the other side does not read what it is sent"))
            self._wake(0)
        else:
            self._wake(self._output.unsent)

    def _wake(self, unsent: int) -> None:
        for below, progress in self._waiting:
            if unsent < below and not progress.done():
                progress.set_result(None)
        self._waiting = [waiter for waiter in self._waiting if not waiter[1].done()]


# Chunks of bytes


class Input(Protocol):
    """Reads chunks from a descriptor it owns. Starts paused; an empty chunk is the end."""

    def resume(self) -> None:
        """Read, from now on."""
        ...

    def pause(self) -> None:
        """Do not read until resumed."""
        ...

    def close(self) -> None:
        """Stop for good and close the descriptor."""
        ...


class Output(Protocol):
    """Writes chunks to a descriptor it owns, and tells of progress while anything waits."""

    unsent: int
    broken: bool

    def write(self, *pieces: bytes) -> None:
        """Write, now or as soon as there is room."""
        ...

    def close(self) -> None:
        """Stop for good and close the descriptor."""
        ...


def open_input(fd: int, on_chunk: Callable[[bytes], None], *, threads: bool = False) -> Input:
    """Return what reads a descriptor: the event loop where it can, else a thread."""
    if threads or not _watchable(fd):
        return ThreadInput(fd, on_chunk)
    return LoopInput(fd, on_chunk)


def open_output(fd: int, on_progress: Callable[[], None], *, threads: bool = False) -> Output:
    """Return what writes a descriptor: the event loop where it can be told not to block, else a thread."""
    if threads or sys.platform == "win32":
        return ThreadOutput(fd, on_progress)
    return LoopOutput(fd, on_progress)


def _watchable(fd: int) -> bool:
    loop = asyncio.get_running_loop()
    try:
        loop.add_reader(fd, _nothing)
        loop.remove_reader(fd)
    except (OSError, NotImplementedError):
        return False
    return True


def _nothing() -> None: ...


class LoopInput:
    """Reads when the loop says that reading will not block.

    A writer that hangs up is noticed even while reading is paused; otherwise a process whose client neither reads nor
    writes any more would wait for ever (A11). What such a writer left is no more than a pipe holds, and is read then.
    """

    def __init__(self, fd: int, on_chunk: Callable[[bytes], None]) -> None:
        self._fd = fd
        self._on_chunk = on_chunk
        self._loop = asyncio.get_running_loop()
        self._hung_up = False
        self._look: asyncio.TimerHandle | None = None

    def resume(self) -> None:
        if self._fd >= 0:
            self._stop_looking()
            self._loop.add_reader(self._fd, self._readable)

    def pause(self) -> None:
        if self._fd >= 0 and not self._hung_up:
            self._stop()
            self._look = self._loop.call_later(HANGUP_SECONDS, self._look_for_hangup)

    def close(self) -> None:
        if self._fd >= 0:
            self._stop()
            os.close(self._fd)
            self._fd = -1

    def _stop(self) -> None:
        self._stop_looking()
        self._loop.remove_reader(self._fd)

    def _stop_looking(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _look_for_hangup(self) -> None:
        assert sys.platform != "win32"  # where threads read
        watch = select.poll()
        watch.register(self._fd, getattr(select, "POLLRDHUP", 0))
        if watch.poll(0):
            self._hung_up = True
            self.resume()
        else:
            self.pause()

    def _readable(self) -> None:
        try:
            chunk = os.read(self._fd, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # a terminal that went away says EIO
            chunk = b""
        if not chunk:
            self._stop()
        self._on_chunk(chunk)


class LoopOutput:
    """Writes at once what the descriptor takes, and the rest when the loop says there is room."""

    def __init__(self, fd: int, on_progress: Callable[[], None]) -> None:
        self._fd = fd
        self._on_progress = on_progress
        self._loop = asyncio.get_running_loop()
        self._backlog: deque[memoryview] = deque()
        self.unsent: int = 0
        self.broken: bool = False
        assert sys.platform != "win32"  # where threads write
        self._was_blocking = os.get_blocking(fd)
        os.set_blocking(fd, False)

    def write(self, *pieces: bytes) -> None:
        unsent = sum(map(len, pieces))
        written = 0
        if not self._backlog:
            written = self._write_now(*pieces[:PIECES_AT_ONCE])
            if written == unsent or self.broken:
                return
            self._loop.add_writer(self._fd, self._writable)
        self.unsent += unsent - written
        for piece in pieces:
            if written < len(piece):
                self._backlog.append(memoryview(piece)[written:])
            written = max(0, written - len(piece))

    def close(self) -> None:
        assert sys.platform != "win32"
        if self._fd >= 0:
            self._loop.remove_writer(self._fd)
            os.set_blocking(self._fd, self._was_blocking)  # others may share what is behind it
            os.close(self._fd)
            self._fd = -1
            self._drop()

    def _writable(self) -> None:
        written = self._write_now(*islice(self._backlog, PIECES_AT_ONCE))
        self.unsent -= written
        while self._backlog and written >= len(self._backlog[0]):
            written -= len(self._backlog.popleft())
        if self._backlog:
            self._backlog[0] = self._backlog[0][written:]
        elif not self.broken:
            self._loop.remove_writer(self._fd)
        self._on_progress()

    def _write_now(self, *pieces: bytes | memoryview) -> int:
        """Write what there is room for, and return how many bytes that were. Without a reader the output is broken."""
        assert sys.platform != "win32"
        try:
            return os.write(self._fd, *pieces) if len(pieces) == 1 else os.writev(self._fd, pieces)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            if self._backlog:
                self._loop.remove_writer(self._fd)
            self._drop()
            self._loop.call_soon(self._on_progress)
            return 0

    def _drop(self) -> None:
        self.broken = True
        self._backlog.clear()
        self.unsent = 0
