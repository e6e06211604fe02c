"""What becomes of a turn whose process died: its history is kept, its end is explicit, nothing is run again (P3)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from holdfast.engine.ends import closing_events, end_mark, sealable
from holdfast.engine.turn import REMEMBERED
from holdfast.errors import UsageError
from holdfast.model import History, TurnEnd, check_update, event_from

if TYPE_CHECKING:
    from holdfast.model import Line
    from holdfast.store import Broken, Changes, Record

log = logging.getLogger(__name__)


def recovered(broken: Broken, record: Record, *, complete: bool) -> tuple[list[Line], Changes, int]:
    """Fold a broken turn into what is to be sealed: lines, changes, and how many messages they add."""
    history = History(complete=complete)
    for line in broken.lines:
        update = msgspec.json.decode(line)
        if update.get("sessionUpdate") == REMEMBERED:
            record.state.permissions[update["subject"]] = update["allow"]
            continue
        try:
            check_update(update)
        except UsageError as e:  # one event that cannot be kept is no reason to lose the others
            log.warning("Something a broken turn had said is left out: %s", e)
        else:
            history.apply(event_from(update, line))
    for event in closing_events(history, status="failed", complete=complete):
        history.apply(event)
    record.state.interrupted = True
    return sealable(history, end_mark(TurnEnd("interrupted")), record.state)
