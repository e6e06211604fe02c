"""What the engine needs on its two open sides: somebody who performs turns, somebody who watches sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.engine.session import LiveSession
    from holdfast.engine.turn import Turn
    from holdfast.model import Answer, Event, Option, OptionValue, Question, StopReason


class AgentPort(Protocol):
    """Does the work of a turn: an author's agent, or one in another process."""

    @property
    def options(self) -> tuple[Option, ...]:
        """What can be set for a session, in the order to show it."""
        ...

    @property
    def begins_entries(self) -> bool:
        """Whether every entry a turn speaks of begins in that turn, so that what it says of it is the whole."""
        ...

    async def opened(self, session: LiveSession) -> None:
        """Prepare: a session was created, or came back to life."""
        ...

    async def equipped(self, session: LiveSession) -> None:
        """Take note: an open session was restored, and has the roots and the equipment that were named now."""
        ...

    async def closed(self, session: LiveSession) -> None:
        """Clean up: a session leaves memory."""
        ...

    async def option_set(self, session: LiveSession, option: str, value: OptionValue) -> None:
        """React to an option the user has set; others may be adjusted."""
        ...

    async def perform(self, turn: Turn) -> StopReason | None:
        """Answer a prompt. None is as good as ``end_turn``."""
        ...


class Watcher(Protocol):
    """One connection that watches one session. The engine calls it from the event loop; it must not block."""

    @property
    def backlog(self) -> int:
        """How many bytes shown to it have not been taken by the other end."""
        ...

    async def drain(self) -> None:
        """Wait until the backlog is small."""
        ...

    def show(self, events: Sequence[Event]) -> None:
        """Show what happened, in order."""
        ...

    async def ask(self, question: Question) -> Answer:
        """Put a question to the user and wait for the answer; None where there is none."""
        ...

    @property
    def services(self) -> object:
        """What the client does for the agent; the engine does not look into it."""
        ...

    def dropped(self, reason: str) -> None:
        """Tell that it does not watch any more, and why."""
        ...
