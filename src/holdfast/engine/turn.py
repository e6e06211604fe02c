"""A turn: from an accepted prompt to its end. Everything it says goes through `emit`.

What is emitted within one loop tick is written to the turn's log in one piece, and only then shown (P1). Ticks that
follow each other closely are shown together.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING

from holdfast.engine.asks import Asks
from holdfast.errors import StoreError, TurnOver
from holdfast.model import (
    Event,
    Fold,
    History,
    Permission,
    Phase,
    check_update,
    event_from,
    new_id,
    next_phase,
)
from holdfast.model.kinds import REMEMBERED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.engine.session import LiveSession
    from holdfast.model import Answer, Question, StopReason, TurnEnd, TurnTrigger, Update
    from holdfast.store import TurnLog

FLUSH_BYTES = 256 << 10
"""When a tick has emitted this much it is written and shown at once."""

PACE = 0.001
"""So many seconds are between one showing and the next; docs/decisions/004 says why."""

CONGESTED_BYTES = 1 << 20
"""Whoever has more than this unread is behind; a turn waits only while everybody is."""


class Turn:
    """One turn of a session, as the agent that performs it sees it."""

    def __init__(self, session: LiveSession, prompt: Sequence[Update], *, complete: bool, grace: float) -> None:
        loop = asyncio.get_running_loop()
        self.session = session
        self.prompt = prompt
        self.message_id = new_id("msg")
        self.context = copy_context()
        """Where it was asked for; its work is done there, so that whatever travels with the prompt is at hand."""
        self.history = History(complete=complete)
        """What was said in this turn so far, folded."""
        self.phase = Phase.WAITING
        self.cancelled = False
        """Whether somebody wants it to stop."""
        self.accepted: asyncio.Future[str] = loop.create_future()
        """Resolves to the id of the user's message once the prompt is stored."""
        self.ended: asyncio.Future[TurnEnd] = loop.create_future()
        """Resolves once the turn's end is stored."""
        self.over: asyncio.Future[None] = loop.create_future()
        """Resolves when nothing more will be done in this turn: the agent is done, or has been given up on."""
        self.failure: StoreError | None = None
        """Why the log could not be written, if it could not."""
        self.unshown: list[Event] = []
        """What was said since then: nobody may see it before it is stored."""
        self._grace = grace
        self._loop = loop
        self._log: TurnLog | None = None
        self._pending: list[Event] = []
        self._pending_bytes = 0
        self._to_show: list[Event] = []
        self._shown_at = 0.0
        self._work: asyncio.Task[StopReason | None] | None = None
        self.asks = Asks(session)
        """Its open questions."""
        self._watchers_changed = asyncio.Event()

    @property
    def running(self) -> bool:
        """Whether it has begun and not ended."""
        return self.phase in (Phase.RUNNING, Phase.ASKING)

    @property
    def asking(self) -> bool:
        """Whether it waits for the user."""
        return self.phase is Phase.ASKING

    @property
    def stopping(self) -> bool:
        """Whether its agent is to stop: somebody wants that, or what it says cannot be stored."""
        return self.cancelled or self.failure is not None

    # What the agent says

    def emit(self, event: Event) -> None:
        """Say something that can be folded. It is stored at the end of this loop tick, and shown at once or soon."""
        if not self.running:
            raise TurnOver("This turn is over; nothing more can be said in it")
        self.history.apply(event)
        if event.plain_text is None and event.rule.fold is Fold.STATE:
            self.session.note(self.history.state[event.kind])
        if not self._pending:
            self._loop.call_soon(self._tick)
        self._pending.append(event)
        self._pending_bytes += len(event.body)

    def emit_update(self, update: Update) -> None:
        """Say something that is given as an object; `UsageError` where it makes no sense."""
        check_update(update)
        self.emit(event_from(update))

    @property
    def congested(self) -> bool:
        """Whether whoever says more now should wait: a cheap look, before `drain`."""
        return self._pending_bytes > FLUSH_BYTES

    async def drain(self) -> None:
        """Write and show what was said; wait while everybody who watches is behind."""
        self.flush()
        while (attached := self.session.attachments) and not self.stopping:
            if any(it.watcher.backlog <= CONGESTED_BYTES for it in attached):
                return
            self._watchers_changed.clear()
            waits = {self._loop.create_task(it.watcher.drain()): it for it in attached}
            changed = self._loop.create_task(self._watchers_changed.wait())
            try:
                done, _ = await asyncio.wait({*waits, changed}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in (*waits, changed):
                    wait.cancel()
            for wait, attachment in waits.items():
                if wait in done and (wait.cancelled() or wait.exception() is not None):
                    attachment.drop("It does not read any more; load the session again to go on watching")

    def watchers_changed(self) -> None:
        """Note that somebody came or went: whoever waits for them looks again."""
        self._watchers_changed.set()

    def flush(self) -> None:
        """Store what was said since the last time, then show it."""
        self._store()
        self._show()

    def _tick(self) -> None:
        """Store what was said in this tick; show it, unless something was shown just now."""
        waiting = bool(self._to_show)
        self._store()
        if self._loop.time() >= self._shown_at + PACE:
            self._show()
        elif self._to_show and not waiting:
            self._loop.call_at(self._shown_at + PACE, self._show)

    def _show(self) -> None:
        if self._to_show:
            events, self._to_show = self._to_show, []
            self._shown_at = self._loop.time()
            self.session.show(events)

    def _store(self) -> None:
        events, self._pending, self._pending_bytes = self._pending, [], 0
        if self.failure is not None:
            self.unshown += events
            return
        if not events:
            return
        bodies = [it.body for it in events if it.plain_text is not None or it.rule.fold is not Fold.TRANSIENT]
        if bodies and self._log is not None:
            bodies.append(b"")
            try:
                self._log.append(b"\n".join(bodies))
            except StoreError as e:
                self._show()
                self.failure = e
                self.unshown = events
                self._stop()
                return
        self._to_show += events

    # What the agent asks

    async def ask(self, question: Question) -> Answer:
        """Put a question to whoever watches; the first answer counts, and is stored before it is acted upon."""
        if not self.running:
            raise TurnOver("This turn is over; nothing more can be asked in it")
        if self.stopping:
            return None
        if isinstance(question, Permission) and question.subject in self.session.state.permissions:
            wanted = "allow" if self.session.state.permissions[question.subject] else "reject"
            return next((it.id for it in question.options if it.kind.startswith(wanted)), None)
        self._enter("ask", "requires_action")
        self.flush()  # what a question is about is shown before it is put
        try:
            answer = await self.asks.put(question)
            if isinstance(question, Permission) and answer is not None and not self.stopping:
                await self._keep(question, answer)
            return answer if self.running and not self.stopping else None
        finally:
            if not self.asks and self.phase is Phase.ASKING:
                self._enter("answer", "running")

    async def _keep(self, question: Permission, answer: Answer) -> None:
        """Store an answer for good (P2); one that holds for ever is remembered for the session."""
        if self._log is None:
            return
        self.flush()
        chosen = question.chosen(answer)
        subject = question.subject if chosen is not None and chosen.kind.endswith("_always") else None
        allow = chosen is not None and chosen.kind.startswith("allow")
        if subject is not None:
            # The state is stored when the turn is sealed; until then the log tells.
            remembered = {"sessionUpdate": REMEMBERED, "subject": subject, "allow": allow}
            self._log.append(event_from(remembered).body + b"\n")
        await self._log.sync()
        if subject is not None:
            self.session.state.permissions[subject] = allow

    # Its life; the engine's business

    def start(self, log: TurnLog, first: Sequence[Event]) -> None:
        """Begin: the prompt is stored."""
        self._log = log
        self._enter("start", "running", first)
        if not self.accepted.done():  # whoever waited for it may have been cancelled, and it with them
            self.accepted.set_result(self.message_id)

    def work(self, task: asyncio.Task[StopReason | None]) -> None:
        """Note who does the work."""
        self._work = task
        task.add_done_callback(lambda _: self._is_over())
        if self.stopping:
            task.cancel()

    def cancel(self) -> None:
        """Make it stop (C5)."""
        if not self.cancelled:
            self.cancelled = True
            self._stop()

    def _stop(self) -> None:
        """Cancel the work. Open questions have no answer; an agent that goes on is given up on after a while."""
        self.give_up_after(self._grace)
        self.asks.give_up()
        if self._work is not None:
            self._work.cancel()

    def give_up_after(self, grace: float) -> None:
        """Wait so long for the agent, and no longer."""
        self._loop.call_later(grace, self._is_over)

    def end(self) -> None:
        """Say nothing more, and ask nothing more."""
        self.flush()
        self.phase = next_phase(self.phase, "end")
        self._log = None
        self.asks.give_up()

    def _is_over(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def _enter(self, trigger: TurnTrigger, state: str, first: Sequence[Event] = ()) -> None:
        before = self.phase
        self.phase = next_phase(before, trigger)
        if self.phase is not before:
            self.session.show(first)
            self.emit_update({"sessionUpdate": "state_update", "state": state})
