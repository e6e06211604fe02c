"""Lines over a WebSocket that another server owns: through ASGI's `receive` and `send`, one message at a time.

It works wherever ASGI does. Where the server is our own, `holdfast.transport.websocket` does the same for a tenth of
the time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.errors import ConnectionLost
from holdfast.transport.lines import MAX_LINE_BYTES, Oversized
from holdfast.transport.port import MAX_UNSENT_BYTES
from holdfast.transport.websocket_frames import NORMAL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from holdfast.transport.port import Line, Receiver

STALL_SECONDS = 60.0
"""A reader that takes nothing for so long is given up (H7)."""


class AsgiWebSocketTransport:
    """Carries lines over a WebSocket that was accepted. Both directions have a task of their own."""

    def __init__(
        self,
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
        *,
        limit: int = MAX_LINE_BYTES,
    ) -> None:
        self.max_line = limit
        self.unsent: int = 0
        self.farewell: tuple[int, str] = (NORMAL, "")
        self._receive, self._send = receive, send
        self._loop = asyncio.get_running_loop()
        self._receiver: Receiver | None = None
        self._queue: deque[bytes] = deque()
        self._news, self._sent = asyncio.Event(), asyncio.Event()
        self._may_read = asyncio.Event()
        self._closing = self._ended = False
        self._reason: ConnectionLost | None = None
        self._reading = self._loop.create_task(self._read(), name="read a WebSocket")
        self._writing = self._loop.create_task(self._write(), name="write a WebSocket")

    def open(self, receiver: Receiver) -> None:
        """Begin to read."""
        self._receiver = receiver
        if self._ended:
            self._loop.call_soon(receiver.input_ended, self._reason)
        else:
            self._may_read.set()

    def send(self, line: bytes) -> None:
        """Send a line as soon as the server takes it."""
        self._queue_lines([line.replace(b"\n", b" ") if b"\n" in line else line])

    send_now = send

    def send_block(self, *pieces: bytes) -> None:
        """Send whole lines."""
        self._queue_lines(b"".join(pieces)[:-1].split(b"\n"))

    def _queue_lines(self, lines: list[bytes]) -> None:
        if self._closing or self._writing.done():
            return
        self._queue += lines
        self.unsent += sum(map(len, lines))
        self._news.set()
        if self.unsent > MAX_UNSENT_BYTES:
            self._give_up("the other side does not read what it is sent")

    def flush(self) -> None:
        """Do nothing: what is queued leaves as soon as the server takes it."""

    def pause(self) -> None:
        """Stop reading."""
        self._may_read.clear()

    def resume(self) -> None:
        """Read again."""
        if self._receiver is not None:
            self._may_read.set()

    async def drain(self, below: int) -> None:
        """Wait until fewer than `below` bytes are unsent, or none ever will be."""
        while self.unsent >= below and not self._writing.done():
            self._sent.clear()
            await self._sent.wait()

    async def close(self, flush_for: float) -> None:
        """Send what is unsent within `flush_for` seconds, then close."""
        if self._closing:
            return
        self._closing = self._ended = True
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(flush_for):
                    await self.drain(1)
                    if not self._writing.done():
                        code, reason = self.farewell
                        await self._send({"type": "websocket.close", "code": code, "reason": reason})
                        self._may_read.set()
                        await asyncio.wait({self._reading})
        except Exception:  # noqa: BLE001, S110  (the client went away meanwhile; each server says so in its own way)
            pass
        finally:
            self._stop()
            await asyncio.wait({self._reading, self._writing})

    def cut(self, code: int, reason: str) -> None:
        """End at once: what is unsent is never sent."""
        self.farewell = code, reason
        self._give_up(reason)

    def _stop(self) -> None:
        self._reading.cancel()
        self._writing.cancel()
        self._queue.clear()
        self.unsent = 0
        self._sent.set()

    def _give_up(self, why: str) -> None:
        self._end(ConnectionLost(why))
        self._stop()

    async def _read(self) -> None:
        reason: ConnectionLost | None = None
        try:
            await self._may_read.wait()
            while (message := await self._receive())["type"] == "websocket.receive":
                text = message.get("text")
                if text is not None and not self._ended and self._receiver is not None:
                    self._receiver.lines_received(self._lines(text.encode(errors="replace")))
                await self._may_read.wait()
        except Exception as e:  # noqa: BLE001  (each server has exceptions of its own)
            reason = ConnectionLost(f"the connection was lost: {e}")
        self._end(reason)
        self._writing.cancel()
        self._sent.set()

    def _lines(self, message: bytes) -> list[Line]:
        """Cut a message into lines; a newline at its end makes no other one (H1)."""
        lines = message.removesuffix(b"\n").split(b"\n")
        return [line if len(line) <= self.max_line else Oversized.of(line, self.max_line) for line in lines]

    async def _write(self) -> None:
        try:
            async with asyncio.timeout(None) as stalled:
                while True:
                    await self._write_queued(stalled)
                    stalled.reschedule(None)
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            self._end(ConnectionLost("the other side does not read what it is sent"))
        except Exception as e:  # noqa: BLE001
            self._end(ConnectionLost(f"the connection was lost: {e}"))
        finally:
            self._queue.clear()
            self.unsent = 0
            self._sent.set()

    async def _write_queued(self, stalled: asyncio.Timeout) -> None:
        """Send what is queued; time runs out where nothing of it is taken for so long."""
        noted = float("-inf")
        while self._queue:
            if (now := self._loop.time()) > noted + STALL_SECONDS / 60:  # not for each: that takes its time
                noted = now
                stalled.reschedule(now + STALL_SECONDS)
            line = self._queue.popleft()
            await self._send({"type": "websocket.send", "text": line.decode(errors="replace")})
            self.unsent -= len(line)
            self._sent.set()

    def _end(self, reason: ConnectionLost | None) -> None:
        if not self._ended:
            self._ended = True
            self._reason = reason
            if self._receiver is not None:
                self._loop.call_soon(self._receiver.input_ended, reason)
