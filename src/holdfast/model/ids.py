"""Identifiers: opaque, unguessable, unique across processes and restarts (B1)."""

from __future__ import annotations

import secrets


def new_session_id() -> str:
    """Make the id of a session: 160 random bits, since whoever knows it may load the session."""
    return f"sess_{secrets.token_hex(20)}"


def new_id(prefix: str) -> str:
    """Make the id of something inside a session, as ``msg_…`` or ``call_…``."""
    return f"{prefix}_{secrets.token_hex(8)}"
