"""Transports move frames and know no meaning: lines of bytes in, lines of bytes out.

All of them obey one contract (`Transport`, `Receiver`): `send` never blocks and never fails, what is sent within one
loop tick leaves in one system call, reading can be paused, and the end of the input is told exactly once.
"""

from holdfast.transport.lines import MAX_LINE_BYTES, Oversized
from holdfast.transport.memory import memory_pair
from holdfast.transport.port import Line, Receiver, Transport
from holdfast.transport.process import ProcessTransport, spawn
from holdfast.transport.stdio import open_stdio

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
