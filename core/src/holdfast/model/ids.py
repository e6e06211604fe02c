"""Identifiers: opaque, unguessable, unique across processes and restarts (B1).

Those of things inside a session begin with the time at which they were made. So an entry knows when it began, wherever
its history is copied, forked or sent, and nothing else has to be stored or shown for that.
"""

from __future__ import annotations

import os
import re
import time

_DATED = r"[a-z]{2,12}_([0-9a-f]{12})[0-9a-f]{12}"
"""An id that `new_id` has made. Ids of other agents look otherwise."""

_FIRST, _LAST = 1_700_000_000_000, 4_100_000_000_000
"""Milliseconds since 1970 between which a time makes sense: years 2023 to 2099."""


def new_session_id() -> str:
    """Return a new id for a session: 160 random bits, since whoever knows it may load the session."""
    return f"sess_{_random_hex(20)}"


def new_id(prefix: str) -> str:
    """Return a new id for something inside a session.

    Args:
        prefix: what it is for: ``msg`` makes ``msg_…``.

    Returns:
        The id, which nobody has had and nobody can guess. `made_at` reads its time.

    """
    return f"{prefix}_{time.time_ns() // 1_000_000:012x}{_random_hex(6)}"


def _random_hex(size: int) -> str:
    return os.urandom(size).hex()  # what `secrets.token_hex` does; to import that takes 4 ms and 0.9 MB


def made_at(name: str) -> int | None:
    """Return when an id was made.

    Args:
        name: an id, of whatever origin.

    Returns:
        Microseconds since 1970; None for an id that `new_id` has not made.

    """
    found = re.fullmatch(_DATED, name)
    milliseconds = 0 if found is None else int(found[1], 16)
    return milliseconds * 1_000 if _FIRST < milliseconds < _LAST else None
