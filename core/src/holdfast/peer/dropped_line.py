"""Lines that are neither handled nor answered: what a program prints besides messages, and messages that are broken."""

from __future__ import annotations

import logging
from typing import final

import msgspec

log: logging.Logger = logging.getLogger(__name__)

HEAD_BYTES = 4_096
"""So much of a dropped line, the beginning of it, is shown to whoever is told of it."""

_NAMES = (b'"jsonrpc"', b'"method"', b'"result"', b'"error"')


@final
class DroppedLine(msgspec.Struct, frozen=True):
    """A line that was neither handled nor answered."""

    reason: str
    size: int
    head: bytes
    """Its first bytes."""
    was_message: bool
    """Whether it was meant to be a message, and could not be read; programs print all sorts of things."""


def dropped_line(reason: str, line: bytes, size: int, *, unreadable: bool) -> DroppedLine:
    """Return what is known of a line that was dropped; one that is `unreadable` may have been a message."""
    head = line[:HEAD_BYTES]
    looks_like_message = head.lstrip()[:1] in (b"{", b"[") and any(name in head for name in _NAMES)
    return DroppedLine(reason, size, head, unreadable and looks_like_message)


def log_dropped_line(dropped: DroppedLine) -> None:
    """Log a line that was dropped; what a program prints that knows nothing of us is worth less of a warning."""
    level = logging.WARNING if dropped.head.lstrip()[:1] in (b"{", b"[") else logging.INFO
    log.log(level, "A line of %d bytes was dropped (%s): %r", dropped.size, dropped.reason, dropped.head[:200])
