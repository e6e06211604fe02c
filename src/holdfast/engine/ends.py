"""How turns end: what they left open is closed, and what they leave behind is made ready for the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from holdfast.format import Line, lines_of, stored
from holdfast.model import FINAL_STATUSES, event_from, latest
from holdfast.store import Changes

if TYPE_CHECKING:
    from holdfast.model import Event, History, SessionState, TurnEnd, Update


def closing_events(history: History, *, status: str, complete: bool) -> list[Event]:
    """Say how what a turn left open ends: tool calls that were not finished, terminals that had not exited.

    Unless every entry begins in its turn (`complete`), a tool call may be one that an earlier turn has finished.
    """
    events: list[Event] = []
    for entry in history:
        began_here = complete or "status" in entry.members or "title" in entry.members
        if entry.entity == "tool_call_update" and began_here and entry.members.get("status") not in FINAL_STATUSES:
            events.append(event_from({"sessionUpdate": "tool_call_update", "toolCallId": entry.key, "status": status}))
        elif entry.entity == "terminal_update" and not isinstance(entry.members.get("exitStatus"), dict):
            events.append(event_from({"sessionUpdate": "terminal_update", "terminalId": entry.key, "exitStatus": {}}))
    return events


def end_mark(end: TurnEnd) -> list[Event]:
    """Make the mark that a turn which did not end well leaves in the history (C4); none for one that did."""
    if end.reason == "end_turn":
        return []
    mark = {"sessionUpdate": "_holdfast/turn_end", "reason": end.reason}
    return [event_from(mark if end.error is None else {**mark, "error": end.error})]


def sealable(history: History, marks: list[Event], state: SessionState) -> tuple[list[Line], Changes, int]:
    """Say what a turn that ended leaves behind: lines, changes, and how many messages the lines add."""
    title: str | UnsetType | None = UNSET
    for kind, update in history.state.items():
        keep_latest(state, update)
        if kind == "session_info_update" and "title" in update:
            title = update["title"]
    messages = sum(it.entity in ("user_message", "agent_message") for it in history)
    lines = [*lines_of(history), *(Line(stored(it.update()), "") for it in marks)]
    return lines, Changes(state=state, title=title), messages


def keep_latest(state: SessionState, update: Update) -> None:
    """Remember the latest that was said about the session itself. Titles and options are kept elsewhere."""
    kind = update["sessionUpdate"]
    if kind == "session_info_update":
        if "title" in update and state.title_by != "user":
            state.title_by = "agent"
    elif kind != "config_option_update":
        state.latest[kind] = latest(state.latest.get(kind), update)
