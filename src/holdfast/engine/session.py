"""A session in memory, and the connections that watch it. Small, because a server may hold many that do nothing."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from holdfast.engine.ends import keep_latest
from holdfast.format import lines_of
from holdfast.model import Event, SessionInfo, event_from, options_update

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import AsyncIterator, Sequence

    from holdfast.engine.port import Watcher
    from holdfast.engine.turn import Turn
    from holdfast.errors import RequestError
    from holdfast.format import Line
    from holdfast.model import Option, OptionValue, SessionState, Update
    from holdfast.store import Changes, Claim, Store

log = logging.getLogger(__name__)

HELD_BYTES = 32 << 20
"""What may wait for a connection while it is shown what was before…"""

DROP_BYTES = 32 << 20
"""…and what may be unread by it afterwards. Past either it is dropped, not waited for (P7)."""


class Unsealed:
    """A turn that ended while the store could not take it: to be sealed before anything else is written."""

    __slots__ = ("changes", "lines", "messages", "reason", "sealing", "unshown")

    def __init__(
        self, lines: list[Line], changes: Changes, messages: int, unshown: list[Event], reason: RequestError
    ) -> None:
        self.lines = lines
        self.changes = changes
        self.messages = messages
        self.unshown = unshown
        """What nobody may see before it is sealed."""
        self.reason = reason
        self.sealing = asyncio.Lock()


class LiveSession:
    """A session that is open in this process."""

    __slots__ = (
        "additional", "attachments", "claim", "created_at", "cwd", "equipment", "extension", "idle_since", "lines",
        "queue", "runner", "state", "title", "turn", "unsealed",
    )  # fmt: skip

    def __init__(self, claim: Claim, info: SessionInfo, state: SessionState, lines: int, now: float) -> None:
        self.claim = claim
        self.cwd = info.cwd
        self.additional = info.additional
        self.title = info.title
        self.created_at = info.created_at
        self.state = state
        self.lines = lines
        self.attachments: tuple[Attachment, ...] = ()
        self.turn: Turn | None = None
        self.queue: deque[Turn] | None = None
        self.runner: asyncio.Task[None] | None = None
        self.unsealed: Unsealed | None = None
        self.idle_since = now
        self.equipment: object = None
        """What the client gives to the agent for this session while it is open. Never stored (P10)."""
        self.extension: object = None
        """Whatever the agent wants to keep with the session while it is open."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.claim.session

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories the session may work in, the working directory first."""
        return (self.cwd, *self.additional)

    def value(self, option: Option) -> OptionValue:
        """Get an option's value: the one that was set, if it is still offered, or its default."""
        value = self.state.options.get(option.id, option.default)
        return value if option.accepts(value) else option.default

    def options_update(self, options: tuple[Option, ...]) -> Update:
        """Tell all options and their values."""
        return options_update(options, {it.id: self.value(it) for it in options})

    def note(self, update: Update) -> None:
        """Remember what the running turn has said about the session itself: whoever comes now is told that too."""
        if update["sessionUpdate"] == "session_info_update" and "title" in update:
            self.title = update["title"]
        keep_latest(self.state, update)

    def publish(self, update: Update) -> None:
        """Show something about the session itself to whoever watches, in order with what its turn says."""
        if self.turn is not None:
            self.turn.flush()
        self.show([event_from(update)])

    def show(self, events: Sequence[Event]) -> None:
        """Show events to whoever watches."""
        if not events:
            return
        for attachment in self.attachments:
            attachment.deliver(events)

    def attach(self, watcher: Watcher) -> Attachment:
        """Let a connection watch. It is shown nothing until `Attachment.follow`, and nothing is lost until then."""
        if self.turn is not None:
            self.turn.flush()
        attachment = Attachment(self, watcher)
        self.attachments = (*self.attachments, attachment)
        if self.turn is not None:
            self.turn.watchers_changed()
        return attachment

    def detach(self, attachment: Attachment) -> None:
        """Let a connection watch no more."""
        self.attachments = tuple(it for it in self.attachments if it is not attachment)
        if self.turn is not None:
            self.turn.asks.forget(attachment)
            self.turn.watchers_changed()

    def drop_all(self, reason: str) -> None:
        """Tell everybody who watches that it is over."""
        for attachment in self.attachments:
            attachment.drop(reason)


class Attachment:
    """One connection watching one session."""

    __slots__ = ("_held", "_held_bytes", "_lines", "_refusal", "_running", "session", "watcher")

    def __init__(self, session: LiveSession, watcher: Watcher) -> None:
        self.session = session
        self.watcher = watcher
        self._held: list[Event] | None = []
        self._held_bytes = 0
        # The past, as of now: what is sealed, and what the running turn has said.
        self._lines = session.lines
        self._running = [it.body for it in lines_of(session.turn.history)] if session.turn else []
        # Where the store could not keep up, a part of that is not stored, and so cannot be shown (P1).
        failure = session.turn.failure if session.turn else None
        self._refusal = session.unsealed.reason if session.unsealed else failure

    @property
    def follows(self) -> bool:
        """Whether it is shown what happens as it happens."""
        return self._held is None

    async def past(self, store: Store) -> AsyncIterator[list[bytes]]:
        """Read all that happened before it was attached: blocks of stored lines."""
        if self._refusal is not None:
            raise self._refusal
        if self._lines:
            async for blocks in store.read(self.session.id, self._lines):
                yield blocks
        if self._running:
            yield self._running

    def follow(self) -> None:
        """Show what happened since it was attached, and from now on everything as it happens."""
        held, self._held = self._held, None
        self._running = []
        if self not in self.session.attachments:
            return
        if held:
            self._show(held)
        if self.session.turn is not None:
            self.session.turn.asks.put_to_newcomer(self)

    def deliver(self, events: Sequence[Event]) -> None:
        """Take events, now or later; drop the connection if it is too far behind."""
        if self._held is None:
            self._show(events)
            behind = self.watcher.backlog > DROP_BYTES
        else:
            self._held += events
            self._held_bytes += sum(len(it.body) for it in events)
            behind = self._held_bytes > HELD_BYTES
        if behind:
            self.drop("It does not read fast enough; load the session again to go on watching")

    def drop(self, reason: str) -> None:
        """Let the connection watch no more, and tell it why."""
        if self in self.session.attachments:
            self.session.detach(self)
            self._held = []
            try:
                self.watcher.dropped(reason)
            except Exception:
                log.exception("A connection could not be told that it watches no more")

    def _show(self, events: Sequence[Event]) -> None:
        try:
            self.watcher.show(events)
        except Exception:
            # What it cannot take is no reason why others should not have it, or why it should not be stored (P7).
            log.exception("A connection could not be shown what happened")
            self.drop("It could not be shown what happened; load the session again to go on watching")
