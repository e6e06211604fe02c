"""The log of a turn as bytes: one record for each append, so that a damaged one is noticed.

A record is a header and encoded events, a newline after each. The header has their length, the number of the turn, a
checksum of the events and one of the header itself. Logs are emptied and used again: what a record says counts for its
own turn only. Behind the last record there may be zeros.

A turn may begin in its log alone. Its first record is then a *beginning*, marked in the header: the time, and what was
accepted, as a prompt.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADER = struct.Struct("<IIII")
_FIELDS = struct.Struct("<III")
_SEED = 0x484C0001
"""Where checksums of headers begin: no run of zeros is a header."""
_TURN_MASK = 0x7FFFFFFF
_BEGINS = 0x80000000
"""Marks a beginning, beside the number of the turn."""


class Beginning(NamedTuple):
    """How a turn began whose prompt is in its log alone."""

    at: int
    """When, in microseconds since 1970."""
    accepted: bytes
    """What was accepted: encoded events, with a newline between two of them."""


class LoggedTurn(NamedTuple):
    """What a log tells about a turn: its events in order, up to the first record that is damaged."""

    lines: list[bytes]
    is_damaged: bool
    """Whether there was more that cannot be read. A record that was never written to its end is no damage."""
    beginning: Beginning | None = None
    """How it began, where its log says so."""


def encode_record(turn: int, events: bytes) -> bytes:
    """Return the record of encoded events; they end with a newline."""
    return _encode(turn & _TURN_MASK, events)


def encode_beginning(turn: int, beginning: Beginning) -> bytes:
    """Return the first record of a turn that begins in its log."""
    return _encode(turn & _TURN_MASK | _BEGINS, b"%d\n%s\n" % beginning)


def _encode(mark: int, events: bytes) -> bytes:
    fields = _FIELDS.pack(len(events), mark, zlib.crc32(events))
    return b"%s%s%s" % (fields, zlib.crc32(fields, _SEED).to_bytes(4, "little"), events)


class _Record(NamedTuple):
    mark: int
    """The number of the turn, and whether it begins here; -1 where that cannot be read."""
    events: bytes | None
    """None where it is damaged."""
    end: int


def decode_log(log: bytes, turn: int) -> LoggedTurn:
    """Return what a log says about a turn; records of other turns are passed over."""
    lines: list[bytes] = []
    beginning: Beginning | None = None
    for mark, events, _ in _records(log):
        begins = mark == turn & _TURN_MASK | _BEGINS
        if events is None:
            # One that is damaged has begun all the same, and nobody can say with what.
            return LoggedTurn(lines, is_damaged=True, beginning=Beginning(0, b"") if begins else beginning)
        if begins:
            began_at, _, accepted = events[:-1].partition(b"\n")
            beginning = Beginning(int(began_at), accepted)
        elif mark == turn & _TURN_MASK:
            lines += events.split(b"\n")[:-1]
    return LoggedTurn(lines, is_damaged=False, beginning=beginning)


def decode_turns(log: bytes) -> dict[int, list[bytes]]:
    """Return what a log says about each turn that is in it, in order, up to the first record that is damaged."""
    turns: dict[int, list[bytes]] = {}
    for mark, events, _ in _records(log):
        if events is not None and not mark & _BEGINS:
            turns.setdefault(mark, []).extend(events.split(b"\n")[:-1])
    return turns


def readable_size(log: bytes) -> int:
    """Return where the last record that can be read ends: what is written behind it can be read as well."""
    return max((record.end for record in _records(log) if record.events is not None), default=0)


def _records(log: bytes) -> Iterator[_Record]:
    """Yield the records of a log. One without events comes last, where there is more that cannot be read."""
    at = 0
    while len(log) - at >= _HEADER.size:
        length, mark, events_sum, header_sum = _HEADER.unpack_from(log, at)
        if zlib.crc32(log[at : at + _FIELDS.size], _SEED) != header_sum:
            # A file system may have made room before the machine died, and have written nothing there.
            if log[at:].strip(b"\0"):
                yield _Record(-1, None, at)
            return
        at += _HEADER.size
        events = log[at : at + length]
        if len(events) < length:
            return  # its process died while it wrote
        if zlib.crc32(events) != events_sum:
            if not _is_torn(log, at, length):
                yield _Record(mark, None, at)
            return
        at += length
        yield _Record(mark, events, at)


def _is_torn(log: bytes, at: int, length: int) -> bool:
    """Return whether the record that stands there was not written to its end, so that nothing or zeros follow."""
    events = log[at : at + length]
    if events.endswith(b"\0"):  # which no event holds
        return not log[at + length :].strip(b"\0")
    return at + length == len(log) and not events.endswith(b"\n")


def decode_old_log(log: bytes) -> list[bytes]:
    """Return what a log of format 1 says: all lines up to the first that is not an object."""
    lines: list[bytes] = []
    for line in log.split(b"\n")[:-1]:
        try:
            if not isinstance(msgspec.json.decode(line), dict):
                break
        except (msgspec.DecodeError, UnicodeDecodeError):
            break
        lines.append(line)
    return lines
