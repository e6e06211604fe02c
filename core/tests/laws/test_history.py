"""Laws of the fold (DESIGN.md §4): however a history is cut, stored and told again, it is the same history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.tests.support.naive import seen
from core.tests.support.updates import FEW, encoded, histories, text, told, updates
from holdfast.format import event_in, fold, lines_of, searchable
from holdfast.model import History, event_from, text_event
from holdfast.surface.v2.replay import Envelope

if TYPE_CHECKING:
    from holdfast.model import Update

pytestmark = pytest.mark.requirement("B11")

many = settings(max_examples=FEW, deadline=None)

MESSAGE: Update = {"sessionUpdate": "agent_message", "messageId": "a"}
CHUNK: Update = {"sessionUpdate": "agent_message_chunk", "messageId": "a"}
CALL: Update = {"sessionUpdate": "tool_call_update", "toolCallId": "a"}
TERMINAL: Update = {"sessionUpdate": "terminal_update", "terminalId": "a"}
PLAN: Update = {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p"}}
NO_PLAN: Update = {"sessionUpdate": "plan_removed", "planId": "p"}
TEXT: Update = {"type": "text", "text": "x"}


def of(sequence: list[Update], *, complete: bool = True) -> History:
    history = History(complete=complete)
    for update in sequence:
        history.apply(event_from(update))
    return history


def stored(history: History) -> list[bytes]:
    return [line.body for line in lines_of(history)]


@many
@given(updates)
def test_an_event_is_the_update_it_was_made_of(update: Update) -> None:
    event = event_from(update)
    assert encoded(event.update()) == encoded(update)
    assert b"\n" not in event.body
    assert encoded(event_from(event.update(), event.body)) == encoded(event)


@many
@given(updates)
def test_an_event_is_one_line_however_its_update_was_written(update: Update) -> None:
    written = msgspec.json.format(msgspec.json.encode(update), indent=2)
    event = event_from(msgspec.json.decode(written), written)
    assert b"\n" not in event.body
    assert encoded(event.update()) == encoded(update)


@given(st.sampled_from(["agent_message_chunk", "agent_thought_chunk"]), text, text)
def test_a_text_made_here_is_the_event_the_same_update_would_make(kind: str, said: str, key: str) -> None:
    update = {"sessionUpdate": kind, "messageId": key, "content": {"type": "text", "text": said}}
    assert text_event(kind, key, said) == event_from(update)


@many
@given(histories)
@example([MESSAGE])
@example([CALL])
@example([{"sessionUpdate": "subagent_update", "sessionId": "a", "": 1}])
def test_a_history_told_again_is_the_same_history(sequence: list[Update]) -> None:
    history = of(sequence)
    assert told(of(list(history.updates())))[:-1] == told(history)[:-1]


@many
@given(histories)
@example([{**TERMINAL, "output": {"data": "", "_meta": {"x": 1}}}])
def test_stored_and_sent_in_version_2_a_history_is_the_same(sequence: list[Update]) -> None:
    history = of(sequence)
    lines = stored(history)
    if not lines:
        assert not len(history)
        return
    sent = b"".join(Envelope('s"1').lines(b"\n".join(lines))).split(b"\n")
    assert sent.pop() == b""
    frames = [msgspec.json.decode(line) for line in sent]
    assert all(frame["method"] == "session/update" and frame["params"]["sessionId"] == 's"1' for frame in frames)
    assert told(of([frame["params"]["update"] for frame in frames]))[:-1] == told(history)[:-1]


@many
@given(histories, st.booleans())
@example([{**CHUNK, "content": TEXT}, {**CHUNK, "content": TEXT}], True)
def test_whoever_looks_in_between_changes_nothing(sequence: list[Update], complete: bool) -> None:
    looked_at = History(complete=complete)
    for update in sequence:
        looked_at.apply(event_from(update))
        stored(looked_at)
    assert told(looked_at) == told(of(sequence, complete=complete))


@many
@given(histories)
def test_no_stored_line_has_a_newline_in_it(sequence: list[Update]) -> None:
    for complete in (True, False):
        assert all(b"\n" not in line for line in stored(of(sequence, complete=complete)))


@many
@given(histories)
@example([{**TERMINAL, "output": {"data": "AA==", "more": 1}}, {**TERMINAL, "output": None}])
def test_who_watched_and_who_loads_later_see_the_same(sequence: list[Update]) -> None:
    loaded = [event_in(line).update() for line in stored(of(sequence))]
    assert seen(loaded) == seen(sequence)


@many
@given(histories, st.data())
def test_entries_and_what_follows_make_the_history_of_everything(sequence: list[Update], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(sequence)))
    entries = stored(of(sequence[:cut]))
    whole = fold([*entries, *(event_from(update).body for update in sequence[cut:])])
    assert told(whole)[:-1] == told(of(sequence))[:-1]


@many
@given(histories, st.data())
@example([{**MESSAGE, "_meta": {"x": 1}}, {**MESSAGE, "_meta": None}, {**MESSAGE, "_meta": {"y": 1}}], None)
@example([PLAN, PLAN, NO_PLAN], None)
@example([PLAN, PLAN, NO_PLAN, MESSAGE, PLAN], None)
@example([{**CALL, "_meta": {"x": 1}}, {**CALL, "_meta": {"x": None}}], None)
def test_what_a_later_turn_adds_is_as_good_as_the_turn_itself(
    sequence: list[Update], data: st.DataObject | None
) -> None:
    """A turn that goes on with entries of earlier turns is stored as what it adds to them."""
    cut = data.draw(st.integers(0, len(sequence))) if data else 1
    entries, added = stored(of(sequence[:cut])), stored(of(sequence[cut:], complete=False))
    assert told(fold([*entries, *added]))[:-1] == told(of(sequence))[:-1]


@many
@given(histories, st.data())
def test_turns_cut_anywhere_and_stored_one_by_one_make_the_same_history(
    sequence: list[Update], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sequence)), max_size=4)))
    lines: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(sequence)], strict=True):
        lines += stored(of(sequence[start:end], complete=False))
    assert told(fold(lines))[:-1] == told(of(sequence))[:-1]
    assert seen(event_in(line).update() for line in lines) == seen(sequence)


@many
@given(histories)
def test_what_a_turn_adds_told_again_adds_the_same(sequence: list[Update]) -> None:
    added = of(sequence, complete=False)
    assert told(fold(stored(added), complete=False))[:-1] == told(added)[:-1]


@many
@given(histories)
def test_what_a_search_finds_in_an_entry_stands_at_its_first_line(sequence: list[Update]) -> None:
    for entry in of(sequence):
        first, *rest = lines_of([entry])
        assert first.text == searchable([first.body, *(line.body for line in rest)])
        assert not any(line.text for line in rest)


@many
@given(histories)
def test_what_is_known_of_the_session_is_what_was_said_last(sequence: list[Update]) -> None:
    state = of(sequence).state
    for kind, update in state.items():
        latest = next(update for update in reversed(sequence) if update["sessionUpdate"] == kind)
        for name, value in latest.items():
            if kind != "session_info_update" or name != "_meta":
                assert encoded(update[name]) == encoded(value)
