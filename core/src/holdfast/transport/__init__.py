"""Transports move frames and know no meaning: lines of bytes in, lines of bytes out.

All of them obey one contract (`Transport`, `Receiver`): `send` never blocks and never fails, what is sent within one
loop tick leaves in one system call, reading can be paused, and the end of the input is told exactly once.
"""

from typing import TYPE_CHECKING

from holdfast.transport.lines import MAX_LINE_BYTES, Oversized
from holdfast.transport.memory import memory_pair
from holdfast.transport.port import Line, Receiver, Transport
from holdfast.transport.stdio import open_stdio

if TYPE_CHECKING:
    from holdfast.transport.process import ProcessTransport, spawn

__all__ = [
    "MAX_LINE_BYTES",
    "Line",
    "Oversized",
    "ProcessTransport",
    "Receiver",
    "Transport",
    "memory_pair",
    "open_stdio",
    "spawn",
]


def __getattr__(name: str) -> object:
    """Import what starts processes only where one is started: an agent on stdio should not wait for it."""
    if name in {"ProcessTransport", "spawn"}:
        from holdfast.transport import process  # noqa: PLC0415

        return getattr(process, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
