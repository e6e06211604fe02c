"""Times as files have them: microseconds since 1970 to and from RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_START = datetime(1970, 1, 1, tzinfo=UTC)


def written(microseconds: int) -> str:
    """Return a time as text, exactly."""
    return (_START + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read(text: str) -> int:
    """Parse a time; raise ValueError where it is none."""
    return (datetime.fromisoformat(text).astimezone(UTC) - _START) // timedelta(microseconds=1)
