"""What a caller of the client library takes from a session: its updates, one by one.

`SessionUpdate` is one of them, `UpdateQueue` holds those that nobody has taken yet, and `UpdateStream`, which
`ClientSession.updates` returns, iterates over a queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Self

from holdfast.model import Event


class SessionUpdate(Event, frozen=True, gc=False):
    """One update of a session, in version 2's shape whatever the agent speaks.

    `kind` names it, `key` is the id of the message, tool call… it is about, `text` the text of a piece of a message,
    and `update()` the whole JSON object. ``str(update)`` is one readable line that is safe to print in a terminal.
    """

    def __str__(self) -> str:
        from holdfast.view.summary import summary_line  # noqa: PLC0415  (only programs that print updates need it)

        return summary_line(self.update())


class UpdateQueue:
    """Updates that wait to be taken, and what follows the last of them.

    It is not bounded: the session's history holds the same text anyway.
    """

    __slots__ = ("__weakref__", "_changed", "_end", "_updates")

    def __init__(self) -> None:
        self._updates: deque[SessionUpdate] = deque()
        self._end: Exception | None = None
        self._changed = asyncio.Event()

    def put(self, update: SessionUpdate) -> None:
        """Add an update. After `end` nothing is added."""
        if self._end is None:
            self._updates.append(update)
            self._changed.set()

    def end(self, error: Exception | None = None) -> None:
        """End the queue; only the first call counts.

        `error` is raised to whoever takes after the last update, `StopAsyncIteration` if it is None.
        """
        if self._end is None:
            self._end = error or StopAsyncIteration()
            self._changed.set()

    async def take(self) -> SessionUpdate:
        """Return the next update, waiting for it; raise what `end` was given once there are none left."""
        while not self._updates:
            if self._end is not None:
                raise self._end.with_traceback(None)
            self._changed.clear()
            await self._changed.wait()
        return self._updates.popleft()


class UpdateStream:
    """All updates of a session from some moment on: an async iterator that ends when the session is closed."""

    __slots__ = ("_queue",)

    def __init__(self, queue: UpdateQueue) -> None:
        self._queue = queue

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionUpdate:
        return await self._queue.take()
