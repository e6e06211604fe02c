"""What was said since the last seal, on its way from said to kept to shown.

Events of one loop tick are kept together, and shown when they are kept: at once where the store keeps them at once,
later where it takes its time. Ticks that follow each other closely are shown together, and where they only stream text
they are kept together too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.missed_events import passed_line
from holdfast.errors import StoreError
from holdfast.model import Event, Fold, History, check_json, event_from
from holdfast.model.kinds import PRIVATE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from holdfast.model import Update
    from holdfast.store import TurnLog

FLUSH_BYTES = 256 << 10
"""When so much was said in one tick, whoever says more waits until it is kept and shown."""

PACE = 0.001
"""So many seconds are between one showing and the next; docs/decisions/004 says why."""

LONGEST_PACE = 0.02
"""Where many watch, a showing takes long: as long again passes before the next, but never more than so many seconds."""


class OpenLog:
    """What was said since the last seal, on its way from said to kept to shown."""

    __slots__ = (
        "_all_kept", "_begun_with", "_failed", "_in_flight", "_is_due", "_log", "_loop", "_next_showing", "_passed",
        "_pending", "_pending_bytes", "_sealed", "_show_events", "_timer", "_to_show", "congested", "failure",
        "history", "private", "rest", "sealing", "unshown",
    )  # fmt: skip

    def __init__(
        self,
        turn_log: TurnLog,
        show: Callable[[Sequence[Event]], None],
        failed: Callable[[], None] | None,
        *,
        whole: bool,
        earlier: Collection[tuple[str, str]] = (),
        tells_positions: bool = False,
    ) -> None:
        """Open a log; one that `tells_positions` is kept after its seal, and has lines for what is not stored.

        Where every entry begins in it (`whole`), those in `earlier` are exceptions.
        """
        self.history: History = History(complete=whole, earlier=earlier)
        """All of it, folded."""
        self.private: list[bytes] = []
        """The private entries among it."""
        self.failure: StoreError | None = None
        """Why it could not be kept, if it could not…"""
        self.unshown: list[Event] = []
        """…and what was said since, or is left to the seal: nobody may see it before it is stored."""
        self.rest: bytes = b""
        """The lines of what is left to the seal…"""
        self._sealed: asyncio.Future[None] | None = None  # …which is shown, or cannot be, when this completes
        self.sealing: bool = False
        """Whether it is being sealed: it takes nothing more, and is still the end of what was said."""
        self.congested: bool = False
        """Whether whoever says more now should wait first."""
        self._log = turn_log
        self._show_events = show
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._begun_with: list[Event] = []
        self._pending: list[Event] = []
        self._pending_bytes = 0
        self._in_flight: deque[_Flight] = deque()
        self._to_show: list[Event] = []
        self._next_showing = 0.0
        self._is_due = False  # whether what is pending is kept at the end of this tick…
        self._timer: asyncio.TimerHandle | None = None  # …and when it is kept and shown at the latest
        self._all_kept: asyncio.Future[None] | None = None
        self._passed = 0 if tells_positions else None  # how many events were shown since the last that is stored

    def begin_with(self, first: Sequence[Event], *, is_kept: bool) -> None:
        """Show what a turn begins with, its prompt first: the store was given that already, and may not have it yet."""
        self.history.apply(first[0])
        if is_kept:
            self._show_events(first)
            return
        self._begun_with = list(first)
        self._is_due = True
        self._loop.call_soon(self._tick)

    def append(self, event: Event) -> None:
        """Take an event. It is kept at the end of this loop tick, and shown when it is.

        A piece of text that follows what was shown just now is kept when the next may be shown, unless something other
        than text comes first: nobody has seen it, and nobody acts on it.
        """
        self.history.apply(event)
        if not self._is_due and (self._timer is None or event.plain_text is None):
            self._schedule(event)
        self._pending.append(event)
        self._pending_bytes += len(event.body)
        if self._pending_bytes > FLUSH_BYTES:
            self.congested = True

    def _schedule(self, event: Event) -> None:
        if event.plain_text is None or self._loop.time() >= self._next_showing:
            self._is_due = True
            self._loop.call_soon(self._tick)
        else:
            self._timer = self._loop.call_at(self._next_showing, self._show_next)

    def append_unseen(self, update: Update) -> None:
        """Take a line that is no event: it is kept in order with the events, and nobody is ever shown it."""
        self._keep()
        if self.failure is None:
            try:
                self._follow(self._log.append(event_from(update).body + b"\n"), [])
            except StoreError as e:
                self._refused(e, [])

    def keep_private(self, data: Any) -> None:
        """Keep a private entry; raise `UsageError` where it is no JSON value."""
        encoded = check_json("turn.keep: data", data)
        self.private.append(encoded)
        self.append_unseen({"sessionUpdate": PRIVATE, "data": msgspec.Raw(encoded)})

    def announce(self, event: Event) -> None:
        """Take an event that is stored already, or never is: it is only shown, in order with the others."""
        self._keep()
        self.pass_over(1)
        self._follow(None, [event])
        if not self._in_flight:
            self._show()

    def pass_over(self, count: int) -> None:
        """Count events that are shown here and not stored: they take positions, not bytes."""
        if self._passed is not None:
            self._passed += count

    @property
    def passed(self) -> int | None:
        """How many events were shown since the last that is stored; None where what is kept does not tell positions."""
        return self._passed if self.failure is None else None

    async def shown(self) -> None:
        """Wait until all that was said so far has been shown, or cannot be."""
        self._keep()
        while self._in_flight:
            if self._all_kept is None:
                self._all_kept = self._loop.create_future()
            await asyncio.shield(self._all_kept)
            self._keep()  # what was said meanwhile
        self._show()
        if self._sealed is not None:
            await asyncio.shield(self._sealed)

    async def shown_or_held(self) -> None:
        """Wait until all that was said so far has been shown, except for the end of it, which is left to the seal.

        Where a store takes its time, what is not on its way yet need not go there by itself: a short turn is two
        commits then, its prompt and its seal.
        """
        self._keep()
        held = None if self._all_kept is not None else self._log.hold()
        if held is None:
            if self._in_flight:
                await self.shown()
            self._show()
            return
        before = [
            flight.kept for flight in self._in_flight if flight.kept is not None and flight.kept is not held.waiting
        ]
        if before:
            await asyncio.wait(before)
        self._keep()  # what was said meanwhile
        if self._all_kept is not None:  # somebody waits for it, and not for the seal
            held.let_go()
            await self.shown()
            return
        self.rest = held.take_held()
        self.unshown += [event for flight in self._in_flight for event in flight.events]
        self._in_flight.clear()
        self._show()
        self._sealed = self._loop.create_future()

    def is_sealed(self) -> None:
        """Note that the seal is over: what was left to it is shown now, or cannot be."""
        self._failed = None  # a turn and its log would hold each other, and be freed late
        if self._sealed is not None:
            self._sealed.set_result(None)
            self._sealed = None

    async def durable(self) -> None:
        """Make all that was said so far durable; raise `StoreError` where that fails."""
        await self.shown()
        if self.failure is not None:
            raise self.failure
        await self._log.sync()

    def _tick(self) -> None:
        """Keep what was said in this tick; show it, unless something was shown just now."""
        self._is_due = False
        self._keep()
        self._show_soon()

    def _show_next(self) -> None:
        self._timer = None
        self._keep()
        self._show()

    def _show_soon(self) -> None:
        if self._loop.time() >= self._next_showing:
            self._show()
        elif self._to_show and self._timer is None:
            self._timer = self._loop.call_at(self._next_showing, self._show_next)

    def _show(self) -> None:
        if self._to_show:
            events, self._to_show = self._to_show, []
            began = self._loop.time()
            self._show_events(events)
            took = self._loop.time() - began
            self._next_showing = began + max(PACE, min(2 * took, LONGEST_PACE))

    def _keep(self) -> None:
        events, self._pending, self._pending_bytes, self.congested = self._pending, [], 0, False
        first, self._begun_with = self._begun_with, []
        if not events and not first:
            return
        if self.failure is not None:
            self.unshown += first + events
            return
        bodies = [
            event.body for event in events if event.plain_text is not None or event.rule.fold is not Fold.TRANSIENT
        ]
        if self._passed is not None and (self._passed or len(bodies) != len(events)):
            bodies = self._with_passed(events, self._passed)
        if bodies:
            bodies.append(b"")
        try:
            # Where nothing of them is stored the log is asked all the same: who lost the session shows no more (P4).
            # It has been given what the turn began with already, and may not have kept it yet.
            kept = self._log.append(b"\n".join(bodies))
        except StoreError as e:
            self._refused(e, first + events)
        else:
            self._follow(kept, first + events)

    def _with_passed(self, events: list[Event], passed: int) -> list[bytes]:
        """Return the lines of events; where some are not stored a line counts them."""
        lines: list[bytes] = []
        for event in events:
            if event.rule.fold is Fold.TRANSIENT:
                passed += 1
                continue
            if passed:
                lines.append(passed_line(passed))
                passed = 0
            lines.append(event.body)
        self._passed = passed
        return lines

    def _follow(self, kept: Awaitable[None] | None, events: list[Event]) -> None:
        """Show events once they are kept: now, or where the store takes its time, after those before them."""
        if kept is None and not self._in_flight:
            self._to_show += events
            return
        flight = _Flight(events)
        self._in_flight.append(flight)
        if kept is not None:
            flight.kept = asyncio.ensure_future(kept)
            flight.kept.add_done_callback(self._landed)

    def _refused(self, error: StoreError, events: list[Event]) -> None:
        """Hold back what the log does not take; what is still on its way comes before it, whatever becomes of that."""
        if not self._in_flight:
            self._fail(error, events)
            return
        refused: asyncio.Future[None] = self._loop.create_future()
        refused.set_exception(error)
        self._follow(refused, events)

    def _landed(self, _: asyncio.Future[None]) -> None:
        while self._in_flight and self._in_flight[0].is_over:
            flight = self._in_flight.popleft()
            error = flight.error()
            if self.failure is not None:
                self.unshown += flight.events
            elif error is not None:
                self._fail(error, flight.events)
            else:
                self._to_show += flight.events
        self._show_soon()
        if not self._in_flight and self._all_kept is not None:
            self._all_kept.set_result(None)
            self._all_kept = None

    def _fail(self, error: StoreError, events: list[Event]) -> None:
        """Hold back what cannot be kept, and all that comes after it."""
        self._show()
        self.failure = error
        self.unshown = list(events)
        if self._failed is not None:
            self._failed()


class NoLog:
    """Stands for the log that a store could not open: nothing can be kept in it."""

    def __init__(self, failure: StoreError) -> None:
        self._failure = failure

    def append(self, lines: bytes) -> None:  # noqa: ARG002
        """Refuse it."""
        raise self._failure

    async def sync(self) -> None:
        """Refuse it."""
        raise self._failure

    def hold(self) -> None:
        """Hold nothing."""


class _Flight:
    """Events on their way into the store."""

    __slots__ = ("events", "kept")

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.kept: asyncio.Future[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether they have arrived, or never will."""
        return self.kept is None or self.kept.done()

    def error(self) -> StoreError | None:
        """Return why they could not be kept, if they could not."""
        error = None if self.kept is None or self.kept.cancelled() else self.kept.exception()
        if error is None and not (self.kept is not None and self.kept.cancelled()):
            return None
        return error if isinstance(error, StoreError) else StoreError("The session could not be stored")
