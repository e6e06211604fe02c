"""How entries are laid out when they are stored: one a line, encoded, with marks where protocol versions differ.

A mark is a control character, which JSON never holds. So a whole block of lines becomes what a version says by
replacing single bytes, and nothing is decoded. Most lines are *plain*, which means that marks suffice:

- a message of one block: ``{"messageId":KEY,"sessionUpdate":"KIND<OPEN>BLOCK<CLOSE>}``;
- a tool call that is finished, has a title, and holds nothing that is not the same in every version:
  ``{"sessionUpdate":"tool_call<CALL>",…}``.

Any other line is an update behind the mark OTHER; what cannot say it as it is has to decode it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from holdfast.format.searchable import searchable_text
from holdfast.model.events import event_from, is_object
from holdfast.model.history import History
from holdfast.model.kinds import DAMAGED
from holdfast.model.sessions import forked_earlier
from holdfast.model.tool_calls import TOOL_KINDS, V1_FINAL_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.model.events import Event, Update
    from holdfast.model.history import Entry

OPEN, CLOSE, CALL, OTHER = b"\x01", b"\x02", b"\x03", b"\x04"

_MESSAGES = frozenset({"user_message", "agent_message", "agent_thought"})
_CALL = b'{"sessionUpdate":"tool_call_update"'
_MARKED_CALL = b'{"sessionUpdate":"tool_call\x03"'

_PLAIN_CALL = frozenset(
    {"sessionUpdate", "toolCallId", "title", "name", "kind", "status", "content", "locations", "rawInput", "rawOutput"}
)

_SAID = (
    *(b'"user_message\x01', b'"agent_message\x01'),
    *(b'\n\x04{"sessionUpdate":"user_message"', b'\n\x04{"sessionUpdate":"agent_message"'),
)

_encode = msgspec.json.Encoder().encode


class Line(NamedTuple):
    """A stored line and what a search should find in it."""

    body: bytes
    text: str


def lines_of(entries: Iterable[Entry]) -> list[Line]:
    """Encode entries for the store."""
    lines: list[Line] = []
    for entry in entries:
        if entry.entity in _MESSAGES and (block := entry.only_text()) is not None:  # most are
            lines.append(Line(_message(entry.key, entry.entity, block), block["text"]))
            continue
        text = searchable_text(entry)
        for update in entry.updates():
            lines.append(Line(stored(update), text))
            text = ""
    return lines


def stored(update: Update) -> bytes:
    """Encode an update as a line."""
    if not is_plain(update):
        return OTHER + _encode(update)
    kind = update["sessionUpdate"]
    if kind in _MESSAGES:
        return _message(update["messageId"], kind, update["content"][0])
    encoded = _encode(update)
    return _MARKED_CALL + encoded[len(_CALL) :] if encoded.startswith(_CALL) else OTHER + encoded


def _message(key: str, kind: str, block: Update) -> bytes:
    """Encode a message of one block."""
    return b'{"messageId":%s,"sessionUpdate":"%s\x01%s\x02}' % (_encode(key), kind.encode(), _encode(block))


def updates_in(block: bytes) -> bytes:
    """Return the updates of a block of lines, one a line, without marks."""
    block = block.replace(CALL, b"_update").replace(OTHER, b"")
    return block.replace(CLOSE, b"]").replace(OPEN, b'","content":[')


def messages_in(block: bytes) -> int:
    """Count what was said in a block of lines by the user and by the agent."""
    return sum(map((b"\n" + block).count, _SAID))


def fold(lines: Iterable[bytes], *, complete: bool = True) -> History:
    """Fold lines into a history; updates that are not stored yet are lines too."""
    history = History(complete=complete)
    for line in lines:
        history.apply(event_in(line))
    return history


def event_in(line: bytes) -> Event:
    """Return the event of a line. For a line that holds no update it is an entry that says so (P11)."""
    encoded = updates_in(line)
    try:
        update: object = msgspec.json.decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        return event_from({"sessionUpdate": DAMAGED, "lines": 1, "reason": str(e)})
    if not is_object(update) or not isinstance(update.get("sessionUpdate"), str):
        return event_from({"sessionUpdate": DAMAGED, "lines": 1, "reason": "It is no update of a session"})
    return event_from(update, encoded)


def with_texts(bodies: Sequence[bytes]) -> list[Line]:
    """Return stored lines with what a search should find in them, the first line of each entry with all of its text."""
    lines: list[Line] = []
    start, identity = 0, ("", "")
    for at, body in enumerate(bodies):
        event = event_in(body)
        if at > start and event.key and (event.rule.entity, event.key) == identity:
            continue
        lines += _entry_lines(bodies[start:at])
        start, identity = at, (event.rule.entity, event.key)
    return lines + _entry_lines(bodies[start:])


def _entry_lines(bodies: Sequence[bytes]) -> list[Line]:
    texts = [searchable(bodies)] + [""] * (len(bodies) - 1)
    return [Line(body, text) for body, text in zip(bodies, texts, strict=False)]


def searchable(lines: Iterable[bytes]) -> str:
    """Return what a search should find in the stored lines of an entry; see `searchable_text`."""
    return next((searchable_text(entry) for entry in fold(lines)), "")


def fork_note() -> list[Line]:
    """Return the lines that end a fork whose source goes on: the files are newer than the conversation (B15)."""
    return [Line(stored(forked_earlier()), "")]


def is_plain(update: Update) -> bool:
    """Return whether marks are all that an update needs."""
    kind: str = update["sessionUpdate"]
    content: Any = update.get("content")
    if kind == "tool_call_update":
        return (
            isinstance(update.get("title"), str)
            and _is_one_of(update.get("kind", "other"), TOOL_KINDS)
            and _is_one_of(update.get("status"), V1_FINAL_STATUSES)  # for another one readers need its past (B12)
            and (content is None or isinstance(content, list))
            and all(is_object(item) and item.get("type") == "content" for item in cast("list[Any]", content or ()))
            and update.keys() <= _PLAIN_CALL
        )
    return kind in _MESSAGES and len(update) == 3 and isinstance(content, list) and len(cast("list[Any]", content)) == 1


def _is_one_of(value: object, words: frozenset[str]) -> bool:
    return isinstance(value, str) and value in words
