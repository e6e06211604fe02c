"""`ClientTurn`: a turn as the program that prompted it has it in its hands."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Generator

    from holdfast.client.open_session import OpenSession
    from holdfast.client.turn_tracker import TurnTracker
    from holdfast.client.updates import SessionUpdate
    from holdfast.model import Update


class ClientTurn:
    """A turn: iterate over it for its updates, await it for its stop reason, or enter it with `async with`.

    Nothing is sent before. Leaving it early cancels the turn. After its last update it raises `RemoteError` if the turn
    failed, `ProcessExited` if the agent died, `MessageLost` if something the agent sent could not be read.
    """

    __slots__ = ("_loop", "_params", "_session", "_tracker")

    def __init__(self, session: OpenSession, params: Update) -> None:
        self._session = session
        self._params = params
        self._tracker: TurnTracker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def stop_reason(self) -> str | None:
        """Why it ended: ``end_turn``, ``cancelled``, ``max_tokens``, ``refusal``… None while it has not."""
        return None if self._tracker is None else self._tracker.stop_reason

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionUpdate:
        tracker = self._tracker or await self._begin()
        try:
            return await tracker.queue.take()
        except asyncio.CancelledError:
            await self._session.leave(tracker)
            raise

    def __await__(self) -> Generator[Any, None, str | None]:
        return self._run_to_end().__await__()

    async def __aenter__(self) -> Self:
        if self._tracker is None:
            await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._tracker is not None and not self._tracker.ended.done():
            await self._session.leave(self._tracker)

    def __del__(self) -> None:
        tracker, loop = self._tracker, self._loop
        if tracker is not None and loop is not None and not tracker.ended.done():
            tracker.abandoned = True
            with suppress(RuntimeError):  # the loop may be closed
                loop.call_soon_threadsafe(self._session.abandon, tracker)

    async def _begin(self) -> TurnTracker:
        self._tracker = await self._session.begin(self._params)
        self._loop = asyncio.get_running_loop()
        return self._tracker

    async def _run_to_end(self) -> str | None:
        async for _ in self:
            pass
        return self.stop_reason
