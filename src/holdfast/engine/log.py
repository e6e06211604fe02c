"""What was said since the last seal, on its way from said to kept to shown.

Events of one loop tick are kept together, and shown when they are kept: at once where the store keeps them at once,
later where it takes its time. Ticks that follow each other closely are shown together.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.missed_events import passed_line
from holdfast.errors import StoreError, UsageError
from holdfast.model import Event, Fold, History, event_from
from holdfast.model.kinds import PRIVATE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from holdfast.model import Update
    from holdfast.store import TurnLog

FLUSH_BYTES = 256 << 10
"""When so much was said in one tick, whoever says more waits until it is kept and shown."""

PACE = 0.001
"""So many seconds are between one showing and the next; docs/decisions/004 says why."""


class OpenLog:
    """What was said since the last seal, on its way from said to kept to shown."""

    def __init__(
        self,
        turn_log: TurnLog,
        show: Callable[[Sequence[Event]], None],
        failed: Callable[[], None],
        *,
        whole: bool,
        earlier: Collection[tuple[str, str]] = (),
        begun: bytes | None = None,
    ) -> None:
        """Open a log. `begun` is its first line where it is kept after its seal: then it tells every position.

        Where every entry begins in it (`whole`), those in `earlier` are exceptions.
        """
        self.history: History = History(complete=whole, earlier=earlier)
        """All of it, folded."""
        self.private: list[bytes] = []
        """The private entries among it."""
        self.failure: StoreError | None = None
        """Why it could not be kept, if it could not…"""
        self.unshown: list[Event] = []
        """…and what was said since: nobody may see it before it is stored."""
        self.sealing = False
        """Whether it is being sealed: it takes nothing more, and is still the end of what was said."""
        self.congested: bool = False
        """Whether whoever says more now should wait first."""
        self._log = turn_log
        self._show_events = show
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._pending: list[Event] = []
        self._pending_bytes = 0
        self._in_flight: deque[_Flight] = deque()
        self._to_show: list[Event] = []
        self._shown_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._all_kept: asyncio.Future[None] | None = None
        self._passed: int | None = None  # how many events were shown since the last that is stored; None: not counted
        if begun is not None:
            self._passed = 0
            self._append_lines(begun)

    def append(self, event: Event) -> None:
        """Take an event. It is kept at the end of this loop tick, and shown when it is."""
        self.history.apply(event)
        if not self._pending:
            self._loop.call_soon(self._tick)
        self._pending.append(event)
        self._pending_bytes += len(event.body)
        if self._pending_bytes > FLUSH_BYTES:
            self.congested = True

    def append_unseen(self, update: Update) -> None:
        """Take a line that is no event: it is kept in order with the events, and nobody is ever shown it."""
        self._keep()
        if self.failure is None:
            self._append_lines(event_from(update).body + b"\n")

    def _append_lines(self, lines: bytes) -> None:
        try:
            self._follow(self._log.append(lines), [])
        except StoreError as e:
            self._fail(e, [])

    def keep_private(self, data: Any) -> None:
        """Keep a private entry; raise `UsageError` where it is not JSON."""
        try:
            encoded = msgspec.json.encode(data)
        except (TypeError, ValueError, RecursionError) as e:
            raise UsageError(f"what is kept must be JSON: {e}") from None
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

    async def durable(self) -> None:
        """Make all that was said so far durable; raise `StoreError` where that fails."""
        await self.shown()
        if self.failure is not None:
            raise self.failure
        await self._log.sync()

    def _tick(self) -> None:
        """Keep what was said in this tick; show it, unless something was shown just now."""
        self._keep()
        self._show_soon()

    def _show_soon(self) -> None:
        if self._loop.time() >= self._shown_at + PACE:
            self._show()
        elif self._to_show and self._timer is None:
            self._timer = self._loop.call_at(self._shown_at + PACE, self._show)

    def _show(self) -> None:
        self._timer = None
        if self._to_show:
            events, self._to_show = self._to_show, []
            self._shown_at = self._loop.time()
            self._show_events(events)

    def _keep(self) -> None:
        events, self._pending, self._pending_bytes, self.congested = self._pending, [], 0, False
        if not events:
            return
        if self.failure is not None:
            self.unshown += events
            return
        bodies = [
            event.body for event in events if event.plain_text is not None or event.rule.fold is not Fold.TRANSIENT
        ]
        if self._passed is not None and (self._passed or len(bodies) != len(events)):
            bodies = self._with_passed(events, self._passed)
        bodies.append(b"")
        try:
            # Where nothing of them is stored the log is asked all the same: who lost the session shows no more (P4).
            kept = self._log.append(b"\n".join(bodies))
        except StoreError as e:
            self._fail(e, events)
            return
        self._follow(kept, events)

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
        self._failed()


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
