"""Outgoing streams of server-sent events: what waits, what was sent and may be asked for again, and who reads.

A stream outlives its readers. A newer reader replaces the older (H4); one that names the last event it has goes on
right behind that one, as long as it is still kept here.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.transport.event_stream import KEEPALIVE, event, run_of_events

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

KEPT_BYTES = 1 << 20
"""So much of what was sent is kept for a reader whose connection was cut."""

ANSWERS = 256
"""So many answers and questions are kept beyond that."""

BATCH_BYTES = 256 << 10
"""So much is given to the server at once."""

KEEPALIVE_SECONDS = 15.0

STALL_SECONDS = 60.0
"""A reader that takes nothing for so long is given up (H7)."""


_DIGITS = 18
"""So many has a number in an id, at most."""


class _Events(NamedTuple):
    """One event, or several in a row whose ids differ in one number."""

    encoded: list[bytes]
    size: int
    before_number: str
    first_number: int
    after_number: str
    place: tuple[int, ...]
    """The position of the first and its number there; nothing where it has no position."""
    lasting: bool = False
    """Whether it is kept apart from the journal: an answer, or a question."""

    def index_of(self, id_: str) -> int | None:
        """Return which of them has an id; None where it is another's."""
        number = id_.removeprefix(self.before_number).removesuffix(self.after_number)
        if not number.isdecimal() or len(number) > _DIGITS:
            return None
        index = int(number) - self.first_number
        named = f"{self.before_number}{self.first_number + index}{self.after_number}"
        return index if 0 <= index < len(self.encoded) and named == id_ else None

    def cut(self, count: int) -> tuple[_Events, _Events]:
        """Return the first so many of several, and the others."""
        size = sum(map(len, self.encoded[:count]))
        rest = self._replace(
            encoded=self.encoded[count:], size=self.size - size, first_number=self.first_number + count
        )
        return self._replace(encoded=self.encoded[:count], size=size), rest


_END = (1 << 62,)
"""A place behind all others."""


class EventStream:
    """The lines for one stream, each with an id."""

    def __init__(self) -> None:
        self.unsent: int = 0
        """How many bytes no reader has taken."""
        self.finished: bool = False
        """Whether nothing more will come: the reader is sent what is left, and then the end."""
        self.reader: object | None = None
        """Whoever reads it now."""
        self.was_read: bool = False
        """Whether anybody ever did."""
        self.on_taken: Callable[[], None] | None = None
        """Is called when a reader has taken something, or has come or gone."""
        self._sent: deque[_Events] = deque()
        self._sent_bytes = 0
        self._unconfirmed: deque[_Events] = deque(maxlen=ANSWERS)  # answers and questions of before
        self._waiting: deque[_Events] = deque()
        self._unplaced = os.urandom(4).hex()
        self._position: tuple[int, ...] = ()
        self._prefix = self._unplaced
        self._frame = 0
        self._lasting: deque[_Events] = deque()
        self._rewinding = False
        self._news = asyncio.Event()

    def stand_at(self, position: tuple[int, ...], frame: int = 0) -> None:
        """Name the position of the lines that follow: numbers; their ids begin with it. None is nowhere."""
        if position != self._position:
            self._append_lasting(position)
            self._position, self._frame = position, frame
            self._prefix = ".".join(map(str, position)) or self._unplaced

    def append(self, line: bytes, *, lasting: bool = False) -> None:
        """Take a line; a `lasting` one is sent again also where the rest comes from elsewhere."""
        self._frame += 1
        encoded = event(line, f"{self._prefix}.{self._frame}")
        place = (*self._position, self._frame) if self._position else ()
        appended = _Events([encoded], len(encoded), f"{self._prefix}.", self._frame, "", place, lasting)
        if lasting and self._rewinding:
            self._lasting.append(appended._replace(place=_END))
        else:
            self._append(appended)

    def append_run(self, before: tuple[int, int, int], lines: list[bytes]) -> None:
        """Take the lines of events that follow a position: each takes the next position, and has one line."""
        epoch, turn, number = before
        if self._rewinding or self._lasting:
            for at, line in enumerate(lines, number + 1):
                self.stand_at((epoch, turn, at))
                self.append(line)
            return
        encoded = run_of_events(lines, f"{epoch}.{turn}.", number + 1, ".1")
        place = (epoch, turn, number + 1, 1)
        self._append(_Events(encoded, sum(map(len, encoded)), f"{epoch}.{turn}.", number + 1, ".1", place))
        self._position, self._frame = (epoch, turn, number + len(lines)), 1
        self._prefix = f"{epoch}.{turn}.{number + len(lines)}"

    def _append(self, appended: _Events) -> None:
        self._waiting.append(appended)
        self.unsent += appended.size
        self._news.set()

    def rewind(self, place: tuple[int, ...]) -> None:
        """Forget what came after a place, which is appended again; what lasts comes in its place again."""
        known = (*self._unconfirmed, *self._sent, *self._waiting)
        lasting = (each if each.place else each._replace(place=_END) for each in known)
        after = [each for each in lasting if each.lasting and each.place > place]
        self._sent.clear()
        self._unconfirmed.clear()
        self._waiting.clear()
        self.unsent = self._sent_bytes = 0
        self._lasting = deque(after)
        self._rewinding = True
        self._position, self._frame = place[:-1], place[-1]
        self._prefix = ".".join(map(str, self._position))

    def rewound(self) -> None:
        """Note that all was appended again."""
        self._rewinding = False
        self._append_lasting(())

    def _append_lasting(self, before: tuple[int, ...]) -> None:
        while self._lasting and (not before or self._lasting[0].place < before):
            self._append(self._lasting.popleft())

    def finish(self) -> None:
        """Let the stream end behind what was appended."""
        self.finished = True
        self._news.set()

    def clear(self) -> None:
        """Forget everything: nobody will read it."""
        self._waiting.clear()
        self._sent.clear()
        self.unsent = self._sent_bytes = 0
        self.finish()
        self.taken()

    def read_from(self, last_event_id: str | None) -> bool:
        """Go back to right behind an event; return whether that is possible. Without one, go on where it was left."""
        if last_event_id is None:
            return True
        if all(sent.index_of(last_event_id) is None for sent in self._sent):
            return False
        while (index := self._sent[-1].index_of(last_event_id)) is None:
            self._take_back(self._sent.pop())
        if index + 1 < len(self._sent[-1].encoded):
            seen, unseen = self._sent.pop().cut(index + 1)
            self._sent.append(seen)
            self._take_back(unseen)
        return True

    def _take_back(self, sent: _Events) -> None:
        self._sent_bytes -= sent.size
        self.unsent += sent.size
        self._waiting.appendleft(sent)

    def attach(self) -> object:
        """Become the reader; whoever read before is sent the end."""
        self.reader = reader = object()
        self.was_read = True
        self._news.set()
        self.taken()
        return reader

    def detach(self, reader: object) -> None:
        """Read no more."""
        if self.reader is reader:
            self.reader = None
            self.taken()

    async def take(self, reader: object) -> bytes | None:
        """Return what waits, joined, as soon as anything does; nothing at the end, or when another reads."""
        while not self._waiting:
            if self.finished or self.reader is not reader:
                return None
            self._news.clear()
            await self._news.wait()
        if self.reader is not reader:
            return None
        batch: list[bytes] = []
        size = 0
        while self._waiting and size < BATCH_BYTES:
            taken = self._waiting.popleft()
            batch += taken.encoded
            size += taken.size
            self._sent.append(taken)
        self._sent_bytes += size
        self.unsent -= size
        while self._sent_bytes > KEPT_BYTES and len(self._sent) > 1:
            oldest = self._sent.popleft()
            self._sent_bytes -= oldest.size
            if oldest.lasting:
                self._unconfirmed.append(oldest)
        return b"".join(batch)

    def wake(self) -> None:
        """Let whoever waits for something to read look again."""
        self._news.set()

    def taken(self) -> None:
        """Tell whoever wants to know that something was taken, or that a reader came or left."""
        if self.on_taken is not None:
            self.on_taken()


HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


async def serve_events(
    stream: EventStream,
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    *,
    abort: Callable[[], None] | None = None,
) -> None:
    """Answer a GET with a stream, until either side ends it.

    `abort` cuts the connection where the server has a way to: closing it would wait for a reader that does not read.
    """
    reader = stream.attach()
    gone = asyncio.get_running_loop().create_task(_disconnected(receive), name="end of a stream's reader")
    gone.add_done_callback(lambda _: _leave(stream, reader))
    try:
        async with asyncio.timeout(STALL_SECONDS) as stalled:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await send({"type": "http.response.body", "body": KEEPALIVE, "more_body": True})
            while True:
                stalled.reschedule(None)
                try:
                    async with asyncio.timeout(KEEPALIVE_SECONDS):
                        batch = await stream.take(reader)
                except TimeoutError:
                    batch = KEEPALIVE
                stalled.reschedule(asyncio.get_running_loop().time() + STALL_SECONDS)
                if batch is None:
                    break
                await send({"type": "http.response.body", "body": batch, "more_body": True})
                stream.taken()
            await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        if abort is not None:
            abort()
    finally:
        stream.detach(reader)
        gone.cancel()


def _leave(stream: EventStream, reader: object) -> None:
    if stream.reader is reader:
        stream.detach(reader)
        stream.wake()


async def _disconnected(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
