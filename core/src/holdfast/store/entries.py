"""A stored history read entry by entry, in order, with little of it in memory however long it is.

An entry may go on behind others: an agent in another process may add to what an earlier turn has begun. So a history is
gone through twice: first to see which entries go on where, then to fold each where it began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from holdfast.format import event_in, fold, updates_in
from holdfast.model import RULES, Fold, is_object
from holdfast.model.kinds import LOG_ONLY, OPAQUE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.model import Entry
    from holdfast.store.port import Library, Snapshot

_Identity: TypeAlias = tuple[str, str]

_PARTS = frozenset({Fold.APPEND, Fold.PATCH, Fold.REPLACE})


class _Head(msgspec.Struct):
    """As much of an update as tells which entry it is about."""

    sessionUpdate: str  # noqa: N815  (as it is written)
    messageId: Any = ""  # noqa: N815
    toolCallId: Any = ""  # noqa: N815
    terminalId: Any = ""  # noqa: N815
    compactionId: Any = ""  # noqa: N815
    sessionId: Any = ""  # noqa: N815
    planId: Any = ""  # noqa: N815
    plan: Any = None


_read_head = msgspec.json.Decoder(_Head).decode


class Numbered(NamedTuple):
    """An entry and its number in the history; the first is 1."""

    number: int
    entry: Entry


async def read_entries(library: Library, snapshot: Snapshot, *, last: int | None = None) -> AsyncIterator[Numbered]:
    """Read the entries of a session, what its unsealed turn has said so far too; all of them, or the last so many.

    Where something stored is damaged an entry of kind ``_holdfast/damaged`` stands in its place (P11).
    """
    tail = _tail(snapshot)
    overview = _Overview()
    async for line in _lines(library, snapshot, tail):
        overview.note(line)
    reading = _Reading(overview, 1 if last is None else overview.total - last + 1)
    async for line in _lines(library, snapshot, tail):
        if (found := reading.take(line)) is not None:
            yield found
    if (found := reading.end()) is not None:
        yield found


class _Overview:
    """What the first reading finds out: how many entries there are, and what of them stands apart from the rest."""

    def __init__(self) -> None:
        self.total = 0
        self.removed: dict[_Identity, int] = {}
        """The line that takes an entry away; what was said of it before does not count."""
        self.late: dict[_Identity, list[bytes]] = {}
        """By entry, the lines that do not stand right behind those it began with."""
        self._begun: set[int] = set()  # hashes: identities of all entries would be a large part of the history
        self._previous: _Identity | None = None
        self._at = 0

    def note(self, line: bytes) -> None:
        self._at += 1
        how, identity = _about(line)
        if how is Fold.OPAQUE:
            self.total += 1
            self._previous = None
        elif how is Fold.REMOVE:
            self.removed[identity] = self._at
            if hash(identity) in self._begun:
                self._begun.remove(hash(identity))
                self.total -= 1
            self.late.pop(identity, None)
            if self._previous == identity:
                self._previous = None
        elif how in _PARTS:
            if hash(identity) not in self._begun:
                self._begun.add(hash(identity))
                self.total += 1
                self._previous = identity
            elif identity != self._previous:
                self._previous = None
                if how is Fold.REPLACE:
                    self.late[identity] = [line]
                else:
                    self.late.setdefault(identity, []).append(line)


class _Reading:
    """The second reading: gathers the lines of each entry, and returns the entry when there are no more."""

    def __init__(self, overview: _Overview, first: int) -> None:
        self._overview = overview
        self._first = first
        self._number = 0
        self._group: list[bytes] = []
        self._identity: _Identity = ("", "")
        self._begun: set[int] = set()
        self._previous: _Identity | None = None
        self._at = 0

    def take(self, line: bytes) -> Numbered | None:
        self._at += 1
        how, identity = _about(line)
        if how is Fold.OPAQUE:
            self._previous = None
        elif how not in _PARTS:
            return None
        elif self._at < self._overview.removed.get(identity, 0):
            self._previous = None
            return None
        elif identity == self._previous:
            self._group.append(line)
            return None
        elif hash(identity) in self._begun:
            self._previous = None
            return None
        else:
            self._begun.add(hash(identity))
            self._previous = identity
        done = self.end()
        self._number += 1
        self._group, self._identity = [line], identity
        return done

    def end(self) -> Numbered | None:
        """Return the entry whose lines were gathered."""
        if not self._group or self._number < self._first:
            return None
        history = fold((*self._group, *self._overview.late.get(self._identity, ())))
        return Numbered(self._number, next(iter(history)))


def _about(line: bytes) -> tuple[Fold, _Identity]:
    """Say what an update does, and to which entry."""
    try:
        head = _read_head(line)
    except (msgspec.DecodeError, UnicodeDecodeError):  # the fold makes an entry of it that says so (P11)
        return Fold.OPAQUE, ("", "")
    rule = RULES.get(head.sessionUpdate, OPAQUE)
    if head.sessionUpdate == "plan_update":
        return rule.fold, (rule.entity, str(head.plan.get(rule.key, "")) if is_object(head.plan) else "")
    return rule.fold, (rule.entity, str(getattr(head, rule.key)) if rule.key else "")


async def _lines(library: Library, snapshot: Snapshot, tail: list[bytes]) -> AsyncIterator[bytes]:
    record = snapshot.record
    if record.lines:
        async for blocks in library.read(record.info.id, 0, record.lines, damaged="mark"):
            for block in blocks:
                for line in updates_in(block).split(b"\n"):
                    yield line
    for line in tail:
        yield line


def _tail(snapshot: Snapshot) -> list[bytes]:
    """Fold what an unsealed turn has said: it may have come in many small pieces."""
    if snapshot.unsealed is None:
        return []
    said = [line for line in snapshot.unsealed.lines if event_in(line).kind not in LOG_ONLY]
    return [msgspec.json.encode(update) for update in fold(said, complete=False).updates()]
