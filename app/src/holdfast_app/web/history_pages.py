"""A part of a history, read from any line without reading the rest: what a page of entries is made of.

An entry is named by the line at which it begins. A page never begins in the middle of an entry; where an entry goes on
behind others (an agent in another process may add to what it has begun earlier), it is shown where it began if that is
on the page.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from holdfast.engine import claim_session
from holdfast.errors import HoldfastError
from holdfast.format import event_in
from holdfast.model import History
from holdfast.model.kinds import LOG_ONLY, OPAQUE, RULES, Fold

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from holdfast.model import Entry, Event
    from holdfast.store import Library, SessionStore, Snapshot

log: logging.Logger = logging.getLogger(__name__)

PAGE_LINES = 60
"""So many lines of a history are a page."""

MARGIN = 24
"""So many lines before a page are looked at for the beginning of its first entry."""


class PlacedEntry(NamedTuple):
    """An entry and the line at which it begins; None for one that is not stored for good yet."""

    line: int | None
    entry: Entry

    @property
    def key(self) -> str:
        """What the entry is known by while it has no line."""
        return entry_key(self.entry.entity, self.entry.key)

    @property
    def is_provisional(self) -> bool:
        """Whether its key holds only until it is stored for good: it has no id of its own."""
        return self.line is None and not self.entry.entity


class HistoryPage(NamedTuple):
    """The entries of a part of a history, `first` to before `end`, and the history they were folded in."""

    first: int
    end: int
    entries: list[PlacedEntry]
    history: History


def entry_key(entity: str, key: str) -> str:
    """Return the name of an entry in the page: its kind and its id, or ``/`` and a number where it has none."""
    return f"{entity}/{key}"


async def read_page(library: Library, session: str, first: int, end: int) -> HistoryPage:
    """Read the lines `first` to before `end`, from the beginning of the entry at `first` on."""
    start = max(0, first - MARGIN)
    lines = [line async for line in read_lines(library, session, start, end)]
    events = [event_in(line) for line in lines]
    skipped = _beginning(events, first - start)
    page = Placing(start + skipped)
    for event in events[skipped:]:
        page.apply(event)
    return HistoryPage(start + skipped, end, page.placed(), page.history)


async def read_lines(library: Library, session: str, start: int, end: int) -> AsyncIterator[bytes]:
    """Read lines of a history, one by one."""
    if start >= end:
        return
    async for blocks in library.read(session, start, end, damaged="mark"):
        for block in blocks:
            for line in block.split(b"\n"):
                yield line


class Placing:
    """Folds the lines of a history and what comes behind them; remembers at which line each entry began."""

    def __init__(self, first: int) -> None:
        self.history: History = History()
        self.live: bool = False
        """Whether what comes now is not stored for good, and so begins at no line."""
        self._next = first
        self._lines: dict[tuple[str, str], int | None] = {}
        self._kept = 0

    def apply_line(self, line: bytes) -> None:
        """Take the next line."""
        self.apply(event_in(line))

    def apply(self, event: Event) -> str:
        """Take the next event; return the key of the entry it is about."""
        rule = RULES.get(event.kind, OPAQUE)
        identity = (rule.entity, event.key)
        if rule.fold is Fold.OPAQUE:
            self._kept += 1
            identity = ("", str(self._kept))
        if rule.fold is Fold.REMOVE:
            self._lines.pop(identity, None)
        elif rule.entity or rule.fold is Fold.OPAQUE:
            self._lines.setdefault(identity, None if self.live else self._next)
        self.history.apply(event)
        self._next += _count(event)
        return entry_key(*identity)

    def placed(self) -> list[PlacedEntry]:
        """Return the entries, each with its line."""
        return [PlacedEntry(self.line_of(entry), entry) for entry in self.history]

    def line_of(self, entry: Entry) -> int | None:
        """Return the line at which an entry begins; None where it is not stored for good."""
        return self._lines.get((entry.entity, entry.key))

    def live_keys(self) -> Iterator[str]:
        """Yield the keys of the entries that are not stored for good, in order."""
        return (entry_key(*identity) for identity, line in self._lines.items() if line is None)


async def ended_snapshot(store: SessionStore, session: str) -> Snapshot:
    """Look a session up. A turn whose process died is ended first, as by anybody who opens the session (P3)."""
    snapshot = await store.snapshot(session)
    if snapshot.unsealed is None or snapshot.unsealed.running_in is not None:
        return snapshot
    try:
        claimed = await claim_session(store, session, begins_entries=False, keeps_events=True, take_over=False)
        await store.release(claimed.claim)
    except HoldfastError as e:  # somebody else has it by now
        log.info("A broken turn is left to others: %s", e)
    return await store.snapshot(session)


def live_events(lines: Iterable[bytes]) -> list[Event]:
    """Return what the lines of a turn that is not stored for good say of the conversation."""
    return [event for event in map(event_in, lines) if event.kind not in LOG_ONLY]


def _beginning(events: list[Event], at: int) -> int:
    """Return where the entry begins that the line `at` belongs to."""
    while (
        0 < at < len(events)
        and _identity(events[at]) is not None
        and _identity(events[at]) == _identity(events[at - 1])
    ):
        at -= 1
    return max(0, at)


def _identity(event: Event) -> tuple[str, str] | None:
    rule = RULES.get(event.kind, OPAQUE)
    return (rule.entity, event.key) if rule.entity else None


def _count(event: Event) -> int:
    """Return how many lines of the store an event stands for: more than one where something is damaged."""
    lines = event.update().get("lines") if event.kind == "_holdfast/damaged" else 1
    return lines if isinstance(lines, int) and lines > 0 else 1
