"""Laws of stored lines: what is said of them by replacing marks is what would have been said after decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from core.tests.support.updates import (
    FEW,
    call_items,
    encoded,
    histories,
    keys,
    objects,
    text,
    text_chunks,
    told,
    values,
)
from holdfast.format import lines_of, messages_in, updates_in
from holdfast.format.lines import CALL, CLOSE, OPEN, OTHER, is_plain
from holdfast.model import History, event_from
from holdfast.surface.v1.client import Client
from holdfast.surface.v1.lift import Lifting
from holdfast.surface.v1.lower import Lowering

if TYPE_CHECKING:
    from holdfast.model import Update

pytestmark = pytest.mark.requirement("B11", "B19")

HELLO: Update = {"sessionUpdate": "agent_message", "messageId": "a"}
READ: Update = {"sessionUpdate": "tool_call_update", "toolCallId": "a"}
CHUNK: Update = {
    "sessionUpdate": "tool_call_content_chunk",
    "toolCallId": "a",
    "content": {"type": "content", "content": {"type": "text", "text": "x"}},
}

MARKS = {*OPEN, *CLOSE, *CALL, *OTHER}

calls = objects(
    {
        "sessionUpdate": st.just("tool_call_update"),
        "toolCallId": keys,
        "title": text,
        "status": st.sampled_from(["pending", "completed", "cancelled"]),
        "content": st.lists(call_items, max_size=2),
        "rawInput": values,
    }
)
talks = st.lists(text_chunks | calls, min_size=1, max_size=4)
"""Histories most of whose lines are plain."""


def stored(sequence: list[Update], *, complete: bool) -> list[bytes]:
    return [line.body for line in lines_of(folded(sequence, complete=complete))]


def folded(sequence: list[Update], *, complete: bool) -> History:
    history = History(complete=complete)
    for update in sequence:
        history.apply(event_from(update))
    return history


@settings(max_examples=FEW, deadline=None)
@given(histories | talks, st.booleans())
@example([HELLO], True)
@example([READ], True)
@example([{**READ, "title": "x", "kind": "_mine"}], True)
@example([{**READ, "title": "x", "kind": None}], False)
def test_exactly_the_plain_lines_are_cut(sequence: list[Update], complete: bool) -> None:
    for line in stored(sequence, complete=complete):
        assert line.startswith(OTHER) != is_plain(msgspec.json.decode(updates_in(line)))
        assert not (line.startswith(OTHER) and MARKS & {*line[1:]}), "what is to be decoded has no marks inside"


@settings(max_examples=FEW, deadline=None)
@given(histories | talks, st.booleans())
@example([{**HELLO, "content": [{"type": "text", "text": "\x01\x02\x03\x04\x05[]"}]}], True)
def test_without_its_marks_a_line_is_the_update_that_was_stored(sequence: list[Update], complete: bool) -> None:
    history = folded(sequence, complete=complete)
    lines = [line.body for line in lines_of(history)]
    block = b"\n".join(lines)
    updates = [msgspec.json.decode(line) for line in updates_in(block).split(b"\n") if line]
    assert updates == [*history.updates()]
    assert messages_in(block) == sum(update["sessionUpdate"] in ("user_message", "agent_message") for update in updates)


@settings(max_examples=FEW, deadline=None)
@given(histories | talks)
@example([{**CHUNK, "x": 1}, HELLO, {**CHUNK, "x": 2}])
def test_a_block_tells_what_its_lines_would_tell_one_by_one(sequence: list[Update]) -> None:
    """Not always in the same words: of a call whose content was added to, a block says all of it once."""
    history = folded(sequence, complete=True)
    messages = [entry.key for entry in history if entry.entity.endswith(("message", "thought"))]
    assume(len(set(messages)) == len(messages))  # an id names one message
    lines = [line.body for line in lines_of(history) if b"terminal" not in line.body]  # these wait for their calls
    whole, one_by_one = Lowering("s", Client({})), Lowering("s", Client({}))
    if lines:
        pieces = [piece for line in lines for piece in one_by_one.past(line)]
        assert held(b"".join(whole.past(b"\n".join(lines)))) == held(b"".join(pieces))


def held(said: bytes) -> list[bytes]:
    """Say what our own client holds that was told so, comparably."""
    lifting, history = Lifting(), History()
    for frame in said.split(b"\n")[:-1]:
        for event in lifting.lift(msgspec.json.encode(msgspec.json.decode(frame)["params"]["update"])):
            history.apply(event)
    return told(history)


@settings(max_examples=FEW, deadline=None)
@given(talks, st.booleans())
@example([{**READ, "title": "x", "content": [{"type": "content", "content": {"type": "text", "text": "y"}}]}], True)
def test_a_line_that_is_cut_says_what_it_says_when_it_is_decoded(sequence: list[Update], complete: bool) -> None:
    for line in stored(sequence, complete=complete):
        if line.startswith(OTHER):
            continue
        assert heard(line) == heard(OTHER + updates_in(line))


def heard(line: bytes) -> bytes:
    """Say what a version 1 client holds that was sent a stored line, comparably."""
    lowering = Lowering("s", Client({}))
    lowering.quiet("a message this client sent itself")
    frames = b"".join(lowering.past(line)).split(b"\n")[:-1]
    messages: list[Any] = []
    calls: dict[str, Update] = {}
    for frame in frames:
        update: Update = msgspec.json.decode(frame)["params"]["update"]
        kind = update.pop("sessionUpdate")
        if kind == "tool_call":
            assert isinstance(update["title"], str), "version 1 has no tool call without a title"
            assert update["toolCallId"] not in calls
            calls[update["toolCallId"]] = {"content": [], **update}
        elif kind == "tool_call_update":
            calls[update["toolCallId"]].update(update)
        else:
            messages.append([kind, update])
    return encoded([messages, list(calls.values())])
