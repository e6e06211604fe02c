"""An attachment: one client watching one session, from a moment on.

What was before that moment is read with `past`, or, by a client that has seen all up to a position, is what it missed;
what happens meanwhile waits, and is shown by `follow`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.format import lines_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from holdfast.engine.ports import SessionClient
    from holdfast.engine.session import LiveSession
    from holdfast.errors import RequestError
    from holdfast.model import Event, Position
    from holdfast.store import Store

log: logging.Logger = logging.getLogger(__name__)

HELD_BYTES = 32 << 20
"""What may wait for a client while it is shown what was before…"""

DROP_BYTES = 32 << 20
"""…and what may be unread by it afterwards. Past either it is dropped, not waited for (P7)."""


def alike_runs(events: Sequence[Event]) -> tuple[Sequence[Event], ...]:
    """Cut events where pieces of text begin, which all clients of a version are told in the same lines."""
    at = next((number for number, event in enumerate(events) if event.plain_text is not None), 0)
    return (events[:at], events[at:]) if at else (events,)


class Attachment:
    """One client watching one session."""

    __slots__ = ("_held", "_held_bytes", "_shown", "client", "lines", "refusal", "session", "showing", "unsealed")

    def __init__(self, session: LiveSession, client: SessionClient) -> None:
        self.session: LiveSession = session
        self.client: SessionClient = client
        self._shown = session.journal.position, 0
        self.showing: Position | None = None
        """While `SessionClient.show` runs: the position before the first of its events, each of which takes the next.

        None where they have none: what this client alone is told.
        """
        self._held: list[tuple[Position | None, list[Event]]] | None = []
        self._held_bytes = 0
        # The past, as of now: what is sealed, and what was shown since.
        journal = session.journal
        self.lines: int = journal.lines
        self.unsealed: list[bytes] = [line.body for line in lines_of(journal.open.history)] if journal.open else []
        # Where the store could not keep up, a part of that is not stored, and so cannot be shown (P1).
        self.refusal: RequestError | None = journal.failure

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
        """Read what happened before it was attached, from a line on: blocks of stored lines."""
        if self.refusal is not None:
            raise self.refusal
        if start < self.lines:
            async for blocks in store.read(self.session.id, start, self.lines):
                yield blocks
        if self.unsealed:
            yield self.unsealed

    def show_held(self) -> None:
        """Show what has happened so far, and hold what happens from now on: a question is put after `follow`."""
        if self._held is not None:
            held, self._held, self._held_bytes = self._held, [], 0
            for before, events in held:
                self._show(events, before)

    def follow(self) -> None:
        """Show what happened since it was attached, and from now on everything as it happens."""
        held, self._held = self._held, None
        self.unsealed = []
        if self not in self.session.attachments:
            return
        for before, events in held or ():
            self._show(events, before)
        self.session.ask_newcomer(self)

    def catch_up(self, missed: Sequence[tuple[Position, list[Event]]]) -> None:
        """Show what it missed before all that happened since it was attached; there is no past."""
        assert self._held is not None
        self._held[:0] = missed
        self.lines, self.unsealed = 0, []

    def deliver(self, events: Sequence[Event], before: Position | None) -> None:
        """Take events, now or later; drop the client if it is too far behind.

        `before` is the position before them, None for what no other client is shown.
        """
        if self._held is None:
            self._show(events, before)
            behind = self.client.backlog > DROP_BYTES
        else:
            self._hold(events, before)
            self._held_bytes += sum(len(event.body) for event in events)
            behind = self._held_bytes > HELD_BYTES
        if behind:
            self.drop("It does not read fast enough; load the session again to go on watching")

    def holds(self, message_id: str) -> bool:
        """Return whether a prompt is among what waits to be shown."""
        return any(event.key == message_id for _, run in self._held or () for event in run)

    def _hold(self, events: Sequence[Event], before: Position | None) -> None:
        assert self._held is not None
        if self._held and before is not None:
            first, run = self._held[-1]
            if first is not None and first.after(len(run)) == before:
                run += events
                return
        self._held.append((before, list(events)))

    def drop(self, reason: str) -> None:
        """Let the client watch no more, and tell it why."""
        if self in self.session.attachments:
            self.session.detach(self)
            self._held = []
            try:
                self.client.dropped(reason)
            except Exception:
                log.exception("A client could not be told that it watches no more")

    def _show(self, events: Sequence[Event], before: Position | None) -> None:
        self.showing = before
        if before is not None:
            self._shown = before, len(events)
        try:
            self.client.show(events)
        except Exception:
            # What it cannot take is no reason why others should not have it, or why it should not be stored (P7).
            log.exception("A client could not be shown what happened")
            self.drop("It could not be shown what happened; load the session again to go on watching")
