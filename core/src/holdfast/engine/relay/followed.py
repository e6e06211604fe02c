"""A turn and an attachment of a session that another process owns, with the faces of `LiveTurn` and `Attachment`."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from holdfast.errors import InternalError
from holdfast.model import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from holdfast.engine.ports import SessionClient
    from holdfast.engine.relay.follower import FollowedSession
    from holdfast.errors import RequestError
    from holdfast.model import Event, Position, TurnEnd
    from holdfast.store import Store

log: logging.Logger = logging.getLogger(__name__)


class FollowedTurn:
    """A turn that runs in another process."""

    def __init__(self, session: FollowedSession) -> None:
        self.session = session
        self.message_id: str = new_id("msg")
        self.refusal: RequestError | None = None
        self.cancelled: bool = False
        """Whether its client has cancelled it."""
        self.accepted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._end: TurnEnd | None = None
        self._when_ended: list[Callable[[TurnEnd], None]] = []

    def when_ended(self, call: Callable[[TurnEnd], None]) -> None:
        """Call a function at the turn's end; at once where that is over."""
        if self._end is not None:
            call(self._end)
        else:
            self._when_ended.append(call)

    def wait_for_end(self) -> asyncio.Future[TurnEnd]:
        """Return a future of the caller's own for the turn's end."""
        ended: asyncio.Future[TurnEnd] = asyncio.get_running_loop().create_future()
        self.when_ended(lambda end: None if ended.done() else ended.set_result(end))
        return ended

    def is_accepted(self) -> None:
        """Note that its prompt is part of the conversation."""
        if not self.accepted.done():
            self.accepted.set_result(self.message_id)

    def has_ended(self, end: TurnEnd, refusal: RequestError | None) -> None:
        """Tell whoever waits how it ended."""
        self._end, self.refusal = end, refusal
        if not self.accepted.done():
            self.accepted.set_exception(refusal or InternalError(end.error or "The prompt was not accepted"))
            self.accepted.exception()  # not everybody waits for it
        calls, self._when_ended = self._when_ended, []
        for call in calls:
            call(end)


class FollowedAttachment:
    """A client watching a session that another process owns."""

    def __init__(self, session: FollowedSession, client: SessionClient, position: Position, lines: int) -> None:
        self.session = session
        self.client = client
        self.showing: Position | None = None
        self.unsealed: list[bytes] = []
        self._lines = lines
        self._shown = position, 0
        self._held: list[Event] | None = []  # what it is told before it follows; the owner holds back all else

    @property
    def position(self) -> Position:
        """The position of the last event it was shown, or had in its past."""
        before, count = self._shown
        return before.after(count)

    @property
    def follows(self) -> bool:
        """Whether it is shown what happens as it happens."""
        return self._held is None

    async def past(self, store: Store, start: int = 0) -> AsyncIterator[list[bytes]]:
        """Read what happened before it was attached: what is sealed from the store, the rest came from the owner."""
        if start < self._lines:
            async for blocks in store.read(self.session.id, start, self._lines):
                yield blocks
        if self.unsealed:
            yield self.unsealed

    def show_held(self) -> None:
        """Do nothing: what happened since waits at the owner, and comes when it follows."""

    def follow(self) -> None:
        """Show what happened since it was attached, and from now on everything as it happens."""
        held, self._held = self._held, None
        self.unsealed = []
        if held:
            self._show(held, None)
        if self in self.session.attachments:
            self.session.tell("follow")

    def deliver(self, events: Sequence[Event], before: Position | None) -> None:
        """Show events; what it is told before it follows has to wait."""
        if self._held is not None:
            self._held += events
        else:
            self._show(events, before)

    def holds(self, message_id: str) -> bool:
        """Return whether a prompt is among what waits to be shown: the owner holds that back."""
        return any(event.key == message_id for event in self._held or ())

    def _show(self, events: Sequence[Event], before: Position | None) -> None:
        self.showing = before
        if before is not None:
            self._shown = before, len(events)
        try:
            self.client.show(events)
        except Exception:
            log.exception("A client could not be shown what happened")
            self.drop("It could not be shown what happened; load the session again to go on watching")

    def drop(self, reason: str) -> None:
        """Let the client watch no more, and tell it why."""
        if self in self.session.attachments:
            self.session.detach(self)
            self.client.dropped(reason)
