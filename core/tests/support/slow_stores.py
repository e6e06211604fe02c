"""A store that takes its time to keep what is said, as one over a network does. What it keeps is kept in SQLite."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import StoreError
from holdfast.store import open_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from holdfast.store import Changes, Claim, Store, TurnLog


class SlowStore:
    """Keeps nothing before `let` is set; after `break_at` appends it keeps nothing any more."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.let = asyncio.Event()
        self.appends = 0
        self.break_at: int | None = None
        self.kept: list[bytes] = []

    @classmethod
    async def open(cls, place: str) -> SlowStore:
        return cls(await open_store(place))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def begin(self, claim: Claim, lines: Sequence[bytes], changes: Changes, **how: Any) -> SlowLog:
        return SlowLog(self, await self._store.begin(claim, lines, changes, **how))


class SlowLog:
    def __init__(self, store: SlowStore, log: TurnLog) -> None:
        self._store = store
        self._log = log
        self._last: asyncio.Task[None] | None = None

    def append(self, lines: bytes) -> Awaitable[None]:
        self._store.appends += 1
        number, before = self._store.appends, self._last

        async def keep() -> None:
            if before is not None:
                await asyncio.wait({before})
            await self._store.let.wait()
            if self._store.break_at is not None and number >= self._store.break_at:
                raise StoreError("The network is gone")
            self._log.append(lines)
            self._store.kept += lines.split(b"\n")[:-1]

        self._last = asyncio.ensure_future(keep())
        return self._last

    def hold(self) -> None: ...

    async def sync(self) -> None:
        if self._last is not None:
            await asyncio.wait({self._last})
        await self._log.sync()


def as_store(store: SlowStore) -> Store:
    return cast("Store", store)
