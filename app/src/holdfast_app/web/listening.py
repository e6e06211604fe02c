"""What a feed knows of a session between two messages: that something has changed, never the changes themselves.

So nothing piles up for a tab that does not read (P7): it is sent how things are when it does.
"""

from __future__ import annotations

import asyncio


class Listener:
    """What a feed is told: that something has changed, never what. It reads the rest when it can send."""

    def __init__(self) -> None:
        self.changed: asyncio.Event = asyncio.Event()
        self.dirty: dict[str, None] = {}
        """The keys of entries that have changed, in order."""
        self.removed: dict[str, None] = {}
        self.notices: list[tuple[str, str]] = []
        """Severity and text of what is shown for a moment."""

    def touch(self) -> None:
        """Say that something has changed."""
        self.changed.set()

    def notify(self, severity: str, text: str) -> None:
        """Show something for a moment; the oldest of many is dropped."""
        self.notices = [*self.notices[-9:], (severity, text)]
        self.changed.set()
