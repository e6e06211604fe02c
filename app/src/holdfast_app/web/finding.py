"""What is looked for inside one session: its prompts, words in it, where an entry is.

A long history is read once, and only the lines that may matter are decoded.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from holdfast.format import event_in
from holdfast.model import is_object, made_at
from holdfast.model.kinds import OPAQUE, RULES
from holdfast.view.found import places_found
from holdfast.view.safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from holdfast.model import Event
    from holdfast.store import Library, Record

MOST = 2_000
"""So many places with words are listed at most, the first; all are counted…"""

MOST_PROMPTS = 10_000
"""…and so many prompts: of more, the last."""

EXCERPT = 140

_PROMPT = (b'"user_message\x01', b'"user_message"', b'"user_message_chunk"')


class Place(NamedTuple):
    """A place in a session: a line, and what is there."""

    line: int
    who: str
    text: str
    marks: tuple[tuple[int, int], ...] = ()
    at: int | None = None
    """When it began, where that is known."""


class Places(NamedTuple):
    """The places to list, in order, and what stands above them: how many there are."""

    listed: list[Place]
    heading: str


async def prompts_of(library: Library, record: Record) -> Places:
    """Return the prompts of a session."""
    found: deque[Place] = deque(maxlen=MOST_PROMPTS)
    last, total = "", 0
    async for number, line in _numbered(library, record):
        if any(mark in line for mark in _PROMPT):
            event = event_in(line)
            if RULES.get(event.kind, OPAQUE).entity == "user_message" and event.key != last:
                last, total = event.key, total + 1
                text = safe_line(_text_of(event)[: 4 * EXCERPT])[:EXCERPT]
                found.append(Place(number, "user", text, at=made_at(event.key)))
    cut = total > len(found)
    return Places(list(found), f"The last {len(found):,} of {total:,} prompts" if cut else "Prompts")


async def find_words(library: Library, record: Record, words: str) -> Places:
    """Return the entries that have a text in them, whatever its case."""
    if not words:
        return Places([], "")
    wanted = re.compile(re.escape(" ".join(words.split())), re.IGNORECASE)
    needle = _longest_ascii(words)
    found: list[Place] = []
    total = 0
    async for number, line in _numbered(library, record):
        if needle and needle not in line.lower():
            continue
        event = event_in(line)
        text = safe_line(_text_of(event))
        if (hit := wanted.search(text)) is None:
            continue
        total += 1
        if total <= MOST:
            begin = max(0, hit.start() - EXCERPT // 3)
            if begin:  # not within a word, unless it is a very long one
                begin = text.rfind(" ", max(0, begin - 20), begin) + 1 or begin
            cut = ("…" if begin else "") + text[begin : begin + EXCERPT] + ("…" if len(text) > begin + EXCERPT else "")
            marks = tuple(match.span() for match in wanted.finditer(cut))
            found.append(Place(number, RULES.get(event.kind, OPAQUE).entity, cut, marks))
    return Places(found, places_found(len(found), total, most=total))


async def line_of(library: Library, record: Record, key: str) -> int | None:
    """Return the line at which the entry of a key (`history_pages.entry_key`) begins; None if there is none."""
    entity, _, name = key.partition("/")
    needle = msgspec.json.encode(name)
    async for number, line in _numbered(library, record):
        if needle in line:
            event = event_in(line)
            if RULES.get(event.kind, OPAQUE).entity == entity and event.key == name:
                return number
    return None


async def _numbered(library: Library, record: Record) -> AsyncIterator[tuple[int, bytes]]:
    number = 0
    if not record.lines:
        return
    async for blocks in library.read(record.info.id, 0, record.lines, damaged="mark"):
        for block in blocks:
            for line in block.split(b"\n"):
                yield number, line
                number += 1


def _longest_ascii(words: str) -> bytes:
    """Return what any line with these words has in it: the longest part that JSON writes as it is."""
    parts = re.findall(r"[a-z0-9 ]+", " ".join(words.split()).lower())
    return max(parts, key=len, default="").strip().encode()


def _text_of(event: Event) -> str:
    """Return what an event says, for people who look for it."""
    update = event.update()
    return " ".join(text for name in _SAID for text in _texts(update.get(name)))


_SAID = ("title", "content", "plan", "rawInput", "rawOutput", "command", "text", "reason")
_UNSAID = frozenset({"type", "data", "mimeType", "_meta", "status", "priority"})


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item)
    elif is_object(value):
        for name, item in value.items():
            if name not in _UNSAID:
                yield from _texts(item)
