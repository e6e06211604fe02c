"""What a search should find in an entry: what was said and thought, what tools were asked and gave, what ran.

Long output is searched at its two ends: a log of 20 MB is not worth an index as large.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from holdfast.model.events import is_object
from holdfast.model.history import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model.history import Entry

MOST_OUTPUT = 100_000
"""Of what a tool gave or a terminal showed, so many characters are searched: half at its beginning, half at its end."""

_SAID = frozenset({"user_message", "agent_message", "agent_thought", "session_message"})

_ESCAPES = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
"""Colours and other sequences that would be parts of words."""


def searchable_text(entry: Entry) -> str:
    """Return what a search should find in an entry; nothing where it is none that people read."""
    if entry.entity in _SAID:
        return entry.text()
    if entry.entity == "tool_call_update":
        return _shortened("\n".join(_call_texts(entry)))
    if isinstance(entry, Terminal):
        return _shortened("\n".join(_terminal_texts(entry)))
    return ""


def _call_texts(entry: Entry) -> Iterator[str]:
    members = entry.members
    yield str(members.get("title") or "")
    yield from _strings(members.get("rawInput"))
    items = entry.content()
    for item in items:
        yield from _item_texts(item)
    if not items:  # otherwise it is what the content was made of
        yield from _strings(members.get("rawOutput"))


def _item_texts(item: Any) -> Iterator[str]:
    match item:
        case {"type": "content", "content": {"type": "text", "text": str(text)}}:
            yield text
        case {"type": "content", "content": {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}}:
            yield from (uri, text)
        case {"type": "diff", "patch": {"text": str(patch)}}:
            yield patch
        case {"type": "diff", "path": str(path), "newText": str(new)}:
            yield from (path, new)
        case _:
            pass


def _terminal_texts(terminal: Terminal) -> Iterator[str]:
    command = terminal.members.get("command")
    yield command if isinstance(command, str) else ""
    yield re.sub(_ESCAPES, "", terminal.output().decode(errors="replace"))


def _strings(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, however deep."""
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif is_object(value):
            left += reversed(list(value.values()))
        elif isinstance(value, list):
            left += reversed(cast("list[Any]", value))


def _shortened(text: str) -> str:
    text = text.strip("\n")
    if len(text) <= MOST_OUTPUT:
        return text
    return f"{text[: MOST_OUTPUT // 2]}\n…\n{text[-MOST_OUTPUT // 2 :]}"
