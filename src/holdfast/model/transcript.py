"""A history as Markdown, to be read: who said what, which tools were used and how that went, the plan.

It is made for people. What a machine wants is the history itself; nothing can be read back from here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.model.history import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model.events import Update
    from holdfast.model.history import Entry, History

SPEAKERS = {"user_message": "User", "session_message": "Session"}
"""Everybody else is the agent."""

_BOXES = {"completed": "[x]", "in_progress": "[~]", "cancelled": "[-]"}
_BACKTICKS = re.compile("`{3,}")


def markdown(history: History) -> str:
    """Write a history as Markdown."""
    parts: list[str] = []
    title = history.state.get("session_info_update", {}).get("title")
    if isinstance(title, str):
        parts.append(f"# {title}")
    speaker = ""
    calls = [it for it in history if it.entity == "tool_call_update"]
    in_calls = {item.get("terminalId") for call in calls for item in call.content()}
    for entry in history:
        if entry.entity == "terminal_update" and entry.key in in_calls:
            continue
        said = "\n\n".join(it for it in _entry(history, entry) if it)
        if not said:
            continue
        if (now := SPEAKERS.get(entry.entity, "Agent")) != speaker:
            speaker = now
            parts.append(f"## {speaker}")
        parts.append(said)
    return "\n\n".join(parts) + "\n" if parts else ""


def _entry(history: History, entry: Entry) -> Iterator[str]:
    match entry.entity:
        case "user_message" | "agent_message" | "session_message":
            yield from map(_block, entry.content())
        case "agent_thought":
            for block in entry.content():
                yield "\n".join(f"> {line}".rstrip() for line in _block(block).splitlines())
        case "tool_call_update":
            yield _call_line(entry)
            for item in entry.content():
                yield _item(history, item)
        case "plan_update":
            yield _plan(entry.members.get("plan"))
        case "terminal_update":
            yield _terminal(entry)
        case "compaction_update":
            yield "*What was said so far is summarised.*"
            yield from map(_block, entry.content())
        case _:
            yield _other(entry.members if entry.entity == "" else {"sessionUpdate": entry.entity, **entry.members})


def _call_line(entry: Entry) -> str:
    about = ", ".join(it for name in ("kind", "status") if isinstance(it := entry.members.get(name), str))
    title = " ".join(str(entry.members.get("title") or entry.members.get("name") or entry.key).split())
    return f"**{title}** ({about})" if about else f"**{title}**"


def _item(history: History, item: Update) -> str:
    match item:
        case {"type": "content", "content": {"type": "text", "text": str(text)}}:
            return text if _BACKTICKS.match(text) else _fenced(text)
        case {"type": "content", "content": dict(block)}:  # pyright: ignore[reportUnknownVariableType]
            return _block(block)  # pyright: ignore[reportUnknownArgumentType]
        case {"type": "diff", "patch": {"text": str(patch)}}:
            return _fenced(patch, "diff")
        case {"type": "diff", "path": str(path), "newText": str(new)}:
            return f"`{path}` becomes\n\n{_fenced(new)}"
        case {"type": "diff", "changes": [*changes]}:
            return "\n".join(f"- {it.get('operation')} `{it.get('path')}`" for it in changes)
        case {"type": "terminal", "terminalId": str(key)} if terminal := history.get("terminal_update", key):
            return _terminal(terminal)
        case _:
            return f"*({item.get('type')})*"


def _terminal(entry: Entry) -> str:
    output = entry.output().decode(errors="replace") if isinstance(entry, Terminal) else ""
    command = entry.members.get("command")
    status: Any = entry.members.get("exitStatus")
    match status:
        case {"exitCode": int(how)} | {"signal": str(how)}:
            pass
        case _:
            how = None
    shown = f"$ {command}\n{output}" if isinstance(command, str) else output
    return _fenced(shown if how in (None, 0) else f"{shown.rstrip()}\n(exit status {how})", "console")


def _plan(plan: Any) -> str:
    match plan:
        case {"entries": [*entries]}:
            return "\n".join(f"- {_BOXES.get(it.get('status'), '[ ]')} {it.get('content')}" for it in entries)
        case {"content": str(text)}:
            return text
        case {"uri": str(uri)}:
            return f"The plan is in <{uri}>."
        case _:
            return ""


def _block(block: Update) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource_link", "uri": str(uri)}:
            return f"[{block.get('title') or block.get('name') or uri}](<{uri}>)"
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            return f"<{uri}>\n\n{_fenced(text)}"
        case {"type": "resource", "resource": {"uri": str(uri)}}:
            return f"<{uri}>"
        case {"type": str(kind)}:
            return f"*({', '.join([kind, *(str(it) for it in [block.get('mimeType')] if it)])})*"
        case _:
            return ""


def _other(update: Update) -> str:
    if update.get("sessionUpdate") == "_holdfast/turn_end":
        why = f": {error}" if (error := update.get("error")) else ""
        return f"*The turn ended: {update.get('reason')}{why}*"
    return _fenced(msgspec.json.format(msgspec.json.encode(update), indent=2).decode(), "json")


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(it) for it in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
