"""Runs the turns of a session, one after the other, and sees each to its end."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from holdfast.engine.ends import closing_events, end_mark, sealable
from holdfast.engine.session import Unsealed
from holdfast.errors import RequestCancelled, RequestError, SessionMoved, SessionNotFound
from holdfast.model import TurnEnd, event_from, new_id, title_from
from holdfast.store import Changes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holdfast.engine.port import AgentPort
    from holdfast.engine.session import LiveSession
    from holdfast.engine.turn import Turn
    from holdfast.format import Line
    from holdfast.model import Event, StopReason, Update
    from holdfast.store import Store, TurnLog

log = logging.getLogger(__name__)

CLOSED_AS = {"end_turn": "completed", "cancelled": "cancelled"}
"""How a tool call that was left open ends; otherwise it failed."""


class Runner:
    """Runs turns."""

    def __init__(self, store: Store, agent: AgentPort, lost: Callable[[LiveSession, str], Awaitable[None]]) -> None:
        self._store = store
        self._agent = agent
        self._lost = lost
        self._left_behind: set[asyncio.Task[StopReason | None]] = set()

    async def run(self, session: LiveSession) -> None:
        """Run the turns of a session until none is left."""
        try:
            while session.queue:
                session.turn = turn = session.queue.popleft()
                try:
                    await self._turn(session, turn)
                except Exception as e:  # noqa: BLE001  (a mistake of ours; whoever waits is told all the same)
                    _refuse(turn, e)
                    # What was said is in the log, and the next to open the session finds it there.
                    await self._lost(session, "Something went wrong with this session; load it again to go on with it")
                finally:
                    session.turn = None
        finally:
            session.runner = None
            session.queue = None
            session.idle_since = asyncio.get_running_loop().time()

    def cancel(self, session: LiveSession) -> None:
        """Stop the turn that runs and drop those that wait."""
        while session.queue:
            _drop(session.queue.pop())
        if session.turn is not None:
            session.turn.cancel()

    def cancel_turn(self, turn: Turn) -> None:
        """Stop one turn, or drop it while it waits; the others of its session go on."""
        session = turn.session
        if session.queue and turn in session.queue:
            session.queue.remove(turn)
            _drop(turn)
        elif session.turn is turn:
            turn.cancel()

    def refuse_waiting(self, session: LiveSession, reason: RequestError) -> None:
        """Refuse the prompts that wait."""
        while session.queue:
            _refuse(session.queue.popleft(), reason)

    async def seal_left(self, session: LiveSession) -> None:
        """Seal the turn that ended while the store could not take it, if there is one."""
        left = session.unsealed
        if left is None:
            return
        async with left.sealing:
            if session.unsealed is left:
                await self._store.seal(session.claim, left.lines, left.changes, messages=left.messages, late=True)
                session.lines += len(left.lines)
                session.unsealed = None
                session.show(left.unshown)

    async def _turn(self, session: LiveSession, turn: Turn) -> None:
        try:
            begun, first = await self._begin(session, turn)
        except (SessionMoved, SessionNotFound) as e:
            _refuse(turn, e)
            await self._lost(session, e.message)
            return
        except Exception as e:  # noqa: BLE001
            _refuse(turn, e)
            return
        turn.start(begun, first)
        end = await self._perform(turn)
        status = CLOSED_AS.get(end.reason, "failed")
        for event in closing_events(turn.history, status=status, complete=self._agent.begins_entries):
            turn.emit(event)
        turn.end()
        end = await self._seal(session, turn, end)
        if session.unsealed is None:
            session.show(turn.unshown)
        told: Update = {"sessionUpdate": "state_update", "state": "idle", "stopReason": end.reason}
        if end.error is not None:
            told["error"] = {"code": -32603, "message": end.error}
        session.show([event_from(told)])
        if not turn.ended.done():  # whoever waited for it may have been cancelled, and it with them
            turn.ended.set_result(end)

    async def _begin(self, session: LiveSession, turn: Turn) -> tuple[TurnLog, list[Event]]:
        """Store the prompt (P2), and a title made of it if the session has none (B17)."""
        await self.seal_left(session)
        message = event_from(
            {"sessionUpdate": "user_message", "messageId": turn.message_id, "content": list(turn.prompt)}
        )
        first, changes, title = [message], Changes(), None
        if session.state.title_by == "" and (title := title_from(_text(turn.prompt))):
            first.append(event_from({"sessionUpdate": "session_info_update", "title": title}))
            session.state.title_by = "prompt"
            changes = Changes(title=title, state=session.state)
        try:
            begun = await self._store.begin(session.claim, [message.body], changes)
        except BaseException:
            if title and session.state.title_by == "prompt":
                session.state.title_by = ""
            raise
        if title and session.state.title_by == "prompt":
            session.title = title
        turn.history.apply(message)
        return begun, first

    async def _perform(self, turn: Turn) -> TurnEnd:
        """Let the agent do its work, however long that takes, and say how it ended."""
        task = asyncio.get_running_loop().create_task(self._agent_work(turn), name="turn", context=turn.context)
        turn.work(task)
        await turn.over
        if not task.done():
            log.warning("The agent does not let itself be cancelled; it is left behind")
            self._left_behind.add(task)
            task.add_done_callback(self._forget)
        failure = task.exception() if task.done() and not task.cancelled() else None
        if turn.failure is not None:
            return TurnEnd("error", turn.failure.message)
        if turn.cancelled or not task.done():
            return TurnEnd("cancelled")  # whatever the agent made of it (C5)
        if task.cancelled():
            return TurnEnd("error", "The agent cancelled itself")
        if failure is not None:
            return TurnEnd("error", turn.context.run(_explain, failure))
        return TurnEnd(task.result() or "end_turn")

    def _forget(self, task: asyncio.Task[StopReason | None]) -> None:
        self._left_behind.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            log.info("An agent that was left behind has ended: %r", failure)

    async def _agent_work(self, turn: Turn) -> StopReason | None:
        return await self._agent.perform(turn)

    async def _seal(self, session: LiveSession, turn: Turn, end: TurnEnd) -> TurnEnd:
        """Store the turn for good, before anyone hears of its end (P2)."""
        session.state.interrupted = False
        if not _is_json(session.state.memory):
            # It would stand in the way of everything else there is to store, now and later.
            session.state.memory = (await self._store.get(session.id)).state.memory
            end = TurnEnd("error", "What the agent wanted to remember is not JSON, and is forgotten")
        lines, changes, messages = self._sealable(session, turn, end)
        try:
            await self._store.seal(session.claim, lines, changes, messages=messages)
        except (SessionMoved, SessionNotFound) as e:
            await self._lost(session, e.message)
            return TurnEnd("error", e.message)
        except RequestError as e:
            failed = TurnEnd("error", e.message)
            if end.reason == "end_turn":
                lines, changes, messages = self._sealable(session, turn, failed)
            session.unsealed = Unsealed(lines, changes, messages, turn.unshown, e)
            return failed
        session.lines += len(lines)
        return end

    def _sealable(self, session: LiveSession, turn: Turn, end: TurnEnd) -> tuple[list[Line], Changes, int]:
        """Say what the turn leaves behind. The mark of a bad end is shown, like anything else, once it is stored."""
        marks = end_mark(end)
        turn.unshown += marks
        lines, changes, messages = sealable(turn.history, marks, session.state)
        if changes.title is not UNSET:
            # The user may be giving it another one right now, and came later.
            changes = msgspec.structs.replace(changes, title=session.title)
        return lines, changes, messages


def _drop(turn: Turn) -> None:
    """Cancel a turn that never began."""
    turn.cancelled = True
    _refuse(turn, RequestCancelled("The prompt was cancelled before its turn came"))


def _refuse(turn: Turn, error: Exception) -> None:
    """End a turn that never began."""
    if not turn.accepted.done():
        turn.accepted.set_exception(error)
        turn.accepted.exception()  # not everybody waits for it
    if not turn.ended.done():
        cancelled = isinstance(error, RequestCancelled)
        turn.ended.set_result(TurnEnd("cancelled") if cancelled else TurnEnd("error", _explain(error)))


def _explain(failure: BaseException) -> str:
    """Say what went wrong without internals; those are in the log, under a reference."""
    if isinstance(failure, RequestError):
        return failure.message
    reference = new_id("ref")
    log.error("A turn failed (reference %s)", reference, exc_info=failure)
    return f"The agent failed (reference {reference})"


def _is_json(memory: object) -> bool:
    try:
        msgspec.json.encode(memory)
    except (TypeError, ValueError, RecursionError):
        log.exception("What the agent wants to remember cannot be stored")
        return False
    return True


def _text(prompt: Sequence[Update]) -> str:
    return "\n".join(it["text"] for it in prompt if it.get("type") == "text")
