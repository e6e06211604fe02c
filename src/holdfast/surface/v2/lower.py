"""Events as version 2 says them: as they are. They have the shape of its updates; only an envelope is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.surface.v2.replay import Envelope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model import Event, Update


class Lowering:
    """What one client is told of one session."""

    __slots__ = ("_envelope",)

    has_more = False

    def __init__(self, session_id: str) -> None:
        self._envelope = Envelope(session_id)

    def live(self, events: Sequence[Event]) -> bytes:
        """Say what happened."""
        return self._envelope.join(it.body for it in events)

    def past(self, block: bytes) -> tuple[bytes, ...]:
        """Say what is stored."""
        return self._envelope.lines(block)

    def quiet(self, message_id: str) -> None:
        """Do nothing: version 2 clients want to see their own messages."""

    def embed_terminal(self, terminal_id: str, own_id: str) -> None:
        """Do nothing: version 2 clients have no terminals of their own."""

    def rest(self) -> bytes:
        """Return nothing: nothing is ever held back."""
        return b""


def lower_options(update: Update) -> list[Update]:
    """Give the options for an answer."""
    return update["configOptions"]


def lower_commands(update: Update) -> list[Update]:
    """Give the commands for an answer."""
    return update["availableCommands"]
