"""`Clock`: lets time pass for the code under test, without waiting."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

from holdfast.errors import UsageError

TICKS = 50
"""So many ticks of the loop the code under test may take to react before more time passes."""
THREAD_SECONDS = 0.005
"""So long, in real time, threads may take: a store has some."""


class Clock:
    """Moves the time of the running event loop forward: `asyncio.sleep`, `asyncio.timeout`, `loop.call_later`.

    ``await clock.advance(3600)`` lets an hour pass at once. Everything that becomes due meanwhile happens in order,
    each at its own time. What looks at `time.time` or `time.monotonic` sees nothing of it. It works with asyncio's own
    event loops; `advance` raises `UsageError` for another.
    """

    def __init__(self) -> None:
        self._ahead = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._real = time.monotonic

    @property
    def ahead(self) -> float:
        """How many seconds have passed that nobody waited for."""
        return self._ahead

    async def advance(self, seconds: float) -> None:
        """Let so many seconds pass, and whatever becomes due in them happen.

        Args:
            seconds: how long; not negative.

        Raises:
            UsageError: time would go back, or the event loop cannot be moved.

        """
        if seconds < 0:
            raise UsageError("time does not go back")
        loop = self._take_over()
        await self._settle()
        end = loop.time() + seconds
        while (due := self._next_due(loop)) is not None and due <= end:
            self._ahead += max(due - loop.time(), 0)
            await self._settle()
        self._ahead += max(end - loop.time(), 0)
        await self._settle()

    def stop(self) -> None:
        """Give the loop its own time again."""
        if self._loop is not None:
            vars(self._loop).pop("time", None)
            self._loop = None

    def _take_over(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return loop
        if not isinstance(loop, asyncio.BaseEventLoop):
            raise UsageError(f"{type(loop).__name__} keeps its own time; run the test with asyncio's event loop")
        self._loop, self._ahead = loop, 0.0
        self._real = loop.time
        loop.time = lambda: self._real() + self._ahead
        return loop

    @staticmethod
    def _next_due(loop: asyncio.AbstractEventLoop) -> float | None:
        """Return when the next timer of the loop is due."""
        timers = cast("list[asyncio.TimerHandle]", cast("Any", loop)._scheduled)  # asyncio tells nobody else
        return min((timer.when() for timer in timers if not timer.cancelled()), default=None)

    @staticmethod
    async def _settle() -> None:
        """Let everything happen that can happen now, in threads too."""
        for _ in range(2):
            for _ in range(TICKS):
                await asyncio.sleep(0)
            await asyncio.get_running_loop().run_in_executor(None, time.sleep, THREAD_SECONDS)
