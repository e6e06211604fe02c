"""Events as version 2 says them: as they are. They have the shape of its updates; only an envelope is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.surface.v2.replay import Beginnings, Envelope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model import Event


class Lowering:
    """What one client is told of one session."""

    __slots__ = ("_beginnings", "_envelope")

    has_more = False

    def __init__(self, session_id: str) -> None:
        self._envelope = Envelope(session_id)
        self._beginnings: Beginnings | None = None

    def begin_replay(self) -> None:
        """Say the beginning of each message of the past before its first chunk."""
        self._beginnings = Beginnings()

    def live(self, events: Sequence[Event]) -> bytes:
        """Return events as whole lines for the wire."""
        return self._envelope.join(event.body for event in events)

    def shared(self, events: Sequence[Event]) -> bool:  # noqa: ARG002
        """Return that every client is told the same: nothing here depends on what one was told before."""
        return True

    def past(self, block: bytes) -> tuple[bytes, ...]:
        """Return a block of stored lines as whole lines for the wire, in pieces."""
        return self._envelope.lines(block if self._beginnings is None else self._beginnings.complete(block))

    def quiet(self, message_id: str) -> None:
        """Do nothing: version 2 clients want to see their own messages."""

    def embed_terminal(self, terminal_id: str, own_id: str) -> None:
        """Do nothing: version 2 clients have no terminals of their own."""

    def rest(self) -> bytes:
        """Return nothing: nothing is ever held back."""
        return b""
