"""What agent code says is checked when it says it: the message says what is wrong, and nothing unusual is refused."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.errors import UsageError
from holdfast.model import checked_event, checked_stop_reason, text_event

if TYPE_CHECKING:
    from holdfast.model import Update

TEXT = {"type": "text", "text": "hi"}


def call(**members: Any) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": "c", **members}


def piece(item: Any) -> Update:
    return {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": item}


def message(*blocks: Any) -> Update:
    return {"sessionUpdate": "agent_message", "messageId": "m", "content": list(blocks)}


def chunk(block: Any) -> Update:
    return {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": block}


def plan(*entries: Any, **members: Any) -> Update:
    whole = {"type": "items", "planId": "p", "entries": list(entries), **members}
    return {"sessionUpdate": "plan_update", "plan": whole}


def step(**members: Any) -> Update:
    return {"content": "do it", "status": "pending", "priority": "medium", **members}


def usage(**members: Any) -> Update:
    return {"sessionUpdate": "usage_update", "used": 1, "size": 2, **members}


@pytest.mark.requirement("P6")
@pytest.mark.parametrize(
    ("update", "says"),
    [
        ({}, "sessionUpdate"),
        ({"sessionUpdate": 5}, "sessionUpdate"),
        (call(kind="banana"), "tool_call_update: `kind` cannot be 'banana'; it can be delete, edit, "),
        (call(status="done"), "tool_call_update: `status` cannot be 'done'; it can be cancelled, completed, "),
        (call(title=5), r"tool_call_update: Expected `str \| null`, got `int` - at `\$.title`"),
        (call(toolCallId=None), r"\$.toolCallId"),
        (call(content=TEXT), r"\$.content"),
        (call(content=[TEXT["text"]]), r"\$.content\[0\]"),
        (call(content=[{"type": "content", "content": {"type": "image"}}]), "image: .*`data`"),
        (call(content=[{"type": "diff", "path": "/a", "newText": "x"}]), "diff: .*`changes`"),
        (call(content=[{"type": "terminal"}]), "terminal: .*`terminalId`"),
        (call(content=[{"text": "x"}]), "a string as `type`"),
        (call(locations=["/a"]), r"\$.locations\[0\]"),
        (call(locations=[{"path": "/a", "line": -1}]), r"\$.locations\[0\].line"),
        (piece({"type": "content", "content": "text"}), r"\$.content"),
        (piece({"type": "content", "content": {"type": "text", "text": 5}}), "text: Expected `str`, got `int`"),
        (message({"type": "image", "mimeType": "image/png"}), "agent_message: `content`: image: .*`data`"),
        (message({"type": "resource", "resource": {"uri": "x"}}), "either text or a blob"),
        (message({"type": "resource_link", "uri": "x"}), "`name`"),
        (chunk({"type": "image"}), "agent_message_chunk: `content`: image"),
        (chunk({"type": "text", "text": b"bytes"}), "Expected `str`, got `bytes`"),
        (chunk("text"), r"\$.content"),
        (chunk(None), r"\$.content"),
        (plan(step(status="done")), "plan_update: `entries`: `status` cannot be 'done'; it can be cancelled, "),
        (plan(step(priority="urgent")), "`priority` cannot be 'urgent'"),
        (plan("do it"), "items: .*entries"),
        (plan(step(), planId=5), "`planId` must be a string"),
        ({"sessionUpdate": "plan_update", "plan": {"type": "_mine"}}, "`planId` must be a string"),
        ({"sessionUpdate": "plan_update", "plan": "first do this"}, r"\$.plan"),
        (usage(used="a"), r"usage_update: Expected `int`, got `str` - at `\$.used`"),
        (usage(used=-1), r"\$.used"),
        (usage(cost=3), r"\$.cost"),
        (usage(cost={"amount": "much", "currency": "EUR"}), r"\$.cost.amount"),
        ({"sessionUpdate": "notice", "severity": "fatal", "title": "x"}, "`severity` cannot be 'fatal'"),
        ({"sessionUpdate": "notice", "severity": "info", "title": None}, r"\$.title"),
        ({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": "not base64!"}, "base64"),
        ({"sessionUpdate": "terminal_update", "terminalId": "t", "output": {"data": 5}}, "base64"),
        ({"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": {"exitCode": "1"}}, "exitCode"),
        ({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "half"}, "`status` cannot be 'half'"),
        ({"sessionUpdate": "session_info_update", "title": 5}, r"\$.title"),
        ({"sessionUpdate": "available_commands_update", "availableCommands": ["x"]}, "availableCommands"),
        (call(_meta=[]), r"\$._meta"),
        (call(rawInput=object()), "tool_call_update cannot be written as JSON: object is no JSON value"),
    ],
)
def test_what_is_malformed_is_refused_with_the_reason(update: Update, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        checked_event(update)


@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "from_the_future", "content": 5},
        {"sessionUpdate": "_mine"},
        call(),
        call(kind="_mine", status="_waiting", rawInput=None, odd=[1, None]),
        call(title=None, kind=None, status=None, content=None),
        call(content=({"type": "_mine"}, {"type": "video", "data": 5})),
        call(content=[{"type": "content", "content": {"type": "video"}}]),
        plan(step(status="_blocked", priority="_now", more=1)),
        {"sessionUpdate": "plan_update", "plan": {"type": "markdown", "planId": "p", "content": "# Plan"}},
        {"sessionUpdate": "plan_update", "plan": {"type": "_mine", "planId": "p", "entries": 3}},
        usage(cost=None),
        usage(used=10**15, cost={"amount": 1, "currency": "credits"}),
        message({**TEXT, "annotations": None}),
    ],
)
def test_what_nobody_knows_passes_and_is_carried_as_it_is(update: Update) -> None:
    event = checked_event(update)
    assert event.kind == update["sessionUpdate"]
    assert event.update().keys() == update.keys()


@pytest.mark.requirement("P6")
@pytest.mark.parametrize("text", [5, None, b"bytes", ["text"], {"text": "x"}, 1.5])
def test_text_must_be_a_string(text: Any) -> None:
    with pytest.raises(UsageError, match=f"text must be a string, not {type(text).__name__}"):
        text_event("agent_message_chunk", "m", text)


class Accessor(str):
    """A string with something more, as frameworks make them."""

    __slots__ = ()


def test_strings_and_mappings_of_other_types_are_taken_for_what_they_are() -> None:
    said = text_event("agent_message_chunk", "m", Accessor("hi"))
    assert said.update()["content"] == TEXT and type(said.plain_text) is str
    block = MappingProxyType({"type": "text", "text": Accessor("hi")})
    assert checked_event(message(block)).update() == message(TEXT)


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "refusal", "cancelled", "error", "_mine"])
def test_a_turn_ends_for_a_reason_that_is_known(reason: str) -> None:
    assert checked_stop_reason(reason) == reason


@pytest.mark.requirement("P6")
@pytest.mark.parametrize("reason", ["", "done", "END_TURN", None, 5, ["end_turn"]])
def test_a_turn_does_not_end_for_a_reason_that_nobody_knows(reason: object) -> None:
    with pytest.raises(UsageError, match="it can end with end_turn, "):
        checked_stop_reason(reason)
