"""A queue of events with an end."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.model import Event


class Feed:
    """What somebody has still to take. It is not bounded: the history holds the same events anyway."""

    __slots__ = ("__weakref__", "_end", "_events", "_news")

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._end: Exception | None = None
        self._news = asyncio.Event()

    def put(self, event: Event) -> None:
        """Add an event, unless the end was there before it."""
        if self._end is None:
            self._events.append(event)
            self._news.set()

    def end(self, error: Exception | None = None) -> None:
        """Let whoever takes find the end after all that was put before; the first end counts."""
        if self._end is None:
            self._end = error or StopAsyncIteration()
            self._news.set()

    async def take(self) -> Event:
        """Take the next event; wait for it. Raises what was given as the end, `StopAsyncIteration` by default."""
        while not self._events:
            if self._end is not None:
                raise self._end
            self._news.clear()
            await self._news.wait()
        return self._events.popleft()
