"""How fast a server is read: what nobody asked for gets a small part of the event loop's time.

Owns the budget of a server, which of its messages answer a request of ours, and which progress is outdated before it
could be told. Loaded late, with the SDK.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

if TYPE_CHECKING:
    from collections.abc import Hashable

PROGRESS = "notifications/progress"

HOLD_SECONDS = 0.1
"""Progress waits no longer than this for newer progress of the same call."""

NoteT = TypeVar("NoteT")


class ReadBudget:
    """Limits how much of the event loop's time one server may take with what nobody asked it for (P7).

    Everything that is read costs something, in seconds of the event loop. A server may spend `BURST` at once; after
    that it is read so slowly that it takes `SHARE` of the time. The costs were measured, and are set too high rather
    than too low. A response to a request of ours is free: there are no more of those than we want.
    """

    SHARE = 0.02
    BURST = 0.05
    SLICE = 0.0005
    """After so much others get their turn, even within a burst."""

    MESSAGE = 250e-6
    """What the SDK needs for a message: it starts a task for each."""
    LINE = 4e-6
    BYTE = 3e-9
    EVENT_BYTE = 10e-9
    """The SDK takes server-sent events apart in Python."""
    EVENT_NOTE = 40e-6
    """What progress is charged that came as an event and is never told. The SDK needs about four times as much to
    parse it, but the call has asked for progress, and its result comes behind it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._credit = self.BURST
        self._counted_at = self._loop.time()
        self._in_a_row = 0.0

    def charge(self, cost: float) -> None:
        """Count something that was read."""
        now = self._loop.time()
        self._credit = min(self.BURST, self._credit + (now - self._counted_at) * self.SHARE) - cost
        self._counted_at = now
        self._in_a_row += cost

    @property
    def is_spent(self) -> bool:
        """True while the server has used more than its share."""
        return self._credit + (self._loop.time() - self._counted_at) * self.SHARE <= 0

    async def pace(self) -> None:
        """Wait until the server may be read on."""
        if self._in_a_row >= self.SLICE:
            self._in_a_row = 0.0
            await asyncio.sleep(max(0.0, -self._credit / self.SHARE))


class Requests:
    """Remembers our requests that are not answered yet: a message that answers one was asked for."""

    def __init__(self) -> None:
        self._ids: set[object] = set()

    def note_sent(self, message: object) -> None:
        """Note a request, or that one was cancelled."""
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._ids.discard((message.params or {}).get("requestId"))

    def is_answered_by(self, message: object) -> bool:
        """Return whether a message answers a request, for the first time."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id not in self._ids:
            return False
        self._ids.discard(message.id)
        return True


class HeldProgress(Generic[NoteT]):
    """Holds the newest progress of each call while a server has spent its budget; newer progress replaces it.

    A server may send progress far faster than anyone can read it. All of it at the pace of the budget would hold the
    result of the call back: 1,000 notes took ten seconds.
    """

    def __init__(self) -> None:
        self._notes: dict[Hashable, NoteT] = {}
        self._since = 0.0
        self._loop = asyncio.get_running_loop()

    def __bool__(self) -> bool:
        return bool(self._notes)

    def hold(self, token: Hashable, note: NoteT) -> None:
        """Hold the newest progress of a call."""
        if not self._notes:
            self._since = self._loop.time()
        self._notes.pop(token, None)  # so that they stay in the order in which they came
        self._notes[token] = note

    @property
    def seconds_left(self) -> float:
        """How long what is held may still wait."""
        return self._since + HOLD_SECONDS - self._loop.time()

    def take(self) -> list[NoteT]:
        """Return what is held, and hold it no longer."""
        taken = list(self._notes.values())
        self._notes.clear()
        return taken
