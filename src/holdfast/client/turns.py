"""A turn as the client that asked for it sees it: from the prompt it sends to the end it is told.

In version 1 the answer to the prompt is the end. In version 2 it is the beginning, and the end is the idle
`state_update` after it; one that came before counts only if it came after the prompt had been taken up.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

from holdfast.client.feed import Feed
from holdfast.errors import ConnectionLost, RemoteError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.client.dialect import Lifting
    from holdfast.model import Event, Update
    from holdfast.peer import Peer

log = logging.getLogger(__name__)


class Turn:
    """One turn. `run` is its life; somebody owns the task."""

    def __init__(self, peer: Peer, lifting: Lifting, session_id: str, blocks: Sequence[Update]) -> None:
        loop = asyncio.get_running_loop()
        self.feed = Feed()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.stop_reason: str | None = None
        self.cancelling = False
        """Whether it was asked to stop."""
        self.abandoned = False
        """Whether nobody looks at it any more."""
        self._peer = peer
        self._lifting = lifting
        self._params: Update = {"sessionId": session_id, "prompt": list(blocks)}
        self._over: asyncio.Future[Update] = loop.create_future()
        self._accepted = lifting.answer_ends
        self._active = False  # whether anything was done in the session since the prompt was sent
        self._taken: set[str] = set()  # messages of the user since then
        self._idle: Update | None = None  # the last word on the session's state, if it is that

    def see(self, event: Event) -> None:
        """Take something that happened in the session."""
        self.feed.put(event)
        if self._lifting.answer_ends:
            return
        if event.kind in {"user_message", "user_message_chunk"}:
            self._taken.add(event.key)
        elif event.kind != "state_update":
            self._active = self._active or bool(event.rule.key)
        else:
            self._see_state(event.update())

    def _see_state(self, update: Update) -> None:
        if update.get("state") != "idle":
            self._active = True
            self._idle = None
            return
        if self._accepted and (self._active or update.get("stopReason") is not None):
            self._end(update)
        elif self._active:
            self._idle = update

    def _accept(self, answer: Update) -> None:
        """Note that the prompt is part of the conversation; its turn may even be over."""
        self._accepted = True
        if self._idle is not None and (answer.get("messageId") in self._taken or not self._taken):
            self._end(self._idle)

    def _end(self, idle: Update) -> None:
        if not self._over.done():
            self._over.set_result(idle)

    async def run(self, apply: Callable[[Sequence[Event]], None]) -> None:
        """Send the prompt and see its turn to the end; `apply` is told what the answer means for the session."""
        error: Exception | None = None
        try:
            wanted = dict[str, Any] | None
            answer: Update = await self._peer.request("session/prompt", self._params, result=cast("Any", wanted)) or {}
            if self._lifting.answer_ends:
                self.stop_reason = answer.get("stopReason")
                apply(self._lifting.answered(answer))
            else:
                self._accept(answer)
                idle = await self._over
                self.stop_reason = idle.get("stopReason")
                error = _failure(idle)
        except RemoteError as e:
            error = None if self.cancelling else e  # some answer a cancelled prompt with an error
            self.stop_reason = "cancelled" if self.cancelling else "error"
            apply(self._lifting.failed(self.stop_reason, {"code": e.code, "message": e.message}))
        except ConnectionLost as e:
            error = e
        except asyncio.CancelledError:
            error = ConnectionLost("the connection was closed")
            if not self._over.cancelled():
                raise
        finally:
            self.finish(error)

    def lost(self, error: Exception) -> None:
        """Note that nothing more will be heard of it."""
        self.finish(error)
        if not self._over.done():
            self._over.cancel()

    def finish(self, error: Exception | None) -> None:
        """Let everybody know that it is over."""
        self.feed.end(error)
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
