"""How much a server takes from those it serves."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from holdfast.transport import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable


class RemoteLimits(NamedTuple):
    """How much a server takes. Sizes in bytes, times in seconds; what is counted is counted per principal."""

    message: int = MAX_LINE_BYTES
    """The longest message, in a frame or a body."""
    connections: int = 256
    """Connections at once."""
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
        self.connections[principal] -= 1
        if not self.connections[principal]:
            del self.connections[principal]
