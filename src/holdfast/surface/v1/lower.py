"""Stored updates as version 1 says them. What it has no words for is left out.

- A message becomes one chunk per content block.
- A tool call becomes a `tool_call`, whole; `cancelled` is `failed`, `paused` is `in_progress`; a diff needs the old and
  the new text, and is left out where only a patch is known.
- The plan becomes `plan`; version 1 has one, and knows no cancelled entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model import Update

MESSAGES = frozenset({"user_message", "agent_message", "agent_thought"})
CHUNKS = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"})
STATUS = {"cancelled": "failed", "paused": "in_progress"}
KINDS = frozenset({"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"})
CALL = ("toolCallId", "title", "name", "kind", "status", "content", "locations", "rawInput", "rawOutput", "_meta")


def lower_stored(update: Update) -> Iterator[Update]:
    """Say a stored update in version 1: as none, one or several updates."""
    kind = update["sessionUpdate"]
    if kind in MESSAGES:
        for block in update.get("content") or ():
            yield {"sessionUpdate": f"{kind}_chunk", "messageId": update["messageId"], "content": block}
    elif kind in CHUNKS:
        yield update
    elif kind == "tool_call_update":
        yield {"sessionUpdate": "tool_call", **lower_call(update)}
    elif kind == "plan_update" and update["plan"].get("type") == "items":
        entries = update["plan"]["entries"]
        yield {"sessionUpdate": "plan", "entries": [it for it in entries if it.get("status") != "cancelled"]}


def lower_call(update: Update) -> Update:
    """Say the members of a tool call in version 1."""
    call = {name: update[name] for name in CALL if name in update}
    call.setdefault("title", update.get("name") or "Tool call")
    if "status" in call:
        call["status"] = STATUS.get(call["status"], call["status"])
    if "kind" in call and call["kind"] not in KINDS:
        call["kind"] = "other"
    if call.get("content"):
        call["content"] = [lowered for it in call["content"] for lowered in lower_call_content(it)]
    return call


def lower_call_content(item: Any) -> Iterator[Update]:
    """Say one item of a tool call's content in version 1."""
    if item.get("type") == "content":
        yield item
    elif item.get("type") == "diff" and "newText" in item:
        yield {name: item[name] for name in ("type", "path", "oldText", "newText", "_meta") if name in item}
