"""Runs the turns of a session, one after the other, and sees each to its end."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from holdfast.engine.recovery import sealable
from holdfast.engine.session import Unsealed
from holdfast.engine.turn import closing_events
from holdfast.errors import RequestCancelled, RequestError, SessionMoved
from holdfast.model import TurnEnd, event_from, new_id, title_from
from holdfast.store import Changes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holdfast.engine.port import AgentPort
    from holdfast.engine.session import LiveSession
    from holdfast.engine.turn import Turn
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

    async def _turn(self, session: LiveSession, turn: Turn) -> None:
        try:
            begun, first = await self._begin(session, turn)
        except SessionMoved as e:
            _refuse(turn, e)
            await self._lost(session, e.message)
            return
        except Exception as e:  # noqa: BLE001
            _refuse(turn, e)
            return
        turn.start(begun, first)
        end = await self._perform(turn)
        for event in closing_events(turn.history, status=CLOSED_AS.get(end.reason, "failed")):
            turn.emit(event)
        turn.end()
        end = await self._seal(session, turn, end)
        if session.unsealed is None:
            session.show(turn.unshown)
        told: Update = {"sessionUpdate": "state_update", "state": "idle", "stopReason": end.reason}
        if end.error is not None:
            told["error"] = {"code": -32603, "message": end.error}
        session.show([event_from(told)])
        turn.ended.set_result(end)

    async def _begin(self, session: LiveSession, turn: Turn) -> tuple[TurnLog, list[Event]]:
        """Store the prompt (P2), and a title made of it if the session has none (B17)."""
        if session.unsealed is not None:
            left = session.unsealed
            await self._store.seal(session.claim, left.lines, left.changes, messages=left.messages)
            session.lines += len(left.lines)
            session.unsealed = None
        message = event_from(
            {"sessionUpdate": "user_message", "messageId": turn.message_id, "content": list(turn.prompt)}
        )
        first, changes = [message], Changes()
        if session.state.title_by == "" and (title := title_from(_text(turn.prompt))):
            session.state.title_by = "prompt"
            session.title = title
            first.append(event_from({"sessionUpdate": "session_info_update", "title": title}))
            changes = Changes(title=title, state=session.state)
        begun = await self._store.begin(session.claim, [message.body], changes)
        turn.history.apply(message)
        return begun, first

    async def _perform(self, turn: Turn) -> TurnEnd:
        """Let the agent do its work, however long that takes, and say how it ended."""
        task = asyncio.get_running_loop().create_task(self._agent_work(turn), name="turn")
        turn.work(task)
        await turn.over
        if not task.done():
            log.warning("The agent does not let itself be cancelled; it is left behind")
            self._left_behind.add(task)
            task.add_done_callback(self._left_behind.discard)
            return TurnEnd("cancelled")
        failure = None if task.cancelled() else task.exception()
        if turn.failure is not None:
            return TurnEnd("error", turn.failure.message)
        if turn.cancelled:
            return TurnEnd("cancelled")  # whatever the agent made of it (C5)
        if task.cancelled():
            return TurnEnd("error", "The agent cancelled itself")
        if failure is not None:
            return TurnEnd("error", _explain(failure))
        return TurnEnd(task.result() or "end_turn")

    async def _agent_work(self, turn: Turn) -> StopReason | None:
        return await self._agent.perform(turn)

    async def _seal(self, session: LiveSession, turn: Turn, end: TurnEnd) -> TurnEnd:
        """Store the turn for good, before anyone hears of its end (P2)."""
        session.state.interrupted = False
        lines, changes, messages = sealable(turn.history, session.state, end.reason, end.error)
        if isinstance(changes.title, str | None):
            session.title = changes.title
        try:
            await self._store.seal(session.claim, lines, changes, messages=messages)
        except TypeError as e:
            log.exception("The session's state cannot be stored")
            await self._store.seal(session.claim, lines, Changes(title=changes.title), messages=messages)
            session.lines += len(lines)
            return TurnEnd("error", f"What the agent wants to remember is not JSON: {e}")
        except SessionMoved as e:
            await self._lost(session, e.message)
            return TurnEnd("error", e.message)
        except RequestError as e:
            session.unsealed = Unsealed(lines, changes, messages)
            return TurnEnd("error", e.message)
        session.lines += len(lines)
        return end


def _drop(turn: Turn) -> None:
    """Forget a prompt that waits."""
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


def _text(prompt: Sequence[Update]) -> str:
    return "\n".join(it["text"] for it in prompt if it.get("type") == "text")
