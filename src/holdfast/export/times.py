"""Times as they are written in files: microseconds since 1970 and RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_START = datetime(1970, 1, 1, tzinfo=UTC)


def written(microseconds: int) -> str:
    """Write a time, exactly."""
    return (_START + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read(text: str) -> int:
    """Read a time; ValueError where it is none."""
    return (datetime.fromisoformat(text).astimezone(UTC) - _START) // timedelta(microseconds=1)
