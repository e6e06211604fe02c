"""Two transports linked in memory: for tests, and for an agent and a client in one process."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from holdfast.errors import ConnectionLost
from holdfast.transport.lines import MAX_LINE_BYTES, Oversized
from holdfast.transport.port import MAX_UNSENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.transport.port import Line, Receiver


def memory_pair(limit: int = MAX_LINE_BYTES) -> tuple[MemoryTransport, MemoryTransport]:
    """Create two transports, each of which receives what the other sends."""
    left, right = MemoryTransport(limit), MemoryTransport(limit)
    left.link(right)
    right.link(left)
    return left, right


class MemoryTransport:
    """One end of a `memory_pair`."""

    def __init__(self, limit: int) -> None:
        self.max_line = limit
        self._loop = asyncio.get_running_loop()
        self._other: MemoryTransport = self
        self._receiver: Receiver | None = None
        self._paused = False
        self._closed = False
        self._broken = False
        self._ended = False
        self._inbox: deque[Line] = deque()
        self._delivery_due = False
        self.unsent: int = 0
        self._drained = asyncio.Event()

    def link(self, other: MemoryTransport) -> None:
        """Set the end that receives what this one sends."""
        self._other = other

    def open(self, receiver: Receiver) -> None:
        """Begin to read."""
        self._receiver = receiver
        self._schedule()

    def send(self, line: bytes) -> None:
        """Hand a line to the other end at the end of this loop tick."""
        if self._nobody_reads():
            return
        self.unsent += len(line)
        if self.unsent <= MAX_UNSENT_BYTES:
            self._other._take(line)
        else:
            self._give_up()

    def send_now(self, line: bytes) -> None:
        """Hand a line to the other end now."""
        self.send(line)
        self.flush()

    def send_block(self, *pieces: bytes) -> None:
        """Hand whole lines to the other end."""
        for line in b"".join(pieces)[:-1].split(b"\n"):
            self.send(line)

    def flush(self) -> None:
        """Deliver now."""
        self._other._deliver()

    def pause(self) -> None:
        """Stop reading."""
        self._paused = True

    def resume(self) -> None:
        """Read again."""
        self._paused = False
        self._schedule()

    async def drain(self, below: int) -> None:
        """Wait until the other end has read enough."""
        while self.unsent >= below and not self._nobody_reads():
            self._drained.clear()
            await self._drained.wait()

    async def close(self, flush_for: float) -> None:
        """Close; the other end sees the end of its input after what was sent before."""
        if self._closed:
            return
        try:
            async with asyncio.timeout(flush_for):
                await self.drain(1)
        except TimeoutError:
            pass
        self._closed = True
        self._receiver = None
        self._inbox.clear()
        self._drained.set()
        self._other._drained.set()
        self._other._schedule()

    def _nobody_reads(self) -> bool:
        return self._closed or self._broken or self._other._closed

    def _give_up(self) -> None:
        self._broken = True
        self.unsent = 0
        self._drained.set()
        self._other._inbox.clear()
        self._other._schedule()
        self._schedule()

    def _take(self, line: bytes) -> None:
        too_long = len(line) > self.max_line
        self._inbox.append(Oversized.of(line, self.max_line) if too_long else line)
        self._schedule()

    def _schedule(self) -> None:
        if not self._delivery_due:
            self._delivery_due = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._delivery_due = False
        if self._receiver is None or self._ended:
            return
        if self._broken:
            self._end(ConnectionLost("the other side does not read what it is sent"))
        elif not self._paused:
            self._deliver_inbox(self._receiver)

    def _deliver_inbox(self, receiver: Receiver) -> None:
        if self._inbox:
            lines: Sequence[Line] = tuple(self._inbox)
            self._inbox.clear()
            self._other.unsent = 0
            self._other._drained.set()
            receiver.lines_received(lines)
        if (self._other._closed or self._other._broken) and not self._inbox:
            self._end(None)

    def _end(self, reason: ConnectionLost | None) -> None:
        if self._receiver is not None:
            self._ended = True
            self._receiver.input_ended(reason)
