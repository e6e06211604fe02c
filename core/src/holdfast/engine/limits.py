"""How much an engine takes on."""

from __future__ import annotations

import msgspec

from holdfast.store import EventWindow


class EngineLimits(msgspec.Struct, frozen=True):
    """How much an engine takes on. Times in seconds."""

    prompts: int = 16
    """Prompts that may wait for their turn in one session (C6)."""
    turns: int | None = None
    """Turns that may run at once in all sessions together; a prompt that would begin one more is refused."""
    cancel_grace: float = 5.0
    """A cancelled agent that goes on is not waited for after this time (C5)."""
    idle: float = 30 * 60
    """A session nobody watches and that does nothing leaves memory after this time (B18)."""
    keep: float | None = None
    """Sessions without activity for this time are deleted; None keeps them for ever."""
    ask: float = 24 * 3600
    """A question waits so long while no client is there to answer it (F5)."""
    keep_events: EventWindow | None = None
    """For how long a client whose stream was cut can go on exactly where it was (H4); None: it loads anew."""
