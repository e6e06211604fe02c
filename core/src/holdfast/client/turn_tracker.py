"""One turn as the client that prompted it follows it, from the prompt it sends to the end it is told.

In version 1 the answer to the prompt is the end of the turn. In version 2 it is the beginning, and the end is the idle
`state_update` after it; one that came before the answer counts only if the prompt had been taken up by then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from holdfast.client.updates import UpdateQueue
from holdfast.errors import ConnectionLost, MessageLost, RemoteError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.client.dialect import Lifting
    from holdfast.client.updates import SessionUpdate
    from holdfast.model import Event, Update
    from holdfast.peer import Peer, SentRequest


class TurnTracker:
    """Sends a prompt and finds out when its turn has ended. `run` is its task; the connection owns it."""

    def __init__(self, peer: Peer, lifting: Lifting, params: Update) -> None:
        loop = asyncio.get_running_loop()
        self.queue: UpdateQueue = UpdateQueue()
        """What happened in the turn and was not taken yet."""
        self.ended: asyncio.Future[None] = loop.create_future()
        self.stop_reason: str | None = None
        self.stop_deadline: float | None = None
        """Until when, in the loop's time, the agent may take to stop; None while it was not asked to."""
        self.abandoned = False
        """Whether nobody iterates over it any more."""
        self._peer = peer
        self._lifting = lifting
        self._params = params
        self._sent: SentRequest | None = None
        self._lost: list[str] = []  # why messages of this turn could not be read
        self._idle_seen: asyncio.Future[Update] = loop.create_future()
        self._accepted = lifting.answer_ends
        self._active = False  # whether anything was done in the session since the prompt was sent
        self._user_messages: set[str] = set()  # ids of the user's messages since then
        self._idle: Update | None = None  # the idle state, if nothing came after it

    def take(self, update: SessionUpdate) -> None:
        """Take an update of the session."""
        self.queue.put(update)
        if self._lifting.answer_ends:
            return
        if update.kind in {"user_message", "user_message_chunk"}:
            self._user_messages.add(update.key)
        elif update.kind != "state_update":
            self._active = self._active or bool(update.rule.key)
        else:
            self._take_state(update.update())

    def _take_state(self, state: Update) -> None:
        if state.get("state") != "idle":
            self._active = True
            self._idle = None
            return
        if self._accepted and (self._active or state.get("stopReason") is not None):
            self._end(state)
        elif self._active:
            self._idle = state

    def _accept(self, answer: Update) -> None:
        """Note that the prompt is part of the conversation; its turn may even be over."""
        self._accepted = True
        if self._idle is not None and (answer.get("messageId") in self._user_messages or not self._user_messages):
            self._end(self._idle)

    def _end(self, idle: Update) -> None:
        if not self._idle_seen.done():
            self._idle_seen.set_result(idle)

    def send(self) -> None:
        """Send the prompt, before this returns: a cancellation that comes next must not overtake it."""
        self._sent = self._peer.send_request("session/prompt", self._params)

    async def run(self, apply: Callable[[Sequence[Event]], None]) -> None:
        """Follow the turn to its end, once it is sent; `apply` takes the events that the answer means."""
        error: Exception | None = None
        try:
            error = await self._prompt(apply)
        except RemoteError as e:
            cancelled = self.stop_deadline is not None  # some agents answer a cancelled prompt with an error
            error = None if cancelled else e
            self.stop_reason = "cancelled" if cancelled else "error"
            failure: Update = {"code": e.code, "message": e.message}
            apply(
                self._lifting.lift_failure(self.stop_reason, failure if e.data is None else {**failure, "data": e.data})
            )
        except Exception as e:  # noqa: BLE001  (the agent is gone, or the prompt cannot be encoded: the caller is told)
            error = e
        except asyncio.CancelledError:
            error = ConnectionLost("the connection was closed")
            if not self._idle_seen.cancelled():
                raise
        finally:
            self.finish(error)

    async def _prompt(self, apply: Callable[[Sequence[Event]], None]) -> RemoteError | None:
        """Wait for the end of the turn; return how it failed, if it did."""
        wanted = dict[str, Any] | None
        assert self._sent is not None
        answer: Update = await self._sent.answer(cast("Any", wanted)) or {}
        if self._lifting.answer_ends:
            self.stop_reason = answer.get("stopReason")
            apply(self._lifting.lift_end(answer))
            return None
        self._accept(answer)
        idle = await self._idle_seen
        self.stop_reason = idle.get("stopReason")
        return _failure(idle)

    def message_lost(self, reason: str, *, may_be_the_end: bool) -> None:
        """Note that a message of the session could not be read; the turn raises `MessageLost` at its end.

        One that may have told the end of the turn ends it now: nothing else will.
        """
        self._lost.append(reason)
        if may_be_the_end and not self._lifting.answer_ends:
            self.give_up(MessageLost(self._lost))

    def give_up(self, error: Exception) -> None:
        """End it without having heard of its end: nothing more will come."""
        self.finish(error)
        if not self._idle_seen.done():
            self._idle_seen.cancel()

    def finish(self, error: Exception | None) -> None:
        """End the queue, and wake whoever waits for the end."""
        if error is None and self._lost:
            error = MessageLost(self._lost)
        self.queue.end(error)
        if not self.ended.done():
            self.ended.set_result(None)


def _failure(idle: Update) -> RemoteError | None:
    if idle.get("stopReason") != "error":
        return None
    match idle.get("error"):
        case {"code": int(code), "message": str(message), **rest}:
            return RemoteError(code, message, rest.get("data"))
        case _:
            return RemoteError(-32603, "The turn failed, and the agent does not say why")
