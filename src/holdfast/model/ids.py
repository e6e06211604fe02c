"""Identifiers: opaque, unguessable, unique across processes and restarts (B1)."""

from __future__ import annotations

from uuid import uuid4


def new_session_id() -> str:
    """Return a new id for a session: 152 random bits, since whoever knows it may load the session."""
    return f"sess_{uuid4().hex}{uuid4().hex[:8]}"


def new_id(prefix: str) -> str:
    """Return a new id for something inside a session, as ``msg_…`` or ``call_…``."""
    return f"{prefix}_{uuid4().hex[:16]}"
