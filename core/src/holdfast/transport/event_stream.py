"""Server-sent events: lines to events with ids, and bytes back to lines. Pure."""

from __future__ import annotations

from typing import NamedTuple, final

from holdfast.transport.lines import LineSplitter, Oversized

KEEPALIVE = b":\n\n"
"""A comment: it says nothing, and keeps those in between from closing a stream that is quiet."""

_FIELD_BYTES = 64
"""What may stand in front of a line, beside its own bytes."""


@final
class ReceivedEvent(NamedTuple):
    """An event: a line, and where in the stream it stands."""

    line: bytes | Oversized
    id: str | None


def event(line: bytes, id_: str) -> bytes:
    """Return a line as an event."""
    return b"id: %s\ndata: %s\n\n" % (id_.encode(), line)


def run_of_events(lines: list[bytes], before_number: str, first: int, after_number: str) -> list[bytes]:
    """Return lines as events whose ids count from `first`, with something before and something after the number."""
    before, after = b"id: %s" % before_number.encode(), b"%s\ndata: " % after_number.encode()
    return [b"%s%d%s%s\n\n" % (before, number, after, line) for number, line in enumerate(lines, first)]


class EventReader:
    """Reads events from chunks of bytes, whatever the chunks they arrive in."""

    __slots__ = ("_data", "_id", "_limit", "_lines")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lines = LineSplitter(limit + _FIELD_BYTES)
        self._data: list[bytes | Oversized] = []
        self._id: str | None = None

    def feed(self, chunk: bytes) -> list[ReceivedEvent]:
        """Take a chunk; return the events that are complete now."""
        events: list[ReceivedEvent] = []
        for raw in self._lines.feed(chunk):
            if isinstance(raw, Oversized):
                head = raw.head.removeprefix(b"data:").removeprefix(b" ")
                self._data.append(raw._replace(head=head, limit=self._limit, size=raw.size - 6))
                continue
            line = raw.removesuffix(b"\r")
            if not line:
                if self._data:
                    events.append(ReceivedEvent(self._joined(), self._id))
                self._data = []
            else:
                self._field(line)
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value if len(value) <= self._limit else Oversized.of(value, self._limit))
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")

    def _joined(self) -> bytes | Oversized:
        """Return what the data of an event is; that of several lines is JSON, which a space harms as little."""
        if len(self._data) == 1:
            return self._data[0]
        pieces = [piece if isinstance(piece, bytes) else piece.head for piece in self._data]
        return b" ".join(pieces)
