"""Laws of the way from the wire to events and back (DESIGN.md §4), in both protocol versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.tests.support import v1_updates as wire
from core.tests.support.schemas import invalid
from core.tests.support.updates import FEW, encoded, histories, told, updates
from holdfast.errors import InvalidParams
from holdfast.format import lines_of
from holdfast.model import History, event_from
from holdfast.surface.v1 import lift as lift1
from holdfast.surface.v1.client import Client
from holdfast.surface.v1.lower import Lowering as Lowering1
from holdfast.surface.v2 import lift as lift2
from holdfast.surface.v2.lower import Lowering as Lowering2
from holdfast.view.summary import summary_line
from holdfast.view.transcript import markdown

if TYPE_CHECKING:
    from holdfast.model import Event, Update

pytestmark = pytest.mark.requirement("B11", "B19", "C7")

many = settings(max_examples=FEW // 2, deadline=None)

EVERYTHING = Client({"session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}}})


def sent(*pieces: bytes) -> list[Update]:
    return [msgspec.json.decode(line)["params"]["update"] for line in b"".join(pieces).split(b"\n")[:-1]]


def lifted(lifting: lift1.Lifting | lift2.Lifting, sequence: list[Update]) -> list[Event]:
    return [event for it in sequence for event in lifting.lift(msgspec.json.encode(it))]


def folded(events: list[Event]) -> History:
    history = History()
    for event in events:
        history.apply(event)
    return history


# Version 2


@many
@given(updates)
def test_in_version_2_what_was_lifted_and_lowered_is_what_it_was(update: Update) -> None:
    (event,) = lift2.Lifting().lift(msgspec.json.encode(update))
    assert event == event_from(update, event.body)
    (again,) = sent(Lowering2("s").live([event]))
    assert encoded(again) == encoded(update)


@many
@given(histories)
def test_in_version_2_a_replayed_history_is_the_history(sequence: list[Update]) -> None:
    history = folded([event_from(it) for it in sequence])
    lines = b"\n".join(line.body for line in lines_of(history))
    replayed = sent(*Lowering2("s").past(lines)) if lines else []
    assert told(folded(lifted(lift2.Lifting(), replayed)))[:-1] == told(history)[:-1]


# Version 1


@settings(max_examples=50)
@given(wire.conversation | wire.configurations | wire.commands | wire.modes | wire.others)
def test_what_is_drawn_here_is_what_version_1_allows(update: Update) -> None:
    assert not invalid(1, "SessionUpdate", update, stable=True)


def there_and_back(update: Update, *before: Update) -> list[Update]:
    lifting, lowering = lift1.Lifting(), Lowering1("s", EVERYTHING)
    lowering.live(lifted(lifting, list(before)))
    return sent(lowering.live(lifted(lifting, [update])))


@many
@given(wire.chunks() | wire.calls | wire.plans | wire.commands | wire.others)
@example({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "t", "content": []})
def test_in_version_1_what_was_lifted_and_lowered_is_what_it_was(update: Update) -> None:
    (again,) = there_and_back(update)
    assert encoded(again) == encoded(update)


@many
@given(wire.call_updates)
@example({"sessionUpdate": "tool_call_update", "toolCallId": "a", "content": []})
def test_so_is_an_update_of_a_tool_call_once_the_call_was_announced(update: Update) -> None:
    announced = {"sessionUpdate": "tool_call", "toolCallId": update["toolCallId"], "title": "t"}
    assert [encoded(it) for it in there_and_back(update, announced)] == (
        [encoded(update)] if len(update) > 2 else []  # one that changes nothing is not worth a word
    )


@many
@given(wire.chunks(ids_too=False))
def test_a_piece_of_a_message_without_an_id_only_gets_one(update: Update) -> None:
    (again,) = there_and_back(update)
    assert again.pop("messageId").startswith("msg_")
    assert encoded(again) == encoded(update)


@many
@given(wire.configurations)
def test_so_are_options_which_may_be_told_as_modes_besides(update: Update) -> None:
    again, *modes = there_and_back(update)
    assert encoded(again) == encoded(update)
    assert all(it["sessionUpdate"] == "current_mode_update" for it in modes)


@many
@given(wire.ids, wire.ids, st.booleans())
def test_so_is_a_mode_which_is_told_as_an_option_besides(first: str, second: str, told_of_modes: bool) -> None:
    update = {"sessionUpdate": "current_mode_update", "currentModeId": second}
    before = [{"sessionUpdate": "current_mode_update", "currentModeId": first}] if told_of_modes else []
    options, *mode = there_and_back(update, *before)
    assert mode == ([] if told_of_modes and first == second else [update])  # a client that knows it is not told again
    assert [(it["category"], it["currentValue"]) for it in options["configOptions"]] == [("mode", second)]


@many
@given(st.lists(wire.conversation, max_size=10))
def test_in_version_1_a_replayed_history_is_the_history(sequence: list[Update]) -> None:
    history = folded(lifted(lift1.Lifting(), sequence))
    lines = b"\n".join(line.body for line in lines_of(history))
    replayed = sent(*Lowering1("s", EVERYTHING).past(lines)) if lines else []
    assert told(folded(lifted(lift1.Lifting(), replayed)))[:-1] == told(history)[:-1]


@many
@given(st.lists(wire.conversation, max_size=10), st.data())
def test_in_version_1_a_history_that_was_watched_is_the_one_that_is_replayed(
    sequence: list[Update], data: st.DataObject
) -> None:
    """Whoever watches gets what happens in batches, one a loop tick."""
    events = lifted(lift1.Lifting(), sequence)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=4)))
    lowering = Lowering1("s", EVERYTHING)
    watched = lift1.Lifting()
    live: list[Event] = []
    for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        live += lifted(watched, sent(lowering.live(events[start:end])))
    assert told(folded(live))[:-1] == told(folded(events))[:-1]


# Both


@many
@given(
    st.dictionaries(st.sampled_from(["messageId", "content", "plan", "_meta", ""]), st.integers() | st.none()),
    st.sampled_from(["_mine", "from_the_future", ""]),
)
def test_what_nobody_knows_survives(members: Update, kind: str) -> None:
    update = {**members, "sessionUpdate": kind}
    for lifting in (lift1.Lifting(), lift2.Lifting()):
        (event,) = lifting.lift(msgspec.json.encode(update))
        assert event.update() == update
        assert list(folded([event]).updates()) == [update]


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "text", "content", "AA=="]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "content", "id", "name", "data", "options"]), inner)
    ),
    max_leaves=6,
)


NAMES = (
    "messageId", "content", "toolCallId", "title", "status", "entries", "plan", "planId", "configOptions", "_meta",
    "availableCommands", "currentModeId", "terminalId", "data", "output", "used", "size", "state", "summary",
)  # fmt: skip


@settings(max_examples=300)
@given(
    st.dictionaries(
        st.sampled_from(NAMES),
        anything,
        max_size=5,
    ),
    st.sampled_from(["tool_call", "plan", "current_mode_update", *lift1.CHUNKS])
    | updates.map(lambda it: it["sessionUpdate"]),
)
def test_what_is_not_what_it_says_it_is_is_refused_and_nothing_else_goes_wrong(members: Update, kind: str) -> None:
    raw = msgspec.json.encode({**members, "sessionUpdate": kind})
    for lifting in (lift1.Lifting(), lift2.Lifting()):
        try:
            events = lifting.lift(raw)
        except InvalidParams:
            continue
        history = folded(list(events))
        list(history.updates())
        assert isinstance(markdown(history), str)
        lines = [summary_line(event.update()) for event in events]
        assert all(len(line) <= 200 and line.isprintable() for line in lines)


def test_a_number_that_nobody_can_read_is_refused() -> None:
    for raw in (b'{"sessionUpdate":"_mine","x":1e999}', b'{"sessionUpdate":"_mine","x":"\\ud800"}'):
        for lifting in (lift1.Lifting(), lift2.Lifting()):
            with pytest.raises(InvalidParams):
                lifting.lift(raw)


@given(anything)
def test_an_update_that_does_not_say_what_it_is_is_refused(value: object) -> None:
    for lifting in (lift1.Lifting(), lift2.Lifting()):
        with pytest.raises(InvalidParams):
            lifting.lift(msgspec.json.encode(value))
