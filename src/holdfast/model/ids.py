"""Identifiers: opaque, unguessable, unique across processes and restarts (B1)."""

from __future__ import annotations

from secrets import token_hex


def new_session_id() -> str:
    """Return a new id for a session: 160 random bits, since whoever knows it may load the session."""
    return f"sess_{token_hex(20)}"


def new_id(prefix: str) -> str:
    """Return a new id for something inside a session, as ``msg_…`` or ``call_…``."""
    return f"{prefix}_{token_hex(8)}"
