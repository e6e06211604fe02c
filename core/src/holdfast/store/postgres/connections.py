"""The connections that queries share: at most so many, opened when they are needed, closed when nobody needs them.

The driver's pool does that, at a price: each time one is taken and given back costs two tasks and three timers, more
than a short query itself. So one that was used is kept at hand for the next query, and goes back to the pool only where
somebody waits for it there, where something happened to it, or from time to time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import asyncpg

from holdfast.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# asyncpg has no types that strict checking can see through.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false

CONNECTIONS = 8
"""So many connections are used at once, besides one for the heartbeat and one for what running turns say."""

CONNECT_SECONDS = 10.0
AT_HAND_SECONDS = 30.0
"""So long connections are at hand at most, before the pool may find out that nobody needs them…"""

UNUSED_SECONDS = 30.0
"""…which it has found out when one was there for so long."""

CLOSE_SECONDS = 5.0


class Connections:
    """Connections to one database, for whoever needs one for a moment."""

    def __init__(self) -> None:
        self._pool: Any = None
        self._at_hand: list[Any] = []
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None
        self._giving_back: asyncio.Task[None] | None = None
        self._is_closed = False

    async def open(self, dsn: str, *, init: Callable[[Any], Awaitable[None]], **options: Any) -> None:
        """Make it possible to take connections; none is opened before it is needed."""
        self._pool = await asyncpg.create_pool(
            dsn,
            min_size=0,
            max_size=CONNECTIONS,
            max_inactive_connection_lifetime=UNUSED_SECONDS,
            init=init,
            reset=_as_it_is,
            **options,
        )

    def take(self) -> Taken:
        """Return what lets the caller use a connection, in ``async with``.

        That raises `StoreError` where all were closed, or what the driver raises.
        """
        return Taken(self)

    async def acquire(self) -> Any:
        """Take a connection: the one that was used last, which most likely knows the statement."""
        while self._at_hand:
            if _is_open(connection := self._at_hand.pop()):
                return connection
            await self._pool.release(connection)
        return await self._acquire()

    async def release(self, connection: Any, *, is_sound: bool) -> None:
        """Give a connection back: to the pool, which finds out whether it can be used again, unless it `is_sound`."""
        if not is_sound or self._waiting or self._is_closed:
            await self._pool.release(connection)
            return
        self._at_hand.append(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(AT_HAND_SECONDS, self._time_is_over)

    async def close(self) -> None:
        """Close all connections; whoever still uses one has a moment to end."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._pool is None:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                if self._giving_back is not None:
                    await asyncio.wait({self._giving_back})
                await self._give_back()
                await self._pool.close()
        except Exception:  # noqa: BLE001  (it goes on without them)
            self._pool.terminate()

    async def _acquire(self) -> Any:
        if self._is_closed:
            raise StoreError("The session store is closed")
        self._waiting += 1  # from here on none is kept at hand: it would be missed in the pool
        try:
            return await self._pool.acquire(timeout=CONNECT_SECONDS)
        finally:
            self._waiting -= 1

    def _time_is_over(self) -> None:
        self._timer = None
        self._giving_back = asyncio.get_running_loop().create_task(self._give_back(), name="give connections back")

    async def _give_back(self) -> None:
        while self._at_hand:
            await self._pool.release(self._at_hand.pop())


class Taken:
    """A connection that is used now."""

    __slots__ = ("_connection", "_connections")

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._connection: Any = None

    async def __aenter__(self) -> Any:
        self._connection = await self._connections.acquire()
        return self._connection

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self._connections.release(self._connection, is_sound=kind is None)


def _is_open(connection: Any) -> bool:
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:  # it was closed, and the pool has taken it back
        return False


async def _as_it_is(_connection: Any) -> None:
    """Leave a connection as it is between two uses: nothing of ours outlasts a transaction."""
