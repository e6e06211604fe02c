"""Lines over a WebSocket, written straight to the socket: many frames in one call, unsent bytes in sight, abort.

`WebSocketTransport` begins behind the handshake and is the same at both ends; `connect_websocket` is the client's
handshake, `holdfast.server.remote.direct` the server's. Where a server of somebody else owns the socket,
`holdfast.transport.asgi` carries the lines instead.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.errors import ConnectionLost
from holdfast.transport.lines import MAX_LINE_BYTES
from holdfast.transport.port import MAX_UNSENT_BYTES
from holdfast.transport.websocket_frames import (
    CLOSE,
    NORMAL,
    PING,
    PONG,
    PROTOCOL_ERROR,
    TRY_AGAIN,
    Control,
    FrameReader,
    close_frame,
    frame,
    text_frames,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.transport.port import Line, Receiver

BURST_BYTES = 1 << 20
"""When a single tick queues more than this it is sent at once, so that the queue stays short."""

PING_SECONDS = 14.0
"""How long the other side may be silent before it is asked for a sign of life…"""

PONG_SECONDS = 14.0
"""…and how long it may take for that: a dead one is noticed within half a minute (H7)."""

STALL_SECONDS = 60.0
"""A reader that takes nothing for so long is given up, though it may live (H7)."""


class WebSocketTransport:
    """Carries lines over an open WebSocket.

    Whoever owns the protocol of the socket calls `data_received`, `connection_lost` and `resume_writing`.
    """

    def __init__(
        self,
        stream: asyncio.Transport,
        *,
        client: bool,
        limit: int = MAX_LINE_BYTES,
        ping: float | None = PING_SECONDS,
        pong: float = PONG_SECONDS,
        hold: Callable[[int], bool] | None = None,
    ) -> None:
        """Take over a socket behind its handshake, as its `client` or its server.

        `hold` is told how much of a message that is not complete is held; where it returns False there is no room.
        """
        self.max_line = limit
        self.closed_with: tuple[int | None, str] | None = None
        """The code and the reason of the other side's close frame, once there was one."""
        self.farewell: tuple[int, str] = (NORMAL, "")
        """The code and the reason of our own, when it is closed."""
        self.headers: dict[str, str] = {}
        """What the server's answer to the handshake said, by names in small letters."""
        self._early = b""
        self._stream = stream
        self._masked = client
        self._frames = FrameReader(limit, masked=not client)
        self._hold = hold
        self._loop = asyncio.get_running_loop()
        self._receiver: Receiver | None = None
        self._queue: list[bytes] = []
        self._queued = 0
        self._paused = False
        self._ended = False
        self._closing = False
        self._broken = False
        self._reason: ConnectionLost | None = None
        self._progress: list[asyncio.Future[None]] = []
        self._gone = asyncio.Event()
        self._heard = False
        self._ping_seconds, self._pong_seconds = ping, pong
        self._alive: asyncio.TimerHandle | None = None
        stream.set_write_buffer_limits(high=0)  # so that we hear when all is sent
        stream.pause_reading()
        self._schedule_ping()

    @property
    def unsent(self) -> int:
        """How many bytes wait for the other side to read."""
        return 0 if self._broken else self._queued + self._stream.get_write_buffer_size()

    def open(self, receiver: Receiver) -> None:
        """Begin to read."""
        self._receiver = receiver
        if self._ended:
            self._loop.call_soon(receiver.input_ended, self._reason)
        else:
            self._resume_reading()
            if self._early:
                self._loop.call_soon(self._take_early)

    # Sending

    def send(self, line: bytes) -> None:
        """Send a line at the end of this loop tick."""
        if self._broken or self._closing:
            return
        if b"\n" in line:
            line = line.replace(b"\n", b" ")
        if not self._queue:
            self._loop.call_soon(self.flush)
        self._queue.append(line)
        self._queued += len(line)
        if self._queued > BURST_BYTES:
            self.flush()

    def send_now(self, line: bytes) -> None:
        """Send a line now."""
        self.send(line)
        self.flush()

    def send_block(self, *pieces: bytes) -> None:
        """Send whole lines now."""
        if not (self._broken or self._closing):
            self.flush()
            self._write(block_frames(b"".join(pieces), masked=self._masked))

    def flush(self) -> None:
        """Send what is queued now instead of at the end of the tick."""
        if self._queue:
            lines, self._queue, self._queued = self._queue, [], 0
            self._write(text_frames(lines, masked=self._masked))

    def _write(self, frames: bytes) -> None:
        if self._broken:
            return
        if self._stream.is_closing():  # writing to a dead one would log a line each time
            self._break(ConnectionLost("the connection has ended"))
            return
        self._stream.write(frames)
        if self._stream.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._break(ConnectionLost("the other side does not read what it is sent"))

    async def drain(self, below: int) -> None:
        """Wait until fewer than `below` bytes are unsent, or none ever will be."""
        self.flush()
        while not self._broken and self._stream.get_write_buffer_size() >= below:
            progress: asyncio.Future[None] = self._loop.create_future()
            self._progress.append(progress)
            try:
                await progress
            finally:
                if progress in self._progress:
                    self._progress.remove(progress)

    def resume_writing(self) -> None:
        """Note that all is sent."""
        progress, self._progress = self._progress, []
        for waiting in progress:
            if not waiting.done():
                waiting.set_result(None)

    # Receiving

    def pause(self) -> None:
        """Stop reading."""
        self._paused = True
        if not self._stream.is_closing():
            self._stream.pause_reading()

    def resume(self) -> None:
        """Read again."""
        self._paused = False
        if self._receiver is not None:
            self._resume_reading()

    def _resume_reading(self) -> None:
        if not self._stream.is_closing():
            self._stream.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Take what the socket read."""
        self._heard = True
        try:
            received = self._frames.feed(data)
        except ConnectionLost as e:
            self._say_goodbye(PROTOCOL_ERROR, str(e))
            self._break(e)
            return
        if self._hold is not None and not self._hold(self._frames.held):
            self.cut(TRY_AGAIN, "too much is on its way at once")
            return
        lines: list[Line] = []
        for each in received:
            if not isinstance(each, Control):
                lines.append(each)
            elif each.opcode == PING:
                self._write(frame(PONG, each.payload, masked=self._masked))
            elif each.opcode == CLOSE:
                self._deliver(lines)
                self._close_received(each)
                return
        self._deliver(lines)

    def data_received_early(self, data: bytes) -> None:
        """Keep what came with the handshake until somebody reads."""
        self._early += data

    def _take_early(self) -> None:
        early, self._early = self._early, b""
        self.data_received(early)

    def _deliver(self, lines: list[Line]) -> None:
        if lines and self._receiver is not None and not (self._ended or self._closing):
            self._receiver.lines_received(lines)

    def _close_received(self, close: Control) -> None:
        self.closed_with = close.code, close.reason
        if not self._closing:
            self.flush()
            self._say_goodbye(close.code or NORMAL, "")
        self._gone.set()
        self._end(None)

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the socket is closed."""
        reason = self._reason
        if reason is None and error is not None:
            reason = ConnectionLost(f"the connection was lost: {error}")
        self._let_go(is_closed=True)
        self._end(reason)

    # Ending

    def end_input(self) -> None:
        """Stop reading, as if the other side had closed; whoever receives closes then."""
        self._end(None)

    async def close(self, flush_for: float) -> None:
        """Stop reading, send what is unsent within `flush_for` seconds, close the socket."""
        if self._closing:
            return
        self.flush()
        self._closing = self._ended = True
        try:
            if not self._broken:
                self._say_goodbye(*self.farewell)
                # Read on, or what is unread here could destroy on its way what was sent.
                self._resume_reading()
                with suppress(TimeoutError):
                    async with asyncio.timeout(flush_for):
                        await self.drain(1)
                        await self._gone.wait()
        finally:
            self._let_go()

    def cut(self, code: int, reason: str) -> None:
        """End at once: what is unsent is never sent."""
        if not self._broken:
            self._queue.clear()
            self._queued = 0
            self._say_goodbye(code, reason)
            self._break(ConnectionLost(reason))

    def _say_goodbye(self, code: int, reason: str) -> None:
        self._write(close_frame(code, reason, masked=self._masked))

    def _break(self, reason: ConnectionLost) -> None:
        """End at once: the other side neither reads nor makes sense."""
        self._reason = self._reason or reason
        self._let_go()
        self._loop.call_soon(self._end, self._reason)

    def _let_go(self, *, is_closed: bool = False) -> None:
        """Use the socket no more: close it, unless it `is_closed`. Then it is left alone: over TLS it raises."""
        if not self._broken:
            self._broken = True
            self._queue.clear()
            self._queued = 0
            if not is_closed:
                (self._stream.abort if self._stream.get_write_buffer_size() else self._stream.close)()
        if self._alive is not None:
            self._alive.cancel()
            self._alive = None
        self._gone.set()
        self.resume_writing()

    def _end(self, reason: ConnectionLost | None) -> None:
        if not self._ended:
            self._ended = True
            self._reason = reason
            if self._receiver is not None:
                self._receiver.input_ended(reason)

    # Signs of life

    def _schedule_ping(self) -> None:
        if self._ping_seconds is not None and not self._broken:
            self._heard = False
            self._alive = self._loop.call_later(self._ping_seconds, self._ask_for_a_sign)

    def _ask_for_a_sign(self) -> None:
        if self._heard and not self._stream.get_write_buffer_size():
            self._schedule_ping()
            return
        self._heard = False
        self._write(frame(PING, b"", masked=self._masked))
        if not self._broken:
            waiting = self._stream.get_write_buffer_size()
            stalled_at = self._loop.time() + STALL_SECONDS
            self._alive = self._loop.call_later(self._pong_seconds, self._look_for_a_sign, waiting, stalled_at)

    def _look_for_a_sign(self, waiting: int, stalled_at: float) -> None:
        """Give up a side that is silent and reads nothing; one that has much to read may be slow."""
        unsent = self._stream.get_write_buffer_size()
        if self._heard and not unsent:
            self._schedule_ping()
        elif unsent < waiting or self._paused or (self._heard and self._loop.time() < stalled_at):
            again = stalled_at if unsent >= waiting else self._loop.time() + STALL_SECONDS
            self._alive = self._loop.call_later(self._pong_seconds, self._look_for_a_sign, unsent, again)
        else:
            self._break(ConnectionLost("the other side gives no sign of life"))


def block_frames(block: bytes, *, masked: bool) -> bytes:
    """Return a block of whole lines as frames. A block that is shown to many is framed once."""
    if masked:
        return text_frames(block[:-1].split(b"\n"), masked=True)
    if _framed[0] is block:
        return _framed[1]
    frames = text_frames(block[:-1].split(b"\n"), masked=False)
    _framed[:] = (block, frames)
    return frames


_framed: list[bytes] = [b"", b""]
