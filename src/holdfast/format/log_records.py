"""The log of a turn as bytes: one record for each append, so that a damaged one is noticed.

A record is a header and encoded events, a newline after each. The header has their length, the number of the turn, a
checksum of the events and one of the header itself. Logs are emptied and used again: what a record says counts for its
own turn only.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import msgspec

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


def decode_log(log: bytes, turn: int) -> LoggedTurn:
    """Return what a log says about a turn; records of other turns are passed over."""
    lines: list[bytes] = []
    at = 0
    while len(log) - at >= _HEADER.size:
        length, of_turn, events_sum, header_sum = _HEADER.unpack_from(log, at)
        if zlib.crc32(log[at : at + _FIELDS.size], _SEED) != header_sum:
            # A file system may have made room before the machine died, and have written nothing there.
            return LoggedTurn(lines, is_damaged=bool(log[at:].strip(b"\0")))
        at += _HEADER.size
        events = log[at : at + length]
        if len(events) < length:
            break  # its process died while it wrote
        if zlib.crc32(events) != events_sum:
            is_torn = at + length == len(log) and not events.endswith(b"\n")
            return LoggedTurn(lines, is_damaged=not is_torn)
        if of_turn == turn & _TURN_MASK:
            lines += events.split(b"\n")[:-1]
        at += length
    return LoggedTurn(lines, is_damaged=False)


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
