"""Laws of stored lines: what version 1 cuts by its bytes is what it would have said after decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.updates import FEW, call_items, encoded, histories, keys, objects, text, text_chunks, values

from holdfast.model import History, event_from, lines_of
from holdfast.model.layout import is_plain
from holdfast.surface.v1.client import Client
from holdfast.surface.v1.lower import Lowering
from holdfast.surface.v1.replay import cut

if TYPE_CHECKING:
    from holdfast.model import Update

pytestmark = pytest.mark.requirement("B11", "B19")

MESSAGE: Update = {"sessionUpdate": "agent_message", "messageId": "a"}
CALL: Update = {"sessionUpdate": "tool_call_update", "toolCallId": "a"}


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
    history = History(complete=complete)
    for update in sequence:
        history.apply(event_from(update))
    return [line.body for line in lines_of(history)]


@settings(max_examples=FEW, deadline=None)
@given(histories | talks, st.booleans())
@example([MESSAGE], True)
@example([CALL], True)
@example([{**CALL, "title": "x", "kind": "_mine"}], True)
@example([{**CALL, "title": "x", "kind": None}], False)
def test_exactly_the_plain_lines_are_cut(sequence: list[Update], complete: bool) -> None:
    for line in stored(sequence, complete=complete):
        assert (cut(line) is not None) == is_plain(msgspec.json.decode(line))


@settings(max_examples=FEW, deadline=None)
@given(talks, st.booleans())
@example([{**CALL, "title": "x", "content": [{"type": "content", "content": {"type": "text", "text": "y"}}]}], True)
def test_a_line_that_is_cut_says_what_it_says_when_it_is_decoded(sequence: list[Update], complete: bool) -> None:
    for line in stored(sequence, complete=complete):
        if cut(line) is None:
            continue
        update: Update = msgspec.json.decode(line)
        in_disorder = msgspec.json.encode(dict(reversed(update.items())))
        assert cut(in_disorder) is None
        assert heard(line) == heard(in_disorder)


def heard(line: bytes) -> bytes:
    """Say what a version 1 client holds that was sent a stored line, comparably."""
    lowering = Lowering("s", Client({}))
    lowering.quiet("a message this client sent itself")
    frames = lowering.past(line).split(b"\n")[:-1]
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
