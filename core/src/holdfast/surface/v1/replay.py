"""Stored lines as version 1 sends them, without decoding; `holdfast.format.lines` says what the marks in them mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.format.lines import CALL, CLOSE, OPEN, OTHER

if TYPE_CHECKING:
    from collections.abc import Iterator


def runs(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Cut a block into runs: a line that has to be decoded, and the plain lines behind it. Either may be missing."""
    if OTHER not in block:
        yield b"", block
        return
    before, *rest = (b"\n" + block).split(b"\n" + OTHER)
    if before:
        yield b"", before[1:]
    for run in rest:
        other, _, plain = run.partition(b"\n")
        yield other, plain


def cut(plain: bytes) -> bytes:
    """Return plain lines without their marks: a message is one chunk, a tool call a `tool_call`."""
    return plain.replace(CALL, b"").replace(CLOSE, b"").replace(OPEN, b'_chunk","content":')
