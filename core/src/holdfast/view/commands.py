"""Commands as one entry: a tool call with what its terminals showed, and how they ended.

A history has terminals as entries of their own, before or behind the call that shows them. A reader sees one entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.view.entries import terminals_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.model.history import Entry

MOST = 500
"""So many entries are looked at together: of a longer turn, a call and its terminal may stay apart."""


class Shown(NamedTuple):
    """An entry to show, its number, and the terminals that are shown in it."""

    number: int
    entry: Entry
    terminals: dict[str, Entry]


class Commands:
    """Takes the entries of a history, in order, and gives them back turn by turn, each command as one."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Entry]] = []

    def take(self, number: int, entry: Entry) -> list[Shown]:
        """Take the next entry; return those that are complete."""
        done: list[Shown] = []
        if entry.entity == "user_message" or len(self._waiting) == MOST:
            done = self.rest()
        self._waiting.append((number, entry))
        return done

    def rest(self) -> list[Shown]:
        """Return the entries that are left."""
        waiting, self._waiting = self._waiting, []
        terminals = {entry.key: entry for _, entry in waiting if entry.entity == "terminal_update"}
        claimed = claimed_terminals(entry for _, entry in waiting)
        return [
            Shown(number, entry, terminals_of(entry, terminals.get))
            for number, entry in waiting
            if entry.entity != "terminal_update" or entry.key not in claimed
        ]


def terminals_of(entry: Entry, known: Callable[[str], Entry | None]) -> dict[str, Entry]:
    """Return the terminals that an entry shows, as far as they are known, by their ids."""
    if entry.entity != "tool_call_update":
        return {}
    found = ((key, known(key)) for key in terminals_in(entry.content()))
    return {key: terminal for key, terminal in found if terminal is not None}


def claimed_terminals(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the ids of all terminals that tool calls show."""
    calls = (entry for entry in entries if entry.entity == "tool_call_update")
    return frozenset(key for call in calls for key in terminals_in(call.content()))
