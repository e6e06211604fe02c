"""Ends what is open as soon as that with which it was let in holds no more (F3)."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Hashable

log: logging.Logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.4
"""So often it is asked whether what is open may stay: all has to end within a second."""


class RevokedError(Exception):
    """Ends what was bound to something that holds no more. Never leaves this package."""


class Revocations:
    """What is open, and what each of it is bound to."""

    def __init__(self) -> None:
        self._bound: dict[Hashable, tuple[Callable[[], bool], dict[object, Callable[[], None]]]] = {}
        self._looking: asyncio.TimerHandle | None = None  # set while anything is open

    def bind(self, to: Hashable, holds: Callable[[], bool], end: Callable[[], None]) -> Callable[[], None]:
        """Call `end` once `holds` returns False; what is bound to the same is asked for once.

        Return a function to call when it has ended by itself.
        """
        name = object()
        self._bound.setdefault(to, (holds, {}))[1][name] = end
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

        def forget() -> None:
            bound = self._bound.get(to)
            if bound is not None:
                bound[1].pop(name, None)
                if not bound[1]:
                    del self._bound[to]

        return forget

    @asynccontextmanager
    async def bound(self, to: Hashable, holds: Callable[[], bool]) -> AsyncGenerator[None]:
        """Cancel what is done inside once `holds` returns False, and raise `RevokedError`."""
        loop = asyncio.get_running_loop()
        ending = asyncio.timeout(None)
        try:
            async with ending:
                forget = self.bind(to, holds, lambda: ending.reschedule(loop.time()))
                try:
                    yield
                finally:
                    forget()
        except TimeoutError:
            if ending.expired():
                raise RevokedError from None
            raise

    def _look(self) -> None:
        self._looking = None
        for to, (holds, ends) in list(self._bound.items()):
            if self._holds(holds):
                continue
            log.info("%d that were open end: what let them in was revoked", len(ends))
            del self._bound[to]
            for end in list(ends.values()):
                end()
        if self._bound:
            self._looking = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _holds(self, holds: Callable[[], bool]) -> bool:
        try:
            return holds()
        except Exception:
            log.exception("It cannot be found out who may stay; all who are here stay")
            return True

    def close(self) -> None:
        """Look no more."""
        self._bound.clear()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
