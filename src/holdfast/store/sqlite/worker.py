"""A thread with a connection: database work happens there, one piece after the other, and the event loop goes on."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from holdfast.store.sqlite.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Worker:
    """Owns a connection and the only thread that uses it."""

    def __init__(self, path: str, vfs: str | None) -> None:
        self._path = path
        self._vfs = vfs
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="holdfast-store")
        self._db: Database | None = None

    async def run(self, work: Callable[[Database], T]) -> T:
        """Do a piece of work. Once it has begun it is finished, even if nobody waits for it any more."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)

    async def close(self) -> None:
        """Finish what is in hand and close the connection."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        finally:
            self._thread.shutdown(wait=False)

    def _run(self, work: Callable[[Database], T]) -> T:
        if self._db is None:
            self._db = Database(self._path, vfs=self._vfs)
        with self._db.explained():
            return work(self._db)

    def _close(self) -> None:
        if self._db is not None:
            db, self._db = self._db, None
            with db.explained():
                db.close()
