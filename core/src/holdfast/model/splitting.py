"""An update that is too long for one line, as several that fold into the same (A4).

Messages and the content of tool calls are said in chunks, long text in pieces, the output of terminals in pieces too.
What cannot be split, as one image or a raw input that is too long by itself, is refused.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import UsageError
from holdfast.model.kinds import CHUNK_OF, RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model.events import Update

_ESCAPED = 6
"""So many bytes a character may take in JSON."""

_encode = msgspec.json.Encoder().encode


def split_update(update: Update, limit: int) -> list[Update]:
    """Return an update as several, each of at most `limit` bytes; raise `UsageError` where it cannot be split."""
    if len(_encode(update)) <= limit:
        return [update]
    parts = list(_parts(update, limit))
    for part in parts:
        if (size := len(_encode(part))) > limit:
            kind = update["sessionUpdate"]
            raise UsageError(f"{kind}: {size:,} bytes in one piece are too many; {limit:,} can be sent")
    return parts


def shortened_update(update: Update, limit: int) -> list[Update]:
    """Return an update as several, each of at most `limit` bytes; say in the place of what is too long that it was."""
    return [_shortened(part, limit) for part in _parts(update, limit)]


def _shortened(part: Update, limit: int) -> Update:
    if (size := len(_encode(part))) <= limit:
        return part
    note: Update = {"type": "text", "text": f"[{size:,} bytes are too many to be sent, and are left out here]"}
    if part["sessionUpdate"] == "tool_call_content_chunk":
        return {**part, "content": {"type": "content", "content": note}}
    if "content" in part and isinstance(part["content"], dict):
        return {**part, "content": note}
    return {name: value for name, value in part.items() if len(_encode(value)) < limit // 8}


def _parts(update: Update, limit: int) -> Iterator[Update]:
    kind = update["sessionUpdate"]
    rule = RULES.get(kind)
    if rule is None or (not rule.items and not rule.item):
        yield update
    elif rule.entity == "terminal_update":
        yield from _terminal(update, limit)
    elif rule.item:  # one chunk
        for item in _items(update[rule.item], limit):
            yield {**update, rule.item: item}
    else:
        key = {rule.key: update[rule.key]}
        items = [piece for item in update.get(rule.items) or () for piece in _items(item, limit)]
        yield {**update, rule.items: []}
        for item in items:
            yield {"sessionUpdate": CHUNK_OF[rule.entity], **key, "content": item}


def _items(item: Any, limit: int) -> Iterator[Any]:
    """Cut an item that is text into pieces; others stay whole."""
    if len(_encode(item)) <= limit // 2:
        yield item
        return
    match item:
        case {"type": "text", "text": str(text)}:
            for piece in _cut(text, limit):
                yield {**item, "text": piece}
        case {"type": "content", "content": {"type": "text", "text": str(text)} as block}:
            for piece in _cut(text, limit):
                yield {**item, "content": {**block, "text": piece}}
        case _:
            yield item


def _cut(text: str, limit: int) -> Iterator[str]:
    size = max(limit // (2 * _ESCAPED), 1)
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _terminal(update: Update, limit: int) -> Iterator[Update]:
    output: Update = update.get("output") or {}
    data = b64decode(update["data"] if "data" in update else output.get("data", ""))
    size = limit // 4 * 3 // 2
    if "data" not in update:
        yield {name: value for name, value in update.items() if name != "output"} | {"output": {**output, "data": ""}}
    for start in range(0, len(data), size):
        piece = b64encode(data[start : start + size]).decode()
        chunk: Update = {"sessionUpdate": "terminal_output_chunk", "terminalId": update["terminalId"], "data": piece}
        yield chunk
