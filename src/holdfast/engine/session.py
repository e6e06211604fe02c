"""A session in memory, and the connections that watch it. Small, because a server may hold many that do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model import Event, SessionInfo, event_from, lines_of, options_update

if TYPE_CHECKING:
    import asyncio
    from collections import deque
    from collections.abc import AsyncIterator, Sequence

    from holdfast.engine.port import Watcher
    from holdfast.engine.turn import Turn
    from holdfast.model import Line, Option, OptionValue, SessionState, Update
    from holdfast.store import Changes, Claim, Store

HELD_BYTES = 32 << 20
"""What may wait for a connection while it is shown what was before…"""

DROP_BYTES = 32 << 20
"""…and what may be unread by it afterwards. Past either it is dropped, not waited for (P7)."""


class Unsealed:
    """A turn that ended while the store could not take it: to be sealed before anything else is written."""

    __slots__ = ("changes", "lines", "messages")

    def __init__(self, lines: list[Line], changes: Changes, messages: int) -> None:
        self.lines = lines
        self.changes = changes
        self.messages = messages


class LiveSession:
    """A session that is open in this process."""

    __slots__ = (
        "additional", "attachments", "claim", "created_at", "cwd", "extension", "idle_since", "lines", "queue",
        "runner", "state", "title", "turn", "unsealed",
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
            self.turn.ask_newcomer(attachment)
        return attachment

    def detach(self, attachment: Attachment) -> None:
        """Let a connection watch no more."""
        self.attachments = tuple(it for it in self.attachments if it is not attachment)
        if self.turn is not None:
            self.turn.forget(attachment)

    def drop_all(self, reason: str) -> None:
        """Tell everybody who watches that it is over."""
        for attachment in self.attachments:
            self.detach(attachment)
            attachment.watcher.dropped(reason)


class Attachment:
    """One connection watching one session."""

    __slots__ = ("_held", "_held_bytes", "_lines", "_running", "session", "watcher")

    def __init__(self, session: LiveSession, watcher: Watcher) -> None:
        self.session = session
        self.watcher = watcher
        self._held: list[Event] | None = []
        self._held_bytes = 0
        # The past, as of now: what is sealed, and what the running turn has said.
        self._lines = session.lines
        self._running = [it.body for it in lines_of(session.turn.history)] if session.turn else []

    async def past(self, store: Store) -> AsyncIterator[list[bytes]]:
        """Read all that happened before it was attached: blocks of stored lines."""
        if self._lines:
            async for blocks in store.read(self.session.id, self._lines):
                yield blocks
        if self._running:
            yield self._running

    def follow(self) -> None:
        """Show what happened since it was attached, and from now on everything as it happens."""
        held, self._held = self._held, None
        self._running = []
        if held:
            self.watcher.show(held)

    def deliver(self, events: Sequence[Event]) -> None:
        """Take events, now or later; drop the connection if it is too far behind."""
        if self._held is None:
            self.watcher.show(events)
            if self.watcher.backlog > DROP_BYTES:
                self._drop()
        else:
            self._held += events
            self._held_bytes += sum(len(it.body) for it in events)
            if self._held_bytes > HELD_BYTES:
                self._drop()

    def _drop(self) -> None:
        self.session.detach(self)
        self.watcher.dropped("It does not read fast enough; load the session again to go on watching")
