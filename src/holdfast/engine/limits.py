"""What an engine takes on."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """How much an engine takes on. Times in seconds."""

    prompts: int = 16
    """Prompts that may wait for their turn in one session (C6)."""
    cancel_grace: float = 5.0
    """A cancelled agent that goes on is given up on after this time (C5)."""
    idle: float = 30 * 60
    """A session nobody watches and that does nothing leaves memory after this time (B18)."""
    keep: float | None = None
    """Sessions without activity for this time are deleted; None keeps them for ever."""
