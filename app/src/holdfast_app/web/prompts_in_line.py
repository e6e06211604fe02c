"""Prompts that wait until the agent has time for them, and how one gets them back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import RequestCancelled
from holdfast.model import is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.engine import OpenSession, OpenTurn
    from holdfast.errors import RequestError
    from holdfast.model import Update

PATIENCE = 5.0
"""So long a prompt that was withdrawn may take to be out of the line: it may be in that of another program."""


class Waiting(NamedTuple):
    """A prompt that waits."""

    turn: OpenTurn
    content: Sequence[Update]

    @property
    def text(self) -> str:
        """What it says."""
        texts = (block.get("text") for block in self.content if is_object(block))
        return " ".join(text for text in texts if isinstance(text, str))

    @property
    def is_taken(self) -> bool:
        """Whether the agent has it, and it is part of the history."""
        accepted = self.turn.accepted
        return accepted.done() and not accepted.cancelled() and accepted.exception() is None


class PromptsInLine:
    """The prompts of one session, of one principal, that the agent has not taken yet, in their order."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """Begin without any; `changed` is called when there are others."""
        self._changed = changed
        self._prompts: dict[str, Waiting] = {}

    def texts(self) -> list[tuple[str, str]]:
        """Return the ids of the messages, and what they say."""
        return [(message, waiting.text) for message, waiting in self._prompts.items()]

    def add(self, turn: OpenTurn, content: Sequence[Update]) -> Waiting:
        """Put a prompt behind the others."""
        waiting = self._prompts[turn.message_id] = Waiting(turn, content)
        self._changed()
        return waiting

    async def wait_for(self, waiting: Waiting) -> RequestError | None:
        """Wait until a prompt was taken; return why it was not, unless it was withdrawn."""
        turn, end = waiting.turn, waiting.turn.wait_for_end()
        try:
            await asyncio.wait({turn.accepted, end}, return_when=asyncio.FIRST_COMPLETED)
            is_told = waiting.is_taken or isinstance(turn.refusal, RequestCancelled)
            return None if is_told else turn.refusal
        finally:
            end.cancel()
            self._prompts.pop(turn.message_id, None)
            self._changed()

    async def withdraw(self, session: OpenSession, message: str | None = None) -> list[Sequence[Update]]:
        """Take one prompt out of the line, or all and stop what the agent does; return what the prompts were.

        What the agent had taken by then is not among them.
        """
        found = [
            each for each in self._prompts.values() if message in (None, each.turn.message_id) and not each.is_taken
        ]
        if message is None:
            session.cancel()
        for each in found:
            if message is not None:
                session.cancel_turn(each.turn)
        ends = [each.turn.wait_for_end() for each in found]
        if ends:
            await asyncio.wait(ends, timeout=PATIENCE)
        for end in ends:
            end.cancel()
        return [each.content for each in found if not each.is_taken]
