"""What becomes of a turn whose process died: its history is kept, its end is explicit, nothing is run again (P3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from holdfast.engine.turn import REMEMBERED, closing_events
from holdfast.model import History, event_from, lines_of
from holdfast.store import Changes

if TYPE_CHECKING:
    from holdfast.model import Line, SessionState
    from holdfast.store import Broken, Record


def recovered(broken: Broken, record: Record, *, complete: bool) -> tuple[list[Line], Changes, int]:
    """Fold a broken turn into what is to be sealed: lines, changes, and how many messages they add."""
    history = History(complete=complete)
    for line in broken.lines:
        update = msgspec.json.decode(line)
        if update["sessionUpdate"] == REMEMBERED:
            record.state.permissions[update["subject"]] = update["allow"]
        else:
            history.apply(event_from(update, line))
    for event in closing_events(history, status="failed"):
        history.apply(event)
    record.state.interrupted = True
    return sealable(history, record.state, "interrupted", None)


def sealable(history: History, state: SessionState, reason: str, error: str | None) -> tuple[list[Line], Changes, int]:
    """Say what a turn that ended leaves behind. Whatever did not end well leaves a mark in the history (C4)."""
    if reason != "end_turn":
        mark = {"sessionUpdate": "_holdfast/turn_end", "reason": reason}
        history.apply(event_from(mark if error is None else {**mark, "error": error}))
    title = _keep_latest(history, state)
    messages = sum(it.entity in ("user_message", "agent_message") for it in history)
    return lines_of(history), Changes(state=state, title=title), messages


def _keep_latest(history: History, state: SessionState) -> str | msgspec.UnsetType | None:
    """Remember the latest of each thing the turn said about the session; give the title if it said one."""
    title: str | msgspec.UnsetType | None = UNSET
    for kind, update in history.state.items():
        if kind == "session_info_update":
            if "title" in update:
                title = update["title"]
                state.title_by = "agent"
        elif kind != "config_option_update":  # options are kept by their values
            state.latest[kind] = update
    return title
