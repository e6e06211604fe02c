"""Tool calls of earlier turns: what stays known of them, and which of them may still go on.

A call may outlive its turn, and a command may outlive its call. Where the agent speaks of one later, it does not repeat
what the call is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model import FINAL_STATUSES, event_from
from holdfast.view.entries import terminals_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model import Entry, Event, History, Update

MAX_KNOWN = 1_000
"""Of so many calls it stays known what they were called, the latest."""
MAX_UNFINISHED = 100
"""So many calls that have not ended are kept whole: some agents never say that a call has ended."""
_KEPT = ("title", "name", "kind", "status", "locations")


class EarlierCalls:
    """What the calls of earlier turns were called, and how far they were."""

    def __init__(self) -> None:
        self._known: dict[str, Update] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def had_ended(self, key: str) -> bool:
        """Return whether a call had ended when it was last told of."""
        return has_ended(self._known.get(key, {}))

    def note(self, entry: Entry) -> None:
        """Remember a call as it is now."""
        self._known.pop(entry.key, None)
        self._known[entry.key] = {name: entry.members[name] for name in _KEPT if name in entry.members}
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def beginning(self, key: str, update: Update) -> Event | None:
        """Return what an update of a call that had ended leaves out; None if it is about a new call of the same id."""
        if key not in self._known:
            return None
        if update.get("title") is not None:  # some agents number the calls of each turn from one
            del self._known[key]
            return None
        return event_from({"sessionUpdate": "tool_call_update", "toolCallId": key, **self._known[key]})


def unfinished(history: History) -> Iterator[Entry]:
    """Yield the calls that have not ended, and those with a command that has not, each after its terminals."""
    found = [entry for entry in history if entry.entity == "tool_call_update" and _goes_on(history, entry)]
    for entry in found[-MAX_UNFINISHED:]:
        for key in terminals_in(entry.content()):
            if (terminal := history.get("terminal_update", key)) is not None:
                yield terminal
        yield entry


def has_ended(members: Update) -> bool:
    """Return whether a call has ended, by what is known of it; a status may be anything."""
    status = members.get("status")
    return isinstance(status, str) and status in FINAL_STATUSES


def has_exited(terminal: Entry | None) -> bool:
    """Return whether the command of a terminal has ended; one that nobody told of has."""
    return terminal is None or terminal.members.get("exitStatus") is not None


def _goes_on(history: History, entry: Entry) -> bool:
    if not has_ended(entry.members):
        return True
    return not all(has_exited(history.get("terminal_update", key)) for key in terminals_in(entry.content()))
