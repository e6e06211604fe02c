"""The contract between a transport and whoever uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from holdfast.transport.lines import Oversized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.errors import ConnectionLost

Line: TypeAlias = bytes | Oversized

MAX_UNSENT_BYTES = 64 << 20
"""A reader that leaves more than this unread has stopped; the connection ends (P7)."""


class Receiver(Protocol):
    """Whoever a transport gives its lines to. Both methods are called from the event loop and must not block."""

    def lines_received(self, lines: Sequence[Line]) -> None:
        """Take lines that arrived, in order; as many at once as were there to read."""
        ...

    def input_ended(self, reason: ConnectionLost | None) -> None:
        """Note that nothing more will arrive. Called exactly once; `reason` is `None` for an orderly end."""
        ...


class Transport(Protocol):
    """Carries lines both ways."""

    @property
    def max_line(self) -> int:
        """The longest line that is accepted, in bytes; whoever sends keeps to the same limit (A4)."""
        ...

    @property
    def unsent(self) -> int:
        """How many bytes wait for the other side to read."""
        ...

    def open(self, receiver: Receiver) -> None:
        """Begin to read. Called once, from the event loop."""
        ...

    def send(self, line: bytes) -> None:
        """Send a line at the end of this loop tick. Never blocks, never fails; goes nowhere once the end came."""
        ...

    def send_now(self, line: bytes) -> None:
        """Send a line now, behind what was sent before. As `send` in all else."""
        ...

    def send_block(self, *pieces: bytes) -> None:
        """Send whole lines now, each with its newline, behind what was sent before. As `send` in all else.

        They may be given in pieces, so that whoever made a large one need not copy it.
        """
        ...

    def flush(self) -> None:
        """Send what is queued now instead of at the end of the tick."""
        ...

    def pause(self) -> None:
        """Stop reading, so that the other side has to wait."""
        ...

    def resume(self) -> None:
        """Read again."""
        ...

    async def drain(self, below: int) -> None:
        """Wait until fewer than `below` bytes are unsent, or none ever will be."""
        ...

    async def close(self, flush_for: float) -> None:
        """Stop reading, send what is unsent within `flush_for` seconds, release everything. Idempotent."""
        ...
