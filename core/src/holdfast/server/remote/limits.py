"""How much a server takes from those it serves."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from holdfast.transport import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self


STRANGERS = "\0strangers"
"""All who have not shown a token; no principal is called that."""

STRANGERS_BYTES = 1 << 20
"""So much may be on its way in from strangers."""


TURNS = 2_000
"""So many turns run at once without being late on a small machine (docs/serve.md)."""


def turns_at_most() -> int:
    """Return how many turns a server runs at once: each has its log open, and clients and agents need files too."""
    if sys.platform == "win32":
        return 256
    import resource  # noqa: PLC0415  (there is none on Windows)

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return TURNS if files == resource.RLIM_INFINITY else max(16, min(TURNS, files // 2))


class RemoteLimits(NamedTuple):
    """How much a server takes. Sizes in bytes, times in seconds; what is counted is counted per principal."""

    message: int = MAX_LINE_BYTES
    """The longest message, in a frame or a body."""
    connections: int = 256
    """Connections at once, and pages in browsers that listen."""
    bytes_in: int = 64 << 20
    """Bytes of messages that are on their way in, not all of which are there…"""
    all_bytes_in: int = 256 << 20
    """…and so many of all principals together, but that each may send one message."""
    bytes_out: int = 256 << 20
    """Bytes that the connections of one principal have not read."""
    sessions: int = 1_000
    """Sessions that one connection has open, and streams."""
    requests: float = 500.0
    """Requests and handshakes a second, on average…"""
    burst: float = 2_000.0
    """…and so many at once."""
    body_seconds: float = 30.0
    """A body has to come within this time."""
    idle: float = 60.0
    """A connection over HTTP ends when nobody has read its streams for this long (H5)."""
    ping: float = 14.0
    """A WebSocket that is silent for this long is asked for a sign of life…"""
    pong: float = 14.0
    """…and given up after this long without one (H7)."""
    grace: float = 30.0
    """When the server is told to end, turns have so long to end by themselves (H8)."""


class Quotas:
    """What each principal has taken of its limits."""

    def __init__(self, limits: RemoteLimits, clock: Callable[[], float]) -> None:
        self.connections: Counter[str] = Counter()
        self.bytes_in: Counter[str] = Counter()
        self._all_bytes_in = 0
        self._waiting: set[asyncio.Event] = set()
        self._limits = limits
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def may_ask(self, principal: str) -> bool:
        """Count a request; return whether the principal may make it now."""
        now = self._clock()
        left, before = self._buckets.get(principal, (self._limits.burst, now))
        left = min(self._limits.burst, left + (now - before) * self._limits.requests)
        self._buckets[principal] = (max(0.0, left - 1.0), now)
        return left >= 1.0

    def may_connect(self, principal: str) -> bool:
        """Whether the principal may have one more connection."""
        return self.connections[principal] < self._limits.connections

    def connected(self, principal: str) -> None:
        """Count a connection."""
        self.connections[principal] += 1

    def disconnected(self, principal: str) -> None:
        """Count a connection no more."""
        _less(self.connections, principal, 1)

    def take(self, principal: str, size: int) -> bool:
        """Count bytes that come in; return whether there is room for them. Whoever takes some gives them back."""
        held = self.bytes_in[principal]
        most = STRANGERS_BYTES if principal == STRANGERS else max(self._limits.bytes_in, 2 * self._limits.message)
        is_too_much_together = held > 0 and self._all_bytes_in + size > self._limits.all_bytes_in
        if held + size > most or is_too_much_together:
            return False
        self.bytes_in[principal] += size
        self._all_bytes_in += size
        return True

    def give(self, principal: str, size: int) -> None:
        """Count bytes no more."""
        _less(self.bytes_in, principal, size)
        self._all_bytes_in -= size
        for waiting in self._waiting:
            waiting.set()

    async def room(self) -> None:
        """Wait until bytes were given back."""
        given = asyncio.Event()
        self._waiting.add(given)
        try:
            await given.wait()
        finally:
            self._waiting.discard(given)


class Hold:
    """The bytes of one request or connection, given back together."""

    __slots__ = ("_is_over", "_principal", "_quotas", "size")

    def __init__(self, quotas: Quotas, principal: str) -> None:
        self._quotas = quotas
        self._principal = principal
        self._is_over = False
        self.size: int = 0

    def up_to(self, size: int) -> bool:
        """Hold so many bytes from now on; return whether there is room for them."""
        if self._is_over:
            return False
        if size > self.size:
            if not self._quotas.take(self._principal, size - self.size):
                return False
        else:
            self._quotas.give(self._principal, self.size - size)
        self.size = size
        return True

    async def when_there_is_room(self, size: int, patience: float) -> bool:
        """Hold so many bytes as soon as there is room; return False where there is none for too long."""
        try:
            async with asyncio.timeout(patience):
                while not self.up_to(size):
                    await self._quotas.room()
        except TimeoutError:
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.up_to(0)
        self._is_over = True


def _less(counted: Counter[str], principal: str, by: int) -> None:
    counted[principal] -= by
    if not counted[principal]:
        del counted[principal]
