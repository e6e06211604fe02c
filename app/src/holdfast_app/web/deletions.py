"""Deletions that can be taken back for a while. Until then nothing is done: a process that dies has deleted nothing."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log: logging.Logger = logging.getLogger(__name__)

UNDO_SECONDS = 12.0


class Deletions:
    """Sessions that are about to be deleted."""

    def __init__(self, delete: Callable[[str], Awaitable[None]], seconds: float = UNDO_SECONDS) -> None:
        """Use `delete` to delete a session for good."""
        self._delete = delete
        self.seconds = seconds
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, session: str) -> bool:
        return session in self._tasks

    def add(self, session: str) -> None:
        """Delete a session in a while."""
        if session not in self._tasks:
            self._tasks[session] = asyncio.get_running_loop().create_task(self._wait(session), name="delete a session")

    def undo(self, session: str) -> bool:
        """Do not delete it; return whether there was still time."""
        task = self._tasks.pop(session, None)
        return task is not None and task.cancel()

    async def close(self) -> None:
        """Delete at once what nobody can take back any more."""
        waiting = list(self._tasks)
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        for session in waiting:
            await self._do(session)

    async def _wait(self, session: str) -> None:
        await asyncio.sleep(self.seconds)
        await self._do(session)
        self._tasks.pop(session, None)

    async def _do(self, session: str) -> None:
        try:
            await self._delete(session)
        except HoldfastError as e:
            log.warning("Session %s was not deleted: %s", session, e)
