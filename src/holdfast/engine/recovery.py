"""What becomes of a turn whose process died: its history is kept, its end is explicit, nothing is run again (P3)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
from msgspec import UnsetType

from holdfast.engine.ends import closing_events, end_mark, sealable
from holdfast.errors import UsageError
from holdfast.model import History, TurnEnd, check_update, event_from
from holdfast.model.kinds import REMEMBERED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.format import Line
    from holdfast.store import Broken, Changes, Claim, Record, Store

log = logging.getLogger(__name__)


async def claimed(store: Store, session_id: str, *, complete: bool) -> tuple[Claim, Record]:
    """Become the one writer of a session; a turn that a crash broke is ended first."""
    claim, record, broken = await store.claim(session_id)
    if broken is None:
        return claim, record
    lines, changes, messages = recovered(broken, record, complete=complete)
    try:
        await store.seal(claim, lines, changes, messages=messages, late=True)
    except BaseException:
        await store.release(claim)
        raise
    state = record.state if isinstance(changes.state, UnsetType) else changes.state
    title = record.info.title if isinstance(changes.title, UnsetType) else changes.title
    info = msgspec.structs.replace(record.info, title=title)
    return claim, record._replace(info=info, state=state, lines=record.lines + len(lines))


def recovered(broken: Broken, record: Record, *, complete: bool) -> tuple[list[Line], Changes, int]:
    """Fold a broken turn into what is to be sealed: lines, changes, and how many messages they add."""
    record.state.interrupted = True
    try:
        return _recovered(broken.lines, record, complete=complete)
    except Exception:
        # It may have been what broke the turn. One event that cannot be kept is no reason to lose the others.
        log.exception("Something that a broken turn had said makes no sense, and is left out")
        return _recovered([it for it in broken.lines if _makes_sense(it)], record, complete=complete)


def _recovered(lines: Sequence[bytes], record: Record, *, complete: bool) -> tuple[list[Line], Changes, int]:
    history = History(complete=complete)
    for line in lines:
        update = msgspec.json.decode(line)
        if update["sessionUpdate"] == REMEMBERED:
            record.state.permissions[update["subject"]] = update["allow"]
        else:
            history.apply(event_from(update, line))
    for event in closing_events(history, status="failed", complete=complete):
        history.apply(event)
    return sealable(history, end_mark(TurnEnd("interrupted")), record.state)


def _makes_sense(line: bytes) -> bool:
    try:
        check_update(msgspec.json.decode(line))
    except UsageError:
        return False
    return True
