"""A client that knows nothing of ours: it applies updates one by one as the protocol's schema words them.

What it holds at the end is what the user sees. It keeps no order of its own making and takes no shortcut, so that it
can judge the fold.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.tests.support.updates import encoded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.model import Update

UPSERTS = {
    "user_message": ("messageId", "content"),
    "agent_message": ("messageId", "content"),
    "agent_thought": ("messageId", "content"),
    "session_message": ("messageId", "content"),
    "tool_call_update": ("toolCallId", "content"),
    "terminal_update": ("terminalId", "output"),
    "compaction_update": ("compactionId", "summary"),
    "subagent_update": ("sessionId", None),
}
CHUNKS = {
    "user_message_chunk": ("user_message", "content"),
    "agent_message_chunk": ("agent_message", "content"),
    "agent_thought_chunk": ("agent_thought", "content"),
    "session_message_chunk": ("session_message", "content"),
    "tool_call_content_chunk": ("tool_call_update", "content"),
    "terminal_output_chunk": ("terminal_update", "data"),
    "compaction_summary_chunk": ("compaction_update", "content"),
}
ABOUT_THE_SESSION = ("available_commands_update", "config_option_update", "session_info_update", "usage_update")
PASSING = ("state_update", "notice")


@dataclass
class Thing:
    """Something in the conversation, as a client remembers it."""

    members: dict[str, Any] = field(default_factory=dict[str, Any])
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    items: list[tuple[Any, Update]] = field(default_factory=list[tuple[Any, "Update"]])
    printed: bytes = b""
    about_output: dict[str, Any] = field(default_factory=dict[str, Any])


def seen(updates: Iterable[Update]) -> bytes:
    """Say what a client sees that got these updates, comparably."""
    things: dict[tuple[str, object], Thing] = {}
    for at, update in enumerate(updates):
        kind = update["sessionUpdate"]
        if kind in UPSERTS:
            name, items = UPSERTS[kind]
            _upsert(things.setdefault((kind, update[name]), Thing()), update, name, items)
        elif kind in CHUNKS:
            entity, item = CHUNKS[kind]
            name = UPSERTS[entity][0]
            _append(things.setdefault((entity, update[name]), Thing()), update, name, item)
        elif kind == "plan_update":
            things.setdefault((kind, update["plan"]["planId"]), Thing()).members = update
        elif kind == "plan_removed":
            things.pop(("plan_update", update["planId"]), None)
        elif kind not in PASSING and kind not in ABOUT_THE_SESSION:
            things["", at] = Thing(members=update)
    return encoded([[entity, key if entity else None, _shown(thing)] for (entity, key), thing in things.items()])


def _upsert(thing: Thing, update: Update, key: str, items: str | None) -> None:
    for name, value in update.items():
        if name in ("sessionUpdate", key):
            continue
        if name == "_meta":
            thing.meta = {} if value is None else {**thing.meta, **value}
        elif name == "output" and items == "output":
            output: Update = value or {}
            thing.about_output = {k: v for k, v in output.items() if k != "data"}
            thing.printed = b64decode(value["data"]) if value else b""
        elif name == items:
            thing.items = [(item, {}) for item in value or ()]
        else:
            thing.members[name] = value


def _append(thing: Thing, update: Update, key: str, item: str) -> None:
    if item == "data":
        thing.printed += b64decode(update["data"])
        return
    along = {k: v for k, v in update.items() if k not in ("sessionUpdate", key, item)}
    thing.items.append((update[item], along))


def _shown(thing: Thing) -> list[Any]:
    """Neighbouring plain text is one text, and what was cleared is not there."""
    items: list[Any] = []
    for item, extra in thing.items:
        along = {k: v for k, v in extra.items() if (k, v) != ("_meta", None)}
        is_text = not along and item.keys() == {"type", "text"} and item["type"] == "text"
        if is_text and items and isinstance(items[-1], str):
            items[-1] += item["text"]
        else:
            items.append(item["text"] if is_text else [item, along])
    members = {k: v for k, v in thing.members.items() if v is not None}
    meta = {k: v for k, v in thing.meta.items() if v is not None}
    return [members, meta, items, list(thing.printed), thing.about_output]
