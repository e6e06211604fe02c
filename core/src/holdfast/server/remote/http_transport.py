"""A connection over HTTP as a transport: what is POSTed comes in, what goes out is put on streams of events (H2).

Which stream a line goes to is decided by whoever makes the transport; streams and their readers may come and go.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.errors import ConnectionLost
from holdfast.server.remote.event_streams import EventStream
from holdfast.transport.lines import MAX_LINE_BYTES
from holdfast.transport.port import MAX_UNSENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.transport import Line, Receiver


class HttpTransport:
    """Carries lines between POSTs and streams."""

    def __init__(self, route: Callable[[bytes], EventStream | None], *, limit: int = MAX_LINE_BYTES) -> None:
        """`route` returns the stream for a line, or for a block of lines by its first; None drops it."""
        self.max_line = limit
        self._route = route
        self._streams: set[EventStream] = set()
        self._loop = asyncio.get_running_loop()
        self._receiver: Receiver | None = None
        self._may_read = asyncio.Event()
        self._in_order = asyncio.Lock()  # held by the line that is next: it is fair, as the event is not
        self._progress = asyncio.Event()
        self._closed = self._ended = self._broken = False
        self._reason: ConnectionLost | None = None

    # What comes in

    async def deliver(self, line: Line) -> bool:
        """Take a line, when the receiver takes any; return False where none will be taken."""
        async with self._in_order:
            while not self._may_read.is_set() and not self._ended:
                await self._may_read.wait()
            if self._ended or self._receiver is None:
                return False
            self._receiver.lines_received([line])
            return True

    def open(self, receiver: Receiver) -> None:
        """Begin to read."""
        self._receiver = receiver
        if self._ended:
            self._loop.call_soon(receiver.input_ended, self._reason)
        else:
            self._may_read.set()

    def pause(self) -> None:
        """Stop reading: POSTs have to wait."""
        self._may_read.clear()

    def resume(self) -> None:
        """Read again."""
        if self._receiver is not None:
            self._may_read.set()

    def end_input(self, reason: ConnectionLost | None = None) -> None:
        """Tell the receiver that nothing more will come."""
        if not self._ended:
            self._ended = True
            self._reason = reason
            self._may_read.set()
            self._progress.set()
            if self._receiver is not None:
                self._receiver.input_ended(reason)

    # What goes out

    @property
    def unsent(self) -> int:
        """How many bytes wait for the other side to read."""
        return sum(stream.unsent for stream in self._streams)

    def add_stream(self) -> EventStream:
        """Create a stream."""
        stream = EventStream()
        stream.on_taken = self._progress.set
        self._streams.add(stream)
        return stream

    def drop_stream(self, stream: EventStream) -> None:
        """Let a stream end behind what it has."""
        stream.finish()
        self._streams.discard(stream)

    def send(self, line: bytes) -> None:
        """Put a line on its stream."""
        if b"\n" in line:
            line = line.replace(b"\n", b" ")
        self._append(self._route(line), [line], lasting=True)

    send_now = send

    def send_block(self, *pieces: bytes) -> None:
        """Put whole lines on the stream of the first of them."""
        block = b"".join(pieces)
        self._append(self._route(block), block[:-1].split(b"\n"), lasting=False)

    def append_run(self, stream: EventStream, before: tuple[int, int, int], lines: list[bytes]) -> None:
        """Put the lines of events that follow a position on a stream, one line for each."""
        if not (self._closed or self._broken):
            stream.append_run(before, lines)
            self._check_unsent(stream)

    def _append(self, stream: EventStream | None, lines: list[bytes], *, lasting: bool) -> None:
        if stream is None or self._closed or self._broken:
            return
        for line in lines:
            stream.append(line, lasting=lasting)
        self._check_unsent(stream)

    def _check_unsent(self, stream: EventStream) -> None:
        """Give up a connection whose stream is not read."""
        if stream.unsent > MAX_UNSENT_BYTES:
            self._loop.call_soon(self.end_input, ConnectionLost("the other side does not read what it is sent"))
            self._break()

    def cut(self, code: int, reason: str) -> None:
        """End at once: what is unsent is never sent."""
        del code  # a stream of events has none
        self._break()
        self.end_input(ConnectionLost(reason))

    def _break(self) -> None:
        self._broken = True
        for each in self._streams:
            each.clear()

    def flush(self) -> None:
        """Do nothing: readers wake up at the end of the tick."""

    async def drain(self, below: int) -> None:
        """Wait until fewer than `below` bytes are unsent, or none ever will be."""
        while self.unsent >= below and not (self._ended or self._broken or self._closed):
            self._progress.clear()
            await self._progress.wait()

    async def close(self, flush_for: float) -> None:
        """Stop reading, let readers take what is unsent within `flush_for` seconds, end all streams."""
        if self._closed:
            return
        self._ended = True
        self._may_read.set()
        for stream in self._streams:
            stream.finish()
        with suppress(TimeoutError):
            async with asyncio.timeout(flush_for):
                while any(stream.reader is not None or stream.unsent for stream in self._streams):
                    self._progress.clear()
                    await self._progress.wait()
        self._closed = True
        for stream in self._streams:
            stream.clear()
        self._progress.set()
