"""The engine's side to the other processes on the store: how they are reached. `holdfast.cluster` implements it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from holdfast.errors import NeighbourLost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import msgspec

    from holdfast.engine.relay.messages import Operation

T = TypeVar("T")

SOON_SECONDS = 4.0
"""Who has not answered after so many seconds is asked for a sign of life."""


class SentRequest(Protocol):
    """A request that was sent over a link."""

    async def answer(self) -> msgspec.Raw:
        """Wait for the answer and return it; raise `RemoteError` or `ConnectionLost`."""
        ...


class Link(Protocol):
    """A line to another process; `holdfast.engine.relay.messages` says what goes over it."""

    @property
    def unsent(self) -> int:
        """How many bytes the other side has not read."""
        ...

    async def drain(self) -> None:
        """Wait until it has read most of them."""
        ...

    async def request(self, method: str, params: object) -> msgspec.Raw:
        """Send a request and return the answer; raise `RemoteError` or `ConnectionLost`."""
        ...

    def send_request(self, method: str, params: object) -> SentRequest:
        """Send a request before this returns: whatever is sent next arrives behind it."""
        ...

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        ...

    async def is_alive(self) -> bool:
        """Ask for a sign of life; return whether one came within some seconds."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...


class LinkUser(Protocol):
    """Who is at our end of a link."""

    async def requested(self, method: str, params: msgspec.Raw) -> object:
        """Answer a request."""
        ...

    async def notified(self, method: str, params: msgspec.Raw) -> None:
        """Take a notification. They come in order, each when the one before is taken."""
        ...

    def lost(self) -> None:
        """Note that the other side is gone. Called once."""
        ...


class Neighbours(Protocol):
    """The other processes, or nodes, on the same store."""

    @property
    def name(self) -> str:
        """What people call this process; empty where the name of its client says more."""
        ...

    async def listen(self, accept: Callable[[Link], LinkUser]) -> None:
        """Let others reach this process from now on."""
        ...

    async def reach(self, address: str, user: Callable[[Link], LinkUser]) -> Link:
        """Open a link to a process; raise `NeighbourLost` where it cannot be reached."""
        ...

    async def do(self, address: str, operation: Operation) -> None:
        """Have a process do something with a session; raise what it raised, or `NeighbourLost`."""
        ...

    def pack_servers(self, servers: Sequence[Any]) -> Any:
        """Return MCP servers as JSON values."""
        ...

    def unpack_servers(self, packed: Any) -> Sequence[Any]:
        """Return what `pack_servers` has packed."""
        ...

    async def close(self, farewell: str) -> None:
        """Be reached no more; tell all who are linked the name of the client that leaves."""
        ...


async def while_alive(link: Link, answer: Awaitable[T]) -> T:
    """Wait for the answer of a process as long as that gives signs of life; raise `NeighbourLost` where it does not."""
    waiting = asyncio.ensure_future(answer)
    try:
        while not (await asyncio.wait({waiting}, timeout=SOON_SECONDS))[0]:
            if not await link.is_alive() and not waiting.done():
                raise NeighbourLost("it does not answer", hangs=True)
        return await waiting
    finally:
        waiting.cancel()
