"""`TurnLog`: what is said in a turn, until it is sealed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable


class HeldLines(Protocol):
    """The end of a log, which waits for the seal."""

    @property
    def waiting(self) -> Awaitable[None] | None:
        """What `TurnLog.append` has returned for it."""
        ...

    def take_held(self) -> bytes:
        """Return it, and forget it: whoever seals the log stores it."""
        ...

    def let_go(self) -> None:
        """Let it go into the store like anything else."""
        ...


class TurnLog(Protocol):
    """The events of a turn, or of the time between two turns, until they are sealed."""

    def append(self, lines: bytes) -> Awaitable[None] | None:
        """Keep encoded events, a newline after each. Called from the event loop; with none, to ask whether it could.

        Return None where they are kept already, or something that completes when they are. Raise `StoreError` where
        they cannot be kept: nothing of them is then. What is appended later is never kept earlier.
        """
        ...

    async def sync(self) -> None:
        """Make what was appended so far durable."""
        ...

    def hold(self) -> HeldLines | None:
        """Keep what is not on its way into the store, and all that is appended now, for the seal. None: nothing is."""
        ...
