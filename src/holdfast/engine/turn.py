"""A turn: from an accepted prompt to its end. Everything it says goes through `emit`.

What is emitted within one loop tick is written to the turn's log in one piece, and only then shown (P1).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.errors import StoreError, TurnOver
from holdfast.model import Event, Fold, History, Permission, Phase, event_from, new_id, next_phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.engine.session import Attachment, LiveSession
    from holdfast.model import Answer, Happening, Question, StopReason, TurnEnd, Update
    from holdfast.store import TurnLog

FLUSH_BYTES = 256 << 10
"""When a tick has emitted this much it is written and shown at once."""

CONGESTED_BYTES = 1 << 20
"""Whoever has more than this unread is behind; a turn waits only while everybody is."""

REMEMBERED = "_holdfast/permission"
"""The kind of a line in the log that tells of an answer given for ever."""

FINAL = frozenset({"completed", "failed", "cancelled"})


class Turn:
    """One turn of a session, as the agent that performs it sees it."""

    def __init__(self, session: LiveSession, prompt: Sequence[Update], *, complete: bool, grace: float) -> None:
        loop = asyncio.get_running_loop()
        self.session = session
        self.prompt = prompt
        self.message_id = new_id("msg")
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
        self._work: asyncio.Task[StopReason | None] | None = None
        self._asks: list[_Ask] = []

    @property
    def running(self) -> bool:
        """Whether it has begun and not ended."""
        return self.phase in (Phase.RUNNING, Phase.ASKING)

    @property
    def asking(self) -> bool:
        """Whether it waits for the user."""
        return self.phase is Phase.ASKING

    # What the agent says

    def emit(self, event: Event) -> None:
        """Say something. It is stored and shown at the end of this loop tick."""
        if not self.running:
            raise TurnOver("This turn is over; nothing more can be said in it")
        self.history.apply(event)
        if not self._pending:
            self._loop.call_soon(self.flush)
        self._pending.append(event)
        self._pending_bytes += len(event.body)

    def emit_update(self, update: Update) -> None:
        """Say something that is given as an object."""
        self.emit(event_from(update))

    @property
    def congested(self) -> bool:
        """Whether whoever says more now should wait: a cheap look, before `drain`."""
        return self._pending_bytes > FLUSH_BYTES

    async def drain(self) -> None:
        """Write and show what was said; wait while everybody who watches is behind."""
        self.flush()
        while self.session.attachments and not self.cancelled:
            watchers = [it.watcher for it in self.session.attachments]
            if any(it.backlog <= CONGESTED_BYTES for it in watchers):
                return
            waits = [self._loop.create_task(it.drain()) for it in watchers]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()

    def flush(self) -> None:
        """Store what was said since the last time, then show it."""
        events, self._pending, self._pending_bytes = self._pending, [], 0
        if self.failure is not None:
            self.unshown += events
            return
        if not events:
            return
        bodies = [it.body for it in events if it.text is not None or it.rule.fold is not Fold.TRANSIENT]
        if bodies and self._log is not None:
            bodies.append(b"")
            try:
                self._log.append(b"\n".join(bodies))
            except StoreError as e:
                self.failure = e
                self.unshown = events
                self._stop()
                return
        self.session.show(events)

    # What the agent asks

    async def ask(self, question: Question) -> Answer:
        """Put a question to whoever watches; the first answer counts, and is stored before it is acted upon."""
        if isinstance(question, Permission) and question.subject in self.session.state.permissions:
            wanted = "allow" if self.session.state.permissions[question.subject] else "reject"
            return next((it.id for it in question.options if it.kind.startswith(wanted)), None)
        ask = _Ask(question, self._loop.create_future())
        self._asks.append(ask)
        self._enter("ask", "requires_action")
        try:
            for attachment in self.session.attachments:
                self._put(ask, attachment)
            if not ask.put:
                ask.answer.set_result(None)
            answer = await ask.answer
            await self._keep(question, answer)
            return answer
        finally:
            self._asks.remove(ask)
            for task in ask.put.values():
                task.cancel()
            if not self._asks and self.phase is Phase.ASKING:
                self._enter("answer", "running")

    async def _keep(self, question: Question, answer: Answer) -> None:
        """Store an answer for good (P2); one that holds for ever is remembered for the session."""
        if self._log is None or not isinstance(question, Permission):
            return
        chosen = question.chosen(answer)
        if chosen is not None and question.subject is not None and chosen.kind.endswith("_always"):
            allow = chosen.kind.startswith("allow")
            self.session.state.permissions[question.subject] = allow
            # The state is stored when the turn is sealed; until then the log tells.
            remembered = {"sessionUpdate": REMEMBERED, "subject": question.subject, "allow": allow}
            self._log.append(event_from(remembered).body + b"\n")
        self.flush()
        await self._log.sync()

    def ask_newcomer(self, attachment: Attachment) -> None:
        """Put the questions that are open to somebody who has only now begun to watch."""
        for ask in self._asks:
            self._put(ask, attachment)

    def forget(self, attachment: Attachment) -> None:
        """Expect no answer from somebody who has left; a question nobody is left to answer has none."""
        for ask in self._asks:
            if (task := ask.put.pop(attachment, None)) is not None:
                task.cancel()
            if not ask.put and not ask.answer.done():
                ask.answer.set_result(None)

    def _put(self, ask: _Ask, attachment: Attachment) -> None:
        async def put() -> None:
            try:
                answer = await attachment.watcher.ask(ask.question)
            except Exception:  # noqa: BLE001  (whatever went wrong over there, it is no answer)
                answer = None
            if not ask.answer.done():
                ask.answer.set_result(answer)

        ask.put[attachment] = self._loop.create_task(put(), name="ask")

    # Its life; the engine's business

    def start(self, log: TurnLog, first: Sequence[Event]) -> None:
        """Begin: the prompt is stored."""
        self._log = log
        self._enter("start", "running", first)
        self.accepted.set_result(self.message_id)

    def work(self, task: asyncio.Task[StopReason | None]) -> None:
        """Note who does the work."""
        self._work = task
        task.add_done_callback(lambda _: self._is_over())
        if self.cancelled or self.failure is not None:
            task.cancel()

    def cancel(self) -> None:
        """Make it stop (C5)."""
        if not self.cancelled:
            self.cancelled = True
            self._stop()

    def _stop(self) -> None:
        """Cancel the work. Open questions have no answer; an agent that goes on is given up on after a while."""
        self.give_up_after(self._grace)
        for ask in self._asks:
            if not ask.answer.done():
                ask.answer.set_result(None)
        if self._work is not None:
            self._work.cancel()

    def give_up_after(self, grace: float) -> None:
        """Wait so long for the agent, and no longer."""
        self._loop.call_later(grace, self._is_over)

    def end(self) -> None:
        """Say nothing more."""
        self.flush()
        self.phase = next_phase(self.phase, "end")

    def _is_over(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def _enter(self, happening: Happening, state: str, first: Sequence[Event] = ()) -> None:
        before = self.phase
        self.phase = next_phase(before, happening)
        if self.phase is not before:
            self.session.show(first)
            self.emit_update({"sessionUpdate": "state_update", "state": state})


class _Ask:
    """A question that waits for its answer, and to whom it was put."""

    __slots__ = ("answer", "put", "question")

    def __init__(self, question: Question, answer: asyncio.Future[Answer]) -> None:
        self.question = question
        self.answer = answer
        self.put: dict[Attachment, asyncio.Task[None]] = {}


def closing_events(history: History, *, status: str) -> list[Event]:
    """Say how what a turn left open ends: tool calls that were not finished, terminals that had not exited."""
    events: list[Event] = []
    for entry in history:
        if entry.entity == "tool_call_update" and entry.members.get("status", "pending") not in FINAL:
            events.append(event_from({"sessionUpdate": "tool_call_update", "toolCallId": entry.key, "status": status}))
        elif entry.entity == "terminal_update" and not isinstance(entry.members.get("exitStatus"), dict):
            events.append(event_from({"sessionUpdate": "terminal_update", "terminalId": entry.key, "exitStatus": {}}))
    return events
