"""The event: one thing that happened in a session, encoded once.

Its body is what the journal stores and, in the newest protocol version, what is sent; nobody encodes it again. The
fold looks inside only where it must: the text of a plain text chunk, by far the most frequent event, travels beside it.

Lone surrogates, which UTF-8 cannot hold, are replaced by U+FFFD here (A2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

import msgspec

from holdfast.errors import UsageError
from holdfast.model.kinds import MESSAGE_CHUNKS, OPAQUE, RULES

if TYPE_CHECKING:
    from holdfast.model.kinds import Rule

Update: TypeAlias = dict[str, Any]
"""The JSON object of an event: `sessionUpdate` names its kind."""


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


class Event(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened.

    Attributes:
        kind: its name, as `sessionUpdate` has it: ``agent_message_chunk``, ``tool_call_update``…
        key: the id of the message, tool call… it is about; empty where it is about the session itself.
        body: the JSON object, encoded.
        plain_text: the text of a chunk that is nothing but text, None for anything else.

    """

    kind: str
    key: str
    body: bytes
    plain_text: str | None = None

    @property
    def rule(self) -> Rule:
        """How it folds."""
        return RULES.get(self.kind, OPAQUE)

    @property
    def text(self) -> str | None:
        """The text of a chunk of a message or a thought; None for anything else."""
        if self.plain_text is not None or self.kind not in MESSAGE_CHUNKS:
            return self.plain_text
        return _text_of(self.update().get("content"))

    def update(self) -> Update:
        """Decode the body.

        Returns:
            The JSON object, in protocol version 2's shape.

        """
        return msgspec.json.decode(self.body)


class _Text(msgspec.Struct, tag_field="type", tag="text", gc=False):
    text: str


class _TextChunk(msgspec.Struct, rename="camel", gc=False):
    session_update: str
    message_id: str
    content: _Text


def _as_json(value: object) -> object:
    """Return what JSON has for a value that the encoder does not know: subclasses of str, and mappings."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    raise TypeError(f"{type(value).__name__} is no JSON value")


_encode = msgspec.json.Encoder(enc_hook=_as_json).encode


def text_event(kind: str, key: str, text: str) -> Event:
    """Return the event of a chunk of plain text; raise `UsageError` where `text` is no string."""
    if type(text) is not str:
        text = checked_text(text)
    try:
        body = _encode(_TextChunk(kind, key, _Text(text)))
    except UnicodeEncodeError:
        text = without_lone_surrogates(text)
        body = _encode(_TextChunk(kind, key, _Text(text)))
    return Event(kind, key, body, text)


def checked_text(text: object) -> str:
    """Return what agent code says as a plain string; raise `UsageError` where it is none."""
    if not isinstance(text, str):
        raise UsageError(f"text must be a string, not {type(text).__name__}; {_advice_for(text)}")
    return str.__str__(text)


def _advice_for(value: object) -> str:
    """Return how to make text of what agent code gave instead, as the chunks of a model library can be."""
    if isinstance(value, bytes | bytearray):
        return "decode it first"
    if isinstance(value, list | tuple):
        return "give the text of its parts, one after the other"
    if hasattr(value, "text") or hasattr(value, "content"):
        return f"give the text inside it, as `chunk.{'text' if hasattr(value, 'text') else 'content'}`"
    return "give its `str()` if that is what the user should read"


def event_from(update: Update, body: bytes | None = None, *, said_by: str = "") -> Event:
    """Return the event of an update; `body` is the update as it arrived encoded, where it did.

    Raise `UsageError` where it cannot be encoded, which names the author's verb if it was `said_by` one. Whether the
    update is well formed is not looked at here.
    """
    if body is not None:
        body = in_one_line(body)
    else:
        try:
            body = _encode(update)
        except UnicodeEncodeError:
            update = without_lone_surrogates(update)
            body = _encode(update)
        except (TypeError, RecursionError) as e:
            what = f"{said_by}: what it was given" if said_by else update.get("sessionUpdate")
            raise UsageError(f"{what} cannot be written as JSON: {e}") from None
    kind = update["sessionUpdate"]
    rule = RULES.get(kind, OPAQUE)
    plain = None
    if kind in MESSAGE_CHUNKS and len(update) == 3:
        content: Any = update.get("content")
        if is_object(content) and len(content) == 2:
            plain = _text_of(content)
    return Event(kind, key_of(update, rule), body, plain)


def without_lone_surrogates(value: Any) -> Any:
    """Return a value whose texts can be encoded: each lone surrogate in them becomes U+FFFD, a pair its character."""
    if isinstance(value, str):
        return text_without_lone_surrogates(value)
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value).items()
        return {without_lone_surrogates(name): without_lone_surrogates(member) for name, member in members}
    if isinstance(value, list | tuple):
        return [without_lone_surrogates(item) for item in cast("list[Any]", value)]
    return value


def text_without_lone_surrogates(text: str) -> str:
    """Return a text that can be encoded; the same one, if it is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def in_one_line(body: bytes) -> bytes:
    """Return JSON without line breaks, as it is where it has none."""
    return msgspec.json.format(body, indent=-1) if b"\n" in body else body


def key_of(update: Update, rule: Rule) -> str:
    """Return the key of the entry that an update is about, an empty text where it is about none."""
    if not rule.key:
        return ""
    holder: Any = update.get("plan") if update["sessionUpdate"] == "plan_update" else update
    return str(holder.get(rule.key, "")) if is_object(holder) else ""


def _text_of(block: Any) -> str | None:
    """Return the text of a text block, None for anything else."""
    text = block.get("text") if is_object(block) and block.get("type") == "text" else None
    return text if isinstance(text, str) else None
