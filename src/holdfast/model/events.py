"""The event: one thing that happened in a session, encoded once.

Its body is what the journal stores and, in the newest protocol version, what is sent; nobody encodes it again. The
fold looks inside only where it must: the text of a plain text chunk, by far the most frequent event, travels beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from holdfast.model.kinds import OPAQUE, RULES

if TYPE_CHECKING:
    from holdfast.model.kinds import Rule

Update: TypeAlias = dict[str, Any]
"""The JSON object of an event: `sessionUpdate` names its kind."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened. `plain` is set for a chunk that is nothing but text, and holds it."""

    kind: str
    key: str
    body: bytes
    plain: str | None = None

    @property
    def rule(self) -> Rule:
        """How it folds."""
        return RULES.get(self.kind, OPAQUE)

    @property
    def text(self) -> str | None:
        """The text of a piece of a message or a thought; None where it is anything else."""
        if self.plain is not None or self.rule.item != "content" or self.rule.key != "messageId":
            return self.plain
        content = self.update()["content"]
        return content.get("text") if content.get("type") == "text" else None

    def update(self) -> Update:
        """Decode the body."""
        return msgspec.json.decode(self.body)


class _Text(msgspec.Struct, tag_field="type", tag="text", gc=False):
    text: str


class _TextChunk(msgspec.Struct, rename="camel", gc=False):
    session_update: str
    message_id: str
    content: _Text


_encode = msgspec.json.Encoder().encode


def text_event(kind: str, key: str, text: str) -> Event:
    """Make a chunk of plain text for a message or a thought."""
    return Event(kind, key, _encode(_TextChunk(kind, key, _Text(text))), text)


def event_from(update: Update, body: bytes | None = None) -> Event:
    """Make an event of an update, given as an object and, where it arrived encoded on one line, as it was encoded."""
    kind = update["sessionUpdate"]
    rule = RULES.get(kind, OPAQUE)
    key = key_of(update, rule)
    plain = None
    if rule.item == "content" and rule.key == "messageId" and len(update) == 3:
        content = update["content"]
        if content.get("type") == "text" and len(content) == 2:
            plain = content["text"]
    return Event(kind, key, _encode(update) if body is None else in_one_line(body), plain)


def in_one_line(body: bytes) -> bytes:
    """Write JSON that may have been laid out for readers so that it is one line."""
    return msgspec.json.format(body, indent=-1) if b"\n" in body else body


def key_of(update: Update, rule: Rule) -> str:
    """Find what identifies the entry an update is about; empty where it is about none."""
    holder = update["plan"] if update["sessionUpdate"] == "plan_update" else update
    return str(holder.get(rule.key, "")) if rule.key else ""
