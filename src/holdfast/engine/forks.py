"""What a running turn gives to a fork: what is finished of it (B15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.model import FINAL_STATUSES

if TYPE_CHECKING:
    from holdfast.model import Entry, History

_SPEECH = frozenset({"agent_message", "agent_thought"})


def given(history: History, up_to: str | None) -> tuple[list[Entry], str | None]:
    """Choose the entries a running turn gives, up to and with one; give that back where the turn does not have it."""
    entries = list(history)
    if up_to is None:
        return _finished(entries), None
    at = next((i for i, it in enumerate(entries) if it.entity and it.key == up_to), None)
    if at is None:
        return [], up_to
    return [it for it in entries[: at + 1] if not _is_open(it)], None


def _finished(entries: list[Entry]) -> list[Entry]:
    """Take entries up to the first that is not finished; the last may still be growing."""
    for at, entry in enumerate(entries):
        if _is_open(entry) or (at == len(entries) - 1 and entry.entity in _SPEECH):
            return entries[:at]
    return entries


def _is_open(entry: Entry) -> bool:
    if entry.entity == "tool_call_update":
        return entry.members.get("status") not in FINAL_STATUSES
    return entry.entity == "terminal_update" and not isinstance(entry.members.get("exitStatus"), dict)
