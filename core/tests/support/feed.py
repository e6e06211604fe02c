"""A transport whose input is fed by hand, byte by byte if need be, and whose output is kept as a list.

The lines are cut by the real `LineSplitter`; what is left out is the operating system, so that the laws and the
torture can try hundreds of thousands of inputs a minute.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.transport.lines import MAX_LINE_BYTES, LineSplitter

if TYPE_CHECKING:
    from holdfast.transport import Receiver


class FeedTransport:
    """See above. Never back-pressed: whoever feeds reads along."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self.max_line = limit
        self._lines = LineSplitter(limit)
        self._receiver: Receiver | None = None
        self.sent: list[bytes] = []
        self.unsent = 0
        self.paused = False
        self.resumed = asyncio.Event()

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def feed(self, chunk: bytes) -> None:
        """Let bytes arrive."""
        assert self._receiver is not None
        if lines := self._lines.feed(chunk):
            self._receiver.lines_received(lines)

    def end(self) -> None:
        """Let the input end, in the middle of a line perhaps."""
        assert self._receiver is not None
        if lines := self._lines.end():
            self._receiver.lines_received(lines)
        self._receiver.input_ended(None)

    def send(self, line: bytes) -> None:
        self.sent.append(line)

    def send_now(self, line: bytes) -> None:
        self.send(line)

    def send_block(self, *pieces: bytes) -> None:
        self.sent += b"".join(pieces)[:-1].split(b"\n")

    def flush(self) -> None: ...

    def pause(self) -> None:
        self.paused = True
        self.resumed.clear()

    def resume(self) -> None:
        self.paused = False
        self.resumed.set()

    async def drain(self, below: int) -> None: ...

    async def close(self, flush_for: float) -> None: ...
