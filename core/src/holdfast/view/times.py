"""When entries began whose ids do not say it: between those around them that do.

Calls and plans of other agents have ids of their own. The messages around them are named by us, and tell the time; what
lies between two of them in one turn began between those two times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.view.entries import EntryView

MINUTE = 60_000_000
LONGEST = 60 * MINUTE
"""Two times that are further apart say nothing worth showing."""

_BORDERS = frozenset({"user", "note"})
"""With these a turn begins and ends: what comes after them may be days later."""


def with_times(views: Iterable[EntryView]) -> list[EntryView]:
    """Return entries in their order, each with its time as far as that follows from those around it."""
    timed = list(views)
    earliest: int | None = None
    open_from = 0  # since then no entry has said its time
    for at, view in enumerate(timed):
        if view.role in _BORDERS:
            earliest = None
        elif earliest is not None and view.at is not None:
            for between in range(open_from, at):
                timed[between] = _between(timed[between], earliest, view.at)
        if view.at is not None:
            earliest = view.at
        if view.at is not None or view.role in _BORDERS:
            open_from = at + 1
    return timed


def _between(view: EntryView, earliest: int, latest: int) -> EntryView:
    if not 0 <= latest - earliest <= LONGEST:
        return view
    is_same = earliest // MINUTE == latest // MINUTE
    return view._replace(at=earliest, until=None if is_same else latest)
