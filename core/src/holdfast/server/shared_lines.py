"""Lines that several clients of one session are sent: made once for all of them.

A session is shown to its clients one after the other. What a surface makes of the events is the same for all of one
version as long as no client's own state has a part in it, as in a streamed answer; then the first makes the lines, and
the others get the same bytes, so that a transport can frame them once too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from holdfast.model import Event, Position


class SharedLines:
    """The lines of the events that were shown last."""

    __slots__ = ("_before", "_events", "_made")

    def __init__(self) -> None:
        self._events: Sequence[Event] | None = None
        self._before: Position | None = None
        self._made: dict[Hashable, bytes] = {}

    def get(self, key: Hashable, events: Sequence[Event], before: Position, make: Callable[[], bytes]) -> bytes:
        """Return the lines of events that were made under a key before; else make them.

        `before` is the position before the first of them: with it nobody takes other events for these.
        """
        if self._events is not events or self._before != before:
            self._events, self._before = events, before
            self._made.clear()
        lines = self._made.get(key)
        if lines is None:
            lines = self._made[key] = make()
        return lines
