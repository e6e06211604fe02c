"""Events: what identifies them, what is text in them, and that they are encoded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.model import RULES, Fold, event_from, text_event

if TYPE_CHECKING:
    from holdfast.model import Update

TEXT = {"type": "text", "text": "x"}


@pytest.mark.parametrize(
    ("update", "key"),
    [
        ({"sessionUpdate": "agent_message", "messageId": "m"}, "m"),
        ({"sessionUpdate": "tool_call_update", "toolCallId": "c"}, "c"),
        ({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": ""}, "t"),
        ({"sessionUpdate": "plan_update", "planId": "not here", "plan": {"type": "items", "planId": "p"}}, "p"),
        ({"sessionUpdate": "plan_removed", "planId": "p"}, "p"),
        ({"sessionUpdate": "usage_update", "messageId": "m"}, ""),
        ({"sessionUpdate": "_mine", "messageId": "m"}, ""),
    ],
)
def test_the_key_is_the_one_of_the_entry_it_is_about(update: Update, key: str) -> None:
    assert event_from(update).key == key


def test_only_a_chunk_that_is_nothing_but_text_carries_its_text_beside_it() -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": TEXT}
    assert event_from(chunk).plain_text == "x"
    for other in (
        {**chunk, "_meta": {}},
        {**chunk, "content": {**TEXT, "annotations": None}},
        {**chunk, "content": {"type": "image", "text": "x"}},
        {"sessionUpdate": "agent_message", "messageId": "m", "content": [TEXT]},
        {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": TEXT},
        {"sessionUpdate": "_mine", "messageId": "m", "content": TEXT},
    ):
        assert event_from(other).plain_text is None


def test_the_text_of_a_piece_of_a_message_can_be_had_whatever_stands_beside_it() -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": TEXT}
    for piece in (chunk, {**chunk, "_meta": {}}, {**chunk, "content": {**TEXT, "annotations": None}}):
        assert event_from(piece).text == "x"
    for other in (
        {**chunk, "content": {"type": "image", "text": "x"}},
        {"sessionUpdate": "agent_message", "messageId": "m", "content": [TEXT]},
        {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": TEXT},
        {"sessionUpdate": "_mine", "messageId": "m", "content": TEXT},
    ):
        assert event_from(other).text is None


def test_an_update_that_arrived_encoded_is_not_encoded_again() -> None:
    body = b'{ "sessionUpdate" : "notice", "n": 1.50 }'
    assert event_from({"sessionUpdate": "notice", "n": 1.5}, body).body is body


def test_an_update_that_arrived_on_several_lines_is_put_on_one() -> None:
    event = event_from({"sessionUpdate": "notice", "n": 1}, b'{"sessionUpdate":"notice",\n"n":1}')
    assert event.body == b'{"sessionUpdate":"notice","n":1}'


def test_a_text_made_here_is_encoded_like_any_update() -> None:
    event = text_event("agent_thought_chunk", "m", 'a"\n\U0001f30d')
    assert event.update() == {
        "sessionUpdate": "agent_thought_chunk",
        "messageId": "m",
        "content": {"type": "text", "text": 'a"\n\U0001f30d'},
    }
    assert event.text == 'a"\n\U0001f30d'


def test_a_kind_that_is_in_no_table_folds_as_it_is() -> None:
    assert event_from({"sessionUpdate": "from_the_future"}).rule.fold is Fold.OPAQUE


def test_every_chunk_appends_to_an_entity_that_can_be_written_whole() -> None:
    for rule in RULES.values():
        if rule.fold is Fold.APPEND:
            whole = RULES[rule.entity]
            assert (whole.fold, whole.key, whole.items) == (Fold.PATCH, rule.key, rule.items)


@pytest.mark.requirement("A2", "P6")
@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("\ud83d", "\ufffd"),
        ("a\ud83db\ude00", "a\ufffdb\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("é\udcff", "é\ufffd"),
    ],
)
def test_lone_surrogates_are_replaced_wherever_they_are(said: str, stored: str) -> None:
    text = text_event("agent_message_chunk", "m", said)
    assert text.plain_text == stored and text.update()["content"]["text"] == stored
    update: Update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": said,
        "rawInput": {said: [said, {"deep": (said, 1, None)}]},
    }
    event = event_from(update)
    assert event.key == stored
    assert event.update()["rawInput"] == {stored: [stored, {"deep": [stored, 1, None]}]}
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": said}}
    assert event_from(chunk).plain_text == stored
