"""A transport over two file descriptors, whatever they are: pipes, terminals, sockets, files."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.errors import ConnectionLost
from holdfast.transport.descriptors import open_input, open_output
from holdfast.transport.lines import MAX_LINE_BYTES, LineSplitter
from holdfast.transport.port import MAX_UNSENT_BYTES

if TYPE_CHECKING:
    from holdfast.transport.port import Receiver

BURST_BYTES = 1 << 20
"""When a single tick queues more than this it is sent at once, so that the queue stays short."""


class PipeTransport:
    """Reads lines from one descriptor and writes lines to another; owns both."""

    def __init__(self, read_fd: int, write_fd: int, *, limit: int = MAX_LINE_BYTES, threads: bool = False) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines = LineSplitter(limit)
        self._receiver: Receiver | None = None
        self._ended = False
        self._reason: ConnectionLost | None = None
        self._closed = False
        self._queue: list[bytes] = []
        self._queued = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
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
        if self._closed or self._output.broken:
            return
        if b"\n" in line:  # legal between the tokens of JSON that was written elsewhere, not on a line of ours
            line = line.replace(b"\n", b" ")
        if not self._queue:
            self._loop.call_soon(self.flush)
        self._queue.append(line)
        self._queued += len(line) + 1
        if self._queued > BURST_BYTES:
            self.flush()

    def send_block(self, *pieces: bytes) -> None:
        """Send whole lines at once."""
        if not (self._closed or self._output.broken):
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
        while self._output.unsent >= below and not (self._closed or self._output.broken):
            progress: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((below, progress))
            await progress

    def end_input(self, reason: ConnectionLost | None = None) -> None:
        """Behave as if the input had ended here."""
        if not self._ended:
            self._ended = True
            self._reason = reason
            self._stop_reading()
            if self._receiver is not None:
                self._receiver.input_ended(reason)

    async def close(self, flush_for: float) -> None:
        """Stop reading, send what is unsent within that many seconds, close both descriptors."""
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
        self._waiting = [it for it in self._waiting if not it[1].done()]
