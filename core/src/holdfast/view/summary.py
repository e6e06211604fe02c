"""An update in one line, for logs and terminals: its kind, and the part that matters to a reader. Safe to show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.view.safe_text import safe_line

if TYPE_CHECKING:
    from holdfast.model.events import Update

MAX_LENGTH = 200


def summary_line(update: Update) -> str:
    """Return an update in one line of at most 200 characters; no update makes this raise."""
    said = _text(update)
    kind = str(update.get("sessionUpdate"))
    line = safe_line(f"{kind}: {said[: 5 * MAX_LENGTH]}" if said else kind)
    return line if len(line) <= MAX_LENGTH else f"{line[: MAX_LENGTH - 1]}…"


def _text(update: Update) -> str:
    match update:
        case {"stopReason": str(reason)}:
            return f"idle ({reason})"
        case {"state": str(state)}:
            return state
        case {"toolCallId": str(key)}:
            said = (str(update.get("title") or key), _member(update, "status"), block_text(update.get("content")))
            return ", ".join(word for word in said if word)
        case {"plan": {"entries": [*entries]}}:
            return ", ".join(f"{_member(entry, 'content')} ({_member(entry, 'status')})" for entry in entries)
        case {"command": str(command)}:
            return command
        case {"used": int(used), "size": int(size)}:
            return f"{used} of {size}"
        case {"configOptions": [*options]}:
            return ", ".join(f"{_member(option, 'configId')} = {_value(option)}" for option in options)
        case {"availableCommands": [*commands]}:
            return ", ".join(f"/{_member(command, 'name')}" for command in commands)
        case {"title": str(title)}:
            return title
        case {"content": content}:
            return block_text(content)
        case _:
            return ""


def block_text(content: Any) -> str:
    """Return the text of a content block, or of a list of them; for one that is no text, its type or address."""
    match content:
        case [*blocks]:
            return " ".join(map(block_text, blocks))
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "content", "content": inner}:
            return block_text(inner)
        case (
            {"type": "resource_link", "uri": str(uri)}
            | {"resource": {"uri": str(uri)}}
            | {"type": "diff", "path": str(uri)}
        ):
            return uri
        case {"type": str(kind)}:
            return f"({kind})"
        case _:
            return ""


def _member(holder: Any, name: str) -> str:
    value = cast("Update", holder).get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, str) else ""


def _value(option: Any) -> object:
    return cast("Update", option).get("currentValue") if isinstance(option, dict) else None
