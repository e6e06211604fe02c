"""How much a peer takes, and how long it waits."""

from __future__ import annotations

import msgspec


class PeerLimits(msgspec.Struct, frozen=True):
    """How much of what a peer takes, and how long it waits. Sizes in bytes, times in seconds."""

    unread: int = 4 << 20
    """Reading pauses while more than this waits to be handled."""
    unsent: int = 1 << 20
    """While more than this waits to be sent, `drain` waits and requests are not handled."""
    requests: int = 1_024
    """Requests at work at once; more are refused."""
    cancel_grace: float = 5.0
    """A cancelled request whose handler goes on is answered for after this time."""
    linger: float = 0.5
    """Requests at work when the input ends have this long to finish by themselves…"""
    end_grace: float = 0.6
    """…and this long to end once cancelled."""
    flush: float = 0.3
    """What is unsent at the very end may take this long to leave."""
