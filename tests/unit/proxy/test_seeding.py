"""What an agent is told of a conversation that it has forgotten: pure functions (G6)."""

from __future__ import annotations

import pytest

from holdfast.model import History, event_from
from holdfast.proxy.compare import Turn, split_turns
from holdfast.proxy.restore import Lost
from holdfast.proxy.seeding import seed_blocks, transcript

pytestmark = pytest.mark.requirement("G6")


def turns(*words: str) -> list[Turn]:
    history = History()
    for at, text in enumerate(words):
        kind = "user_message" if at % 2 == 0 else "agent_message"
        content = [{"type": "text", "text": text}]
        history.apply(event_from({"sessionUpdate": kind, "messageId": f"m{at}", "content": content}))
    return split_turns(history)


def test_the_newest_is_told_word_for_word_and_the_oldest_left_out() -> None:
    text, left_out = transcript(turns("old" * 50, "older answer", "new", "newest"), 40)
    assert text.endswith("User: new\n\nAgent: newest")
    assert left_out == 2
    assert "[2 older messages are left out here]" in text


def test_a_message_that_does_not_fit_is_told_to_its_end() -> None:
    text, _ = transcript(turns("x" * 100 + "the end"), 20)
    assert text.endswith("the end")
    assert len(text) < 30


def test_it_is_one_resource_or_text_where_the_agent_takes_none() -> None:
    lost = Lost("lost", turns("one", "First."), everything=True)
    (resource, *rest), note = seed_blocks(lost, seeds=True, takes_resources=True, budget=1000)
    assert resource["type"] == "resource"
    assert all(block["type"] == "text" for block in rest)
    assert "User: one\n\nAgent: First." in resource["resource"]["text"]
    assert note.startswith("The agent no longer has this conversation.")
    blocks, _ = seed_blocks(lost, seeds=True, takes_resources=False, budget=1000)
    assert all(block["type"] == "text" for block in blocks)


def test_who_is_told_less_than_all_is_told_so() -> None:
    lost = Lost("lost", turns(*["long words" * 9] * 8), everything=True)
    _, note = seed_blocks(lost, seeds=True, takes_resources=True, budget=200)
    assert "the oldest" in note


def test_without_telling_again_only_the_user_is_told() -> None:
    lost = Lost("lost", turns("one", "First."), everything=True)
    blocks, note = seed_blocks(lost, seeds=False, takes_resources=True, budget=200)
    assert blocks == []
    assert "begins anew" in note


def test_tools_and_other_content_are_named() -> None:
    history = History()
    picture = {"type": "image", "data": "", "mimeType": "image/png"}
    history.apply(event_from({"sessionUpdate": "user_message", "messageId": "u", "content": [picture]}))
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Run make", "status": "completed"}
    printed = [{"type": "content", "content": {"type": "text", "text": "built"}}]
    history.apply(event_from({**call, "content": printed}))
    text, _ = transcript(split_turns(history), 1000)
    assert "[image]" in text
    assert "Run make (completed)\nbuilt" in text
