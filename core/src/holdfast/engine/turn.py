"""A turn: from an accepted prompt to its end. Everything it says goes through the session's journal."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.engine.background import background_keys
from holdfast.engine.journal import closing_events
from holdfast.errors import (
    InternalError,
    RequestCancelled,
    RequestError,
    SessionMoved,
    SessionNotFound,
    TurnOver,
    UsageError,
)
from holdfast.model import (
    Event,
    Fold,
    Permission,
    Phase,
    TurnEnd,
    check_json,
    check_update,
    event_from,
    next_phase,
    split_update,
    title_from,
)
from holdfast.model.kinds import REMEMBERED
from holdfast.store import Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.engine.log import OpenLog
    from holdfast.engine.ports import SessionClient
    from holdfast.engine.registry import Registry
    from holdfast.engine.session import LiveSession
    from holdfast.model import Answer, History, Question, StopReason, TurnTrigger, Update

log: logging.Logger = logging.getLogger(__name__)

RUNNING_PHASES = (Phase.RUNNING, Phase.ASKING)

OVER = "This turn is over; nothing more can be said or asked in it"

ENDED_WELL = event_from({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"})

CLOSED_AS = {"end_turn": "completed", "cancelled": "cancelled"}
"""How a tool call that was left open ends; otherwise it failed."""

EVENT_BYTES = 12 << 20
"""What is longer is said in several events (A4)."""

KNOWN_OF_A_CALL = ("title", "name", "kind", "status", "locations", "rawInput")
"""What a permission request says of its tool call, besides its content."""

CONGESTED_BYTES = 1 << 20
"""A client that has more than this unread is behind; a turn waits only while every client is."""


class LiveTurn:
    """One turn of a session, as the agent that performs it sees it."""

    def __init__(
        self,
        session: LiveSession,
        prompt: Sequence[Update],
        client: SessionClient | None,
        meta: Update | None,
        message_id: str,
        *,
        acknowledged: bool = True,
    ) -> None:
        """`acknowledged` says whether whoever waits for `accepted` is told, so that the prompt must be durable (P2)."""
        self.session = session
        self.prompt = prompt
        self.client = client
        """The client that prompted; the turn works with its roots, servers and services (F3)."""
        self.roots: tuple[str, ...] = session.roots if client is None else client.roots
        """The directories the turn may work in, the working directory first."""
        self.meta = meta
        """The `_meta` of the prompt."""
        self.answer: Update = {}
        """Further members of what the client is told of its end, as `usage` and `_meta`: the agent's to set."""
        self.cancels: dict[str, Callable[[], None]] = {}
        """What a client may cancel by itself, by the id of the tool call or terminal, and what cancels it."""
        self.message_id: str = message_id
        self.context: Context = copy_context()
        """Where it was asked for; its work is done there, so that what travels with the prompt is at hand."""
        self.phase: Phase = Phase.WAITING
        self.cancelled: bool = False
        """Whether it was cancelled."""
        self.interruption: str | None = None
        """Why this process ended it, where it did."""
        self.refusal: RequestError | None = None
        """Why it never began, or could not be stored, where the error says more than its end does."""
        self.end: TurnEnd | None = None
        """How it ended, once that is durable."""
        self._acknowledged = acknowledged
        self._acceptance: asyncio.Future[str] | None = None  # made when somebody asks for it…
        self._ending: asyncio.Future[TurnEnd] | None = None  # …as most do not
        self._over: asyncio.Future[None] | None = None
        self._when_ended: list[Callable[[TurnEnd], None]] = []
        self._log: OpenLog | None = None
        self._performing: asyncio.Task[None] | None = None  # set while the agent is at work in it
        self._is_left_behind = False  # whether it is, and the turn has ended without it

    @property
    def running(self) -> bool:
        """Whether it has begun and not ended."""
        return self.phase in RUNNING_PHASES

    @property
    def asking(self) -> bool:
        """Whether it waits for the user."""
        return self.phase is Phase.ASKING

    @property
    def failed_to_store(self) -> bool:
        """Whether something it said could not be kept."""
        return self._log is not None and self._log.failure is not None

    @property
    def stopping(self) -> bool:
        """Whether its agent is to stop: it was cancelled, or what it says cannot be stored."""
        return self.cancelled or self.interruption is not None or self.failed_to_store

    @property
    def over(self) -> asyncio.Future[None]:
        """Resolves when nothing more will be done in this turn: the agent is done, or is not waited for any longer."""
        if self._over is None:
            self._over = asyncio.get_running_loop().create_future()
        return self._over

    @property
    def accepted(self) -> asyncio.Future[str]:
        """Resolves to the id of the user's message once the prompt is stored, or, not acknowledged, has begun."""
        if self._acceptance is None:
            self._acceptance = asyncio.get_running_loop().create_future()
            if self.phase is not Phase.WAITING:
                self._acceptance.set_result(self.message_id)
        return self._acceptance

    @property
    def ended(self) -> asyncio.Future[TurnEnd]:
        """Resolves once the turn's end is durable."""
        if self._ending is None:
            self._ending = self.wait_for_end()
        return self._ending

    @property
    def history(self) -> History:
        """What was said in this turn so far, folded."""
        return self._open_log().history

    @property
    def text(self) -> str:
        """The plain text of its prompt."""
        return "\n".join(block["text"] for block in self.prompt if block.get("type") == "text")

    def when_ended(self, call: Callable[[TurnEnd], None]) -> None:
        """Call a function at the turn's end; at once where that is over."""
        if self.end is not None:
            call(self.end)
        else:
            self._when_ended.append(call)

    def wait_for_end(self) -> asyncio.Future[TurnEnd]:
        """Return a future of the caller's own for the turn's end: to cancel it cancels nothing else."""
        ended: asyncio.Future[TurnEnd] = asyncio.get_running_loop().create_future()
        self.when_ended(lambda end: None if ended.done() else ended.set_result(end))
        return ended

    def _has_ended(self, end: TurnEnd) -> None:
        self.end = end
        calls, self._when_ended = self._when_ended, []
        for call in calls:
            call(end)

    # What the agent says

    def emit(self, event: Event) -> bool:
        """Say something that can be folded; it is kept in a moment (`OpenLog.append`), and shown when it is.

        Return whether whoever says more now should `drain` first.
        """
        log = self._log
        if log is None or self.phase not in RUNNING_PHASES:
            raise TurnOver(OVER)
        if len(event.body) > EVENT_BYTES:
            for part in split_update(event.update(), EVENT_BYTES):
                self.emit(event_from(part))
            return log.congested
        log.append(event)
        if event.plain_text is None and event.rule.fold is Fold.STATE:
            self.session.note(log.history.state[event.kind])
        return log.congested

    def emit_update(self, update: Update) -> None:
        """Say something that is given as an object; raise `UsageError` where it makes no sense."""
        check_update(update)
        self.emit(event_from(update))

    def keep(self, data: Any) -> None:
        """Keep a private entry: it belongs to the history, and no client is ever shown it."""
        self._open_log().keep_private(data)

    @property
    def congested(self) -> bool:
        """Whether whoever says more now should wait first: a cheap look, before `drain`."""
        return self._log is not None and self._log.congested

    async def drain(self) -> None:
        """Wait until what was said is shown, and while every client is behind."""
        await self.shown()
        if not self.stopping:
            await self.session.wait_for_readers(self)

    async def shown(self) -> None:
        """Wait until all that was said so far has been shown."""
        if self._log is not None:
            await self._log.shown()

    # What the agent asks

    async def ask(self, question: Question) -> Answer:
        """Put a question to the clients that can answer; the first answer counts, and is durable when this returns."""
        log = self._open_log()
        if self.stopping:
            return None
        permissions = self.session.state.permissions
        if isinstance(question, Permission) and question.subject in permissions:
            wanted = "allow" if permissions[question.subject] else "reject"
            return next((option.id for option in question.options if option.kind.startswith(wanted)), None)
        if isinstance(question, Permission) and question.call:
            question = msgspec.structs.replace(question, call=self._known_call(log, question.call))
        if not self.session.asks.can_be_answered(question):
            return None
        self._enter("ask", "requires_action")
        await log.shown()  # what a question is about is shown before it is put
        try:
            answer = await self.session.asks.ask(question)
            if isinstance(question, Permission) and answer is not None and not self.stopping:
                await self._remember(log, question, answer)
            return answer if self.running and not self.stopping else None
        finally:
            if not self.session.asks and self.phase is Phase.ASKING:
                self._enter("answer", "running")

    def _known_call(self, log: OpenLog, about: Update) -> Update:
        """Return all that is known of a tool call the user is asked about: nobody approves what is not shown (P13)."""
        entry = log.history.get("tool_call_update", str(about.get("toolCallId", "")))
        if entry is None:
            return about
        known = {name: entry.members[name] for name in KNOWN_OF_A_CALL if entry.members.get(name) is not None}
        if content := entry.content():
            known["content"] = list(content)
        return known | about

    async def _remember(self, log: OpenLog, question: Permission, answer: Answer) -> None:
        """Make an answer durable (P2); one that holds for ever is remembered for the session."""
        chosen = question.chosen(answer)
        subject = question.subject if chosen is not None and chosen.kind.endswith("_always") else None
        allow = chosen is not None and chosen.kind.startswith("allow")
        if subject is not None:
            # The state is stored when the turn is sealed; until then the log tells.
            log.append_unseen({"sessionUpdate": REMEMBERED, "subject": subject, "allow": allow})
        await log.durable()
        if subject is not None:
            self.session.state.permissions[subject] = allow

    # Its life; the session's business

    async def run(self, registry: Registry) -> None:
        """Go from the prompt to the end, in a task of its own: the agent works in it too, and is cancelled with it."""
        try:
            await self.session.agent.admit(self)
            await self._begin(registry)
        except (SessionMoved, SessionNotFound) as e:
            self.refuse(e)
            await self.session.evict(e.message)
            return
        except Exception as e:  # noqa: BLE001
            self.refuse(e)
            return
        try:
            end = await self._perform()
        except _LeftBehind:
            return
        await self.finish(registry, end)

    async def finish(self, registry: Registry, end: TurnEnd) -> None:
        """Seal what was said, and tell everyone that the turn has ended."""
        whole, status = registry.port.begins_entries, CLOSED_AS.get(end.reason, "failed")
        background = self.session.state.background
        besides = background_keys(background) if background else ()
        for event in closing_events(self._open_log().history, status=status, whole=whole, besides=besides):
            self.emit(event)
        self.phase = next_phase(self.phase, "end")
        self.session.give_up_asks()
        end = await self._seal(registry, end)
        self.session.journal.announce(self._idle_event(end))
        self._has_ended(end)

    def _idle_event(self, end: TurnEnd) -> Event:
        if self.session.background is None and end.reason == "end_turn" and not end.more:
            return ENDED_WELL
        reason = "error" if end.reason == "interrupted" else end.reason  # no version has another word for it
        idle = self.session.state_update("idle", stopReason=reason, **end.more)
        if end.error is not None:
            idle["error"] = {"code": (self.refusal or InternalError).code, "message": end.error}
        return event_from(idle)

    async def _begin(self, registry: Registry) -> None:
        """Store the prompt, a title made of it if there is none (B17), and the agent if it had none (F6)."""
        session, state = self.session, self.session.state
        message = event_from(
            {"sessionUpdate": "user_message", "messageId": self.message_id, "content": list(self.prompt)}
        )
        first, changes, title = [message], Changes(), None
        if state.title_by == "" and (title := title_from(self.text)):
            first.append(event_from({"sessionUpdate": "session_info_update", "title": title}))
            state.title_by = "prompt"
            changes = Changes(title=title, state=state)
        agent_name = session.agent_name or registry.agent_name
        if agent_name != session.agent_name:
            changes = msgspec.structs.replace(changes, agent=agent_name)
        whole, durable = registry.port.begins_entries, self._acknowledged
        first.append(session.running_event())
        try:
            self._log = await session.journal.begin(first, changes, self.stop, whole=whole, durable=durable)
            if not whole:
                # It has a memory of its own, in which there shall be no prompt that is not in ours.
                await self._log.shown()
        except BaseException:
            if title and state.title_by == "prompt":
                state.title_by = ""
            raise
        session.agent_name = agent_name
        if title and state.title_by == "prompt":
            session.title = title
        self.phase = next_phase(self.phase, "start")
        # Whoever waited for it may have been cancelled, and it with them.
        if self._acceptance is not None and not self._acceptance.done():
            self._acceptance.set_result(self.message_id)

    async def _perform(self) -> TurnEnd:
        """Let the agent do its work, and return how it ended. Raise `_LeftBehind` where the turn ended without it."""
        task = asyncio.current_task()
        assert task is not None
        reason: StopReason | None = None
        failure: BaseException | None = None
        if not self.stopping:
            self._performing = task
            try:
                reason = await self.session.agent.perform(self)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as e:  # noqa: BLE001  (whatever it is, the turn has an end)
                failure = e
            if self._is_left_behind:
                log.info("An agent that was left behind has ended: %r", failure)
                raise _LeftBehind
            self._performing = None
            if task.cancelling():
                await _take_back_cancel(task)
        if self._over is not None and not self._over.done():
            self._over.set_result(None)
        return self._end_of(reason, failure)

    def _end_of(self, reason: StopReason | None, failure: BaseException | None, *, stopped: bool = False) -> TurnEnd:
        """Return how the turn ends when its agent is done, or is not waited for any longer."""
        if self._log is not None and self._log.failure is not None:
            self.refusal = self._log.failure
            return TurnEnd("error", self.refusal.message)
        if self.interruption is not None:
            return TurnEnd("interrupted", self.interruption)
        if self.cancelled or stopped:
            return TurnEnd("cancelled")  # whatever the agent made of it (C5)
        if isinstance(failure, asyncio.CancelledError):
            return TurnEnd("error", "The agent cancelled itself")
        if failure is not None:
            self.refusal = failure if isinstance(failure, RequestError) else None
            return TurnEnd("error", _explain(failure))
        return TurnEnd(reason or "end_turn", more=self.answer)

    async def _seal(self, registry: Registry, end: TurnEnd) -> TurnEnd:
        """Seal the turn, before anyone hears of its end (P2)."""
        state = self.session.state
        state.interrupted = end.reason == "interrupted"
        state.model = self.session.model_name()
        if "usage" in self.answer:
            state.add_tokens(self.answer["usage"])
        try:
            if state.memory:
                check_json("session.state", dict(state.memory))
        except UsageError as e:
            # It would stand in the way of everything else there is to store, now and later.
            state.memory = (await registry.store.get(self.session.id)).state.memory
            log.error("What the agent wants to remember cannot be stored")  # noqa: TRY400  (its traceback follows)
            end = TurnEnd("error", f"What the agent wanted to remember is not JSON, and is forgotten. {_explain(e)}")
        try:
            return await self.session.journal.seal(end)
        except (SessionMoved, SessionNotFound) as e:
            self.refusal = e
            await self.session.evict(e.message)
            return TurnEnd("error", e.message)

    def drop(self) -> None:
        """Cancel it before it has begun."""
        self.cancelled = True
        self.refuse(RequestCancelled("The prompt was cancelled before its turn came"))

    def refuse(self, error: Exception) -> None:
        """End it before it has begun."""
        self.refusal = error if isinstance(error, RequestError) else None
        if not self.accepted.done():
            self.accepted.set_exception(error)
            self.accepted.exception()  # not everybody waits for it
        if self.end is None:
            cancelled = isinstance(error, RequestCancelled)
            self._has_ended(TurnEnd("cancelled") if cancelled else TurnEnd("error", _explain(error)))

    def cancel(self) -> None:
        """Make it stop (C5)."""
        if not self.cancelled:
            self.cancelled = True
            self.stop()

    def interrupt(self, reason: str) -> None:
        """Make it stop because this process ends (A11)."""
        if not self.stopping:
            self.interruption = reason
            self.stop()

    def stop(self) -> None:
        """Cancel the work. Open questions get no answer; an agent that goes on is not waited for after a while."""
        self.give_up_after(self.session.limits.cancel_grace)
        self.session.give_up_asks()
        if self._performing is not None:
            self._performing.cancel()

    def give_up_after(self, grace: float) -> None:
        """Wait so long for the agent, and no longer."""
        asyncio.get_running_loop().call_later(grace, self._give_up)

    def _give_up(self) -> None:
        """End the turn without its agent, if that is still at work."""
        if not self.over.done():
            self.over.set_result(None)
        if self._performing is not None:
            self._performing, self._is_left_behind = None, True
            self.session.leave_behind(self, self._end_of(None, None, stopped=True))

    def _open_log(self) -> OpenLog:
        if self._log is None or self.phase not in RUNNING_PHASES:
            raise TurnOver(OVER)
        return self._log

    def _enter(self, step: TurnTrigger, state: str) -> None:
        before = self.phase
        self.phase = next_phase(before, step)
        if self.phase is not before:
            self.emit_update(self.session.state_update(state))


class _LeftBehind(Exception):
    """The turn has ended without its agent, which is done only now."""


async def _take_back_cancel(task: asyncio.Task[None]) -> None:
    """Let a cancellation that was meant for the agent, and that it did not wait for, reach nothing else."""
    while task.uncancel():
        pass
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)


def _explain(failure: BaseException) -> str:
    """Return what went wrong without internals; those are in the log, under a reference."""
    if isinstance(failure, RequestError):
        log.debug("A turn was refused", exc_info=failure, extra={"told": failure.message})
        return failure.message
    reference = f"ref_{os.urandom(8).hex()}"  # random from its first digit on: its beginning finds it
    log.error("A turn failed (reference %s)", reference, exc_info=failure, extra={"reference": reference})
    return f"The agent failed; `holdfast logs` shows why (reference {reference})"
