"""The log of a turn as bytes: one record for each append, so that a damaged one is noticed.

A record is a header and encoded events, a newline after each. The header has their length, the number of the turn, a
checksum of the events and one of the header itself. Logs are emptied and used again: what a record says counts for its
own turn only.
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
_TURN_MASK = 0xFFFFFFFF


class LoggedTurn(NamedTuple):
    """What a log tells about a turn: its events in order, up to the first record that is damaged."""

    lines: list[bytes]
    is_damaged: bool
    """Whether there was more that cannot be read. A record that was never written to its end is no damage."""


def encode_record(turn: int, events: bytes) -> bytes:
    """Return the record of encoded events; they end with a newline."""
    fields = _FIELDS.pack(len(events), turn & _TURN_MASK, zlib.crc32(events))
    return b"%s%s%s" % (fields, zlib.crc32(fields, _SEED).to_bytes(4, "little"), events)


class _Record(NamedTuple):
    turn: int
    events: bytes
    end: int


def decode_log(log: bytes, turn: int) -> LoggedTurn:
    """Return what a log says about a turn; records of other turns are passed over."""
    lines: list[bytes] = []
    for record in _records(log):
        if record is None:
            return LoggedTurn(lines, is_damaged=True)
        if record.turn == turn & _TURN_MASK:
            lines += record.events.split(b"\n")[:-1]
    return LoggedTurn(lines, is_damaged=False)


def decode_turns(log: bytes) -> dict[int, list[bytes]]:
    """Return what a log says about each turn that is in it, in order, up to the first record that is damaged."""
    turns: dict[int, list[bytes]] = {}
    for record in _records(log):
        if record is not None:
            turns.setdefault(record.turn, []).extend(record.events.split(b"\n")[:-1])
    return turns


def readable_size(log: bytes) -> int:
    """Return where the last record that can be read ends: what is written behind it can be read as well."""
    end = 0
    for record in _records(log):
        end = end if record is None else record.end
    return end


def _records(log: bytes) -> Iterator[_Record | None]:
    """Yield the records of a log. None comes last, where there is more that cannot be read."""
    at = 0
    while len(log) - at >= _HEADER.size:
        length, turn, events_sum, header_sum = _HEADER.unpack_from(log, at)
        if zlib.crc32(log[at : at + _FIELDS.size], _SEED) != header_sum:
            # A file system may have made room before the machine died, and have written nothing there.
            if log[at:].strip(b"\0"):
                yield None
            return
        at += _HEADER.size
        events = log[at : at + length]
        if len(events) < length:
            return  # its process died while it wrote
        if zlib.crc32(events) != events_sum:
            is_torn = at + length == len(log) and not events.endswith(b"\n")
            if not is_torn:
                yield None
            return
        at += length
        yield _Record(turn, events, at)


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
