"""How entries are laid out when they are stored: encoded updates, one a line, in a layout that needs little decoding.

Where `sessionUpdate` is followed at once by the entry's key the update is *plain*: a reader may cut it by its bytes.

- a message is then exactly ``{"sessionUpdate":KIND,"messageId":KEY,"content":[BLOCK]}``, with one block;
- a tool call is finished, has a title, and holds nothing that is not the same in every protocol version.

In everything else the key comes last, or first where nothing would stand between it and the kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast.model.history import fold
from holdfast.model.kinds import OPAQUE, RULES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.model.events import Update
    from holdfast.model.history import Entry

MESSAGES = frozenset({"user_message", "agent_message", "agent_thought"})

_PLAIN_CALL = frozenset(
    {"sessionUpdate", "toolCallId", "title", "name", "kind", "status", "content", "locations", "rawInput", "rawOutput"}
)
_PLAIN_KINDS = frozenset(
    {"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
)
_PLAIN_STATUS = frozenset({"completed", "failed"})
"""Of a call that goes on a reader has to know what it has shown so far, so that one is decoded (B12)."""

_encode = msgspec.json.Encoder().encode


class Line(NamedTuple):
    """A stored line and what a search should find in it."""

    body: bytes
    text: str


def lines_of(entries: Iterable[Entry]) -> list[Line]:
    """Encode entries for the store."""
    lines: list[Line] = []
    for entry in entries:
        text = searchable_text(entry)
        for update in entry.updates():
            lines.append(Line(_encode(update if is_plain(update) else _key_apart(update)), text))
            text = ""
    return lines


def searchable(lines: Iterable[bytes]) -> str:
    """Say what a search should find in the stored lines of an entry: what was said, or the title of a tool call."""
    return next((searchable_text(entry) for entry in fold(lines)), "")


def searchable_text(entry: Entry) -> str:
    """Say what a search should find in an entry."""
    if entry.entity == "tool_call_update":
        return str(entry.members.get("title") or "")
    return entry.text() if entry.entity in ("user_message", "agent_message", "session_message") else ""


def is_plain(update: Update) -> bool:
    """Say whether an update may be cut by its bytes."""
    kind = update["sessionUpdate"]
    if kind == "tool_call_update":
        return (
            isinstance(update.get("title"), str)
            and update.get("kind", "other") in _PLAIN_KINDS
            and update.get("status") in _PLAIN_STATUS
            and all(it.get("type") == "content" for it in update.get("content") or ())
            and update.keys() <= _PLAIN_CALL
        )
    return kind in MESSAGES and len(update) == 3 and len(update.get("content") or ()) == 1


def _key_apart(update: Update) -> Update:
    key = RULES.get(update["sessionUpdate"], OPAQUE).key
    if key not in update:
        return update
    if len(update) == 2:
        return {key: update[key], **update}
    return {**{name: value for name, value in update.items() if name != key}, key: update[key]}
