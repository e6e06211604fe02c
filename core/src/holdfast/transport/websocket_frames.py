"""WebSocket frames (RFC 6455): lines to frames, and bytes to lines, in bounded memory. Pure.

A message is a line, or several: what is inside it is cut at newlines, as in a stream (H1). Binary messages are skipped.
No extension is spoken. Text is not checked to be UTF-8: whoever decodes a line tells its sender what is wrong with it,
and the connection lives on (A2).
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

from holdfast.errors import ConnectionLost
from holdfast.transport.lines import LineSplitter, Oversized

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA

NORMAL, GOING_AWAY, PROTOCOL_ERROR, POLICY, TOO_BIG, RESTART, TRY_AGAIN = 1000, 1001, 1002, 1008, 1009, 1012, 1013
"""Codes of a close frame."""

_FIN = 0x80
_MASKED = 0x80
_CONTROL_BYTES = 125
_HEADS = tuple(bytes((_FIN | TEXT, size)) for size in range(126))
"""The heads of short text frames without a mask, by size."""


@final
class Control(NamedTuple):
    """A close, ping or pong frame."""

    opcode: int
    payload: bytes

    @property
    def code(self) -> int | None:
        """The code of a close frame, if it has one."""
        return int.from_bytes(self.payload[:2]) if self.opcode == CLOSE and len(self.payload) >= 2 else None

    @property
    def reason(self) -> str:
        """The reason a close frame gives."""
        return self.payload[2:].decode(errors="replace")


Received: TypeAlias = bytes | Oversized | Control


def text_frames(lines: Iterable[bytes], *, masked: bool) -> bytes:
    """Return lines as text frames, one for each; a client masks its frames, a server does not."""
    if masked:
        return b"".join(frame(TEXT, line, masked=True) for line in lines)
    return b"".join([_head(len(line)) + line for line in lines])


def frame(opcode: int, payload: bytes, *, masked: bool) -> bytes:
    """Return one frame."""
    head = bytearray(_head(len(payload)))
    head[0] = _FIN | opcode
    if not masked:
        return bytes(head) + payload
    head[1] |= _MASKED
    key = os.urandom(4)
    return b"".join((head, key, _xor(payload, key)))


def close_frame(code: int, reason: str, *, masked: bool) -> bytes:
    """Return a close frame; a reason that is too long for one is cut."""
    said = reason.encode()[: _CONTROL_BYTES - 2].decode(errors="ignore").encode()
    return frame(CLOSE, code.to_bytes(2) + said, masked=masked)


@lru_cache(maxsize=1024)  # what is streamed has few sizes
def _head(size: int) -> bytes:
    if size < 126:
        return _HEADS[size]
    if size < 1 << 16:
        return b"\x81\x7e" + size.to_bytes(2)
    return b"\x81\x7f" + size.to_bytes(8)


def _xor(payload: bytes, key: bytes) -> bytes:
    """Return a payload with its mask put on, or taken off, which is the same."""
    size = len(payload)
    whole = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "little") ^ int.from_bytes(whole, "little")).to_bytes(size, "little")


class FrameReader:
    """Reads frames from chunks of bytes, whatever the chunks they arrive in."""

    __slots__ = ("_control", "_held", "_key", "_left", "_limit", "_masked", "_message", "_opcode", "_read", "_splitter")

    def __init__(self, limit: int, *, masked: bool) -> None:
        """`limit` is how long a line may be; `masked` says whether the other side has to mask its frames."""
        self._limit = limit
        self._masked = masked
        self._held = b""  # the beginning of a head that is not complete
        self._message: int | None = None  # the kind of the message that is being read
        self._splitter = LineSplitter(limit)
        self._control = bytearray()
        # The frame that is being read: its kind with the bit for the last of a message, its key, what is missing of it.
        self._opcode = 0
        self._key = b""
        self._left = -1
        self._read = 0

    @property
    def held(self) -> int:
        """How many bytes of a message that is not complete it holds."""
        return self._splitter.held

    def feed(self, chunk: bytes) -> list[Received]:
        """Take a chunk; return what is complete now. Raise `ConnectionLost` where it is no WebSocket frame."""
        received: list[Received] = []
        data = self._held + chunk if self._held else chunk
        self._held = b""
        at, end = 0, len(data)
        while True:
            if self._left < 0:
                after = self._read_head(data, at, end)
                if after < 0:
                    self._held = data[at:]
                    return received
                at = after
            piece = data[at : at + self._left]
            if self._left and not piece:  # the chunk ended with the head: no part of the frame was read yet
                return received
            at += len(piece)
            self._left -= len(piece)
            whole = not self._left and not self._read
            self._take(piece, received, whole=whole)
            if self._left:
                return received
            self._left = -1

    def _read_head(self, data: bytes, at: int, end: int) -> int:
        """Read the head of a frame; return where its payload begins, or -1 if not all of the head is there."""
        if end - at < 2:
            return -1
        first, second = data[at], data[at + 1]
        size, after = second & 0x7F, at + 2
        wide = {126: 2, 127: 8}.get(size, 0)
        masked = bool(second & _MASKED)
        if end < after + wide + 4 * masked:
            return -1
        if wide:
            size = int.from_bytes(data[after : after + wide])
            after += wide
        if masked:
            self._key = data[after : after + 4]
            after += 4
        self._check(first, size, masked=masked)
        self._opcode, self._left, self._read = first, size, 0
        return after

    def _check(self, first: int, size: int, *, masked: bool) -> None:
        opcode = first & 0x0F
        if first & 0x70:
            raise ConnectionLost("a frame uses an extension that was not agreed on")
        if masked != self._masked:
            raise ConnectionLost("a frame is masked the wrong way")
        if opcode >= CLOSE and (opcode > PONG or size > _CONTROL_BYTES or not first & _FIN):
            raise ConnectionLost("a control frame is not valid")
        continues = self._message is not None
        if BINARY < opcode < CLOSE or (opcode < CLOSE and continues is not (opcode == CONTINUATION)):
            raise ConnectionLost("a frame stands where it may not")
        if size >= 1 << 63:
            raise ConnectionLost("a frame has no valid size")

    def _take(self, piece: bytes, received: list[Received], *, whole: bool) -> None:
        """Take a piece of the current frame."""
        if self._masked and piece:
            turned = self._read & 3
            piece = _xor(piece, self._key[turned:] + self._key[:turned])
        self._read += len(piece)
        opcode, last = self._opcode & 0x0F, bool(self._opcode & _FIN)
        if opcode >= CLOSE:
            self._control += piece
            if not self._left:
                received.append(Control(opcode, bytes(self._control)))
                self._control.clear()
        elif whole and opcode == TEXT and last and len(piece) <= self._limit and b"\n" not in piece:
            received.append(piece)  # nearly always: one frame, one line
        else:
            self._take_part(opcode or self._message or TEXT, piece, received, ends=last and not self._left)

    def _take_part(self, message: int, piece: bytes, received: list[Received], *, ends: bool) -> None:
        """Take a part of a message that comes in several frames or chunks, or has several lines."""
        begins = self._message is None
        self._message = message
        if message == TEXT:
            received += self._splitter.feed(piece)
            if ends:
                rest = self._splitter.end()
                received += rest or ([b""] if begins and not piece else [])
        if ends:
            self._message = None
