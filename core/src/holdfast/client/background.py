"""What goes on in a session beside its turns, as an agent of version 2 tells it, and how one of it is stopped (C13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.model import History, Update

_IDS = {"terminal": "terminalId", "tool_call": "toolCallId"}
_ENTITIES = {"terminal": "terminal_update", "tool_call": "tool_call_update"}
_STOPS = {"terminal": "terminal/cancel", "tool_call": "tool_call/cancel"}


def background_work(items: Iterable[Update], history: History) -> dict[str, dict[str, Any]]:
    """Return by its id what goes on, with what the history knows of it; an item of another type is left out."""
    found: dict[str, dict[str, Any]] = {}
    for item in items:
        kind = item.get("type")
        if not isinstance(kind, str) or kind not in _IDS or not isinstance(key := item.get(_IDS[kind]), str):
            continue
        entry = history.get(_ENTITIES[kind], key)
        command = None if entry is None else entry.members.get("command")
        title = _title(history, key) if kind == "tool_call" else _title_of_call(history, key)
        found[key] = {"type": kind, "title": title or str(command or key)}
        if isinstance(command, str):
            found[key]["command"] = command
    return found


def stop_request(work: Mapping[str, Mapping[str, Any]], work_id: str) -> tuple[str, Update]:
    """Return the request that stops something that goes on. Raises `UsageError` where nothing of that id does."""
    if work_id not in work:
        raise UsageError(f"nothing called {work_id} goes on in this session; there is: {', '.join(work) or 'nothing'}")
    kind = work[work_id]["type"]
    return _STOPS[kind], {_IDS[kind]: work_id}


def _title(history: History, key: str) -> str:
    entry = history.get("tool_call_update", key)
    members: Update = {} if entry is None else entry.members
    return str(members.get("title") or members.get("name") or "")


def _title_of_call(history: History, terminal: str) -> str:
    """Return the title of the tool call that shows a terminal."""
    for entry in history:
        if entry.entity == "tool_call_update":
            for item in entry.content():
                match item:
                    case {"type": "terminal", "terminalId": str(key)} if key == terminal:
                        return _title(history, entry.key)
                    case _:
                        pass
    return ""
