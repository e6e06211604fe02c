"""What a client has missed since a position: lines that tell it in logs, and reading them back.

The log of a turn has the events that are stored. Where logs are kept after their seal, three more kinds of lines make
the whole stream of them: the first line of a log has what was shown as it began, as the prompt; a line between events
counts those that were shown there and are not stored; the last has what is shown once the log is sealed, as the mark of
a bad end, and is not there where that is nothing. A process that died may leave several last lines, and one that could
not begin a turn first lines of it: the last of them count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import PositionLost
from holdfast.model import Event, Fold, Position, event_from
from holdfast.model.kinds import LOG_BEGUN, LOG_ENDED, LOG_ONLY, LOG_PASSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.store import KeptLog

MISSED_BYTES = 32 << 20
"""So much is sent again at most; whoever missed more loads the session anew."""


def opening_lines(epoch: int, first: Sequence[Event]) -> bytes:
    """Return the first lines of a log; those of `first`, what is shown as it begins, that are not stored come last."""
    events = [event for event in first if event.rule.fold is not Fold.TRANSIENT]
    passed = len(first) - len(events)
    return _line(LOG_BEGUN, epoch, events) + (passed_line(passed) + b"\n" if passed else b"")


def ended_line(epoch: int, shown: Sequence[Event], *, passed: int = 0) -> bytes:
    """Return the last line of a log; `passed` events were shown before it and are not stored.

    It is empty where nothing is shown once the log is sealed: all turns that end well.
    """
    return _line(LOG_ENDED, epoch, shown, count=passed) if shown else b""


def passed_line(count: int) -> bytes:
    """Return the line that stands for events that are not stored."""
    return msgspec.json.encode({"sessionUpdate": LOG_PASSED, "count": count})


def _line(kind: str, epoch: int, shown: Sequence[Event], **more: int) -> bytes:
    events = [msgspec.Raw(event.body) for event in shown]
    return msgspec.json.encode({"sessionUpdate": kind, "epoch": epoch, "events": events, **more}) + b"\n"


def missed_events(logs: Sequence[KeptLog], since: Position, until: Position) -> list[tuple[Position, list[Event]]]:
    """Return the stored events after a position, up to and with another: runs, each with the position before it.

    Raise `PositionLost` where some of them are not in the logs any more.
    """
    by_turn = {log.turn: log for log in logs}
    first = max(since.turn, 1)
    if since > until or not all(turn in by_turn for turn in range(first, until.turn + 1)):
        raise PositionLost(since)
    try:
        return _runs([by_turn[turn] for turn in range(first, until.turn + 1)], since, until)
    except (KeyError, TypeError, ValueError) as e:  # a line that makes no sense: what was at which position is unknown
        raise PositionLost(since) from e


def _runs(logs: Sequence[KeptLog], since: Position, until: Position) -> list[tuple[Position, list[Event]]]:
    runs: list[tuple[Position, list[Event]]] = []
    size = 0
    for log in logs:
        for position, event in _positions(log):
            if not since < position <= until:
                continue
            size += len(event.body)
            if size > MISSED_BYTES:
                raise PositionLost(since)
            if not runs or runs[-1][0].after(len(runs[-1][1]) + 1) != position:
                runs.append((position.after(-1), []))
            runs[-1][1].append(event)
    return runs


def _positions(log: KeptLog) -> list[tuple[Position, Event]]:
    """Return what was shown in a log and is stored, each with its position."""
    found: list[tuple[Position, Event]] = []
    at = Position(0, log.turn, 0)
    last: tuple[Position, list[Event]] | None = None
    for line in log.lines:
        update = msgspec.json.decode(line)
        kind = update["sessionUpdate"]
        shown: list[Event] = []
        if kind == LOG_BEGUN:
            found, at, shown = [], Position(update["epoch"], log.turn, 0), _events(update)
        elif kind == LOG_PASSED:
            at = at.after(update["count"])
        elif kind == LOG_ENDED:
            # Whoever takes a broken turn over begins to count anew.
            before = (
                at.after(update["count"]) if update["epoch"] == at.epoch else Position(update["epoch"], log.turn, 0)
            )
            last = before, _events(update)
        elif kind not in LOG_ONLY:
            shown = [event_from(update, line)]
        for event in shown:
            at = at.after(1)
            found.append((at, event))
    if last is not None:
        before, shown = last
        found += [(before.after(n), event) for n, event in enumerate(shown, 1)]
    return found


def _events(update: dict[str, list[dict[str, object]]]) -> list[Event]:
    return [event_from(event) for event in update["events"]]
