"""Stored lines: which are plain, where their marks stand, and what a search finds in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from holdfast.format import fold, lines_of, searchable, stored, updates_in
from holdfast.format.lines import CALL as CALL_MARK
from holdfast.format.lines import CLOSE, OPEN, OTHER, is_plain
from holdfast.model import event_from

if TYPE_CHECKING:
    from holdfast.format import Line
    from holdfast.model import Update

TEXT = {"type": "text", "text": "x"}
CALL = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Read"}
DONE = {**CALL, "status": "completed"}
MESSAGE = {"sessionUpdate": "agent_message", "messageId": "m"}


def lines(*updates: Update, complete: bool = True) -> list[Line]:
    return lines_of(fold([event_from(update).body for update in updates], complete=complete))


@pytest.mark.parametrize("kind", ["user_message", "agent_message", "agent_thought"])
def test_a_message_of_one_block_is_plain_and_has_exactly_the_promised_form(kind: str) -> None:
    (line,) = lines({"sessionUpdate": kind, "content": [TEXT], "messageId": 'q"'})
    form = b'{"messageId":"q\\"","sessionUpdate":"%s<open>{"type":"text","text":"x"}<close>}' % kind.encode()
    assert line.body == form.replace(b"<open>", OPEN).replace(b"<close>", CLOSE)


@pytest.mark.parametrize(
    "update",
    [
        {**MESSAGE, "content": []},
        {**MESSAGE, "content": [TEXT, {"type": "image"}]},
        {**MESSAGE, "content": [TEXT], "_meta": {"x": 1}},
        {**MESSAGE, "_meta": {"x": 1}},
        MESSAGE,
        {**MESSAGE, "sessionUpdate": "session_message", "content": [TEXT]},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c"},
        CALL,
        {**CALL, "status": "in_progress"},
        {**CALL, "status": "cancelled"},
        {**CALL, "status": "paused"},
        {**DONE, "kind": "_mine"},
        {**DONE, "content": [{"type": "diff", "path": "/a"}]},
        {**DONE, "_meta": {}},
        {**DONE, "member": "of the future"},
    ],
)
def test_what_is_not_the_same_in_every_version_is_not_plain(update: Update) -> None:
    assert not is_plain(update)
    (line,) = lines(update)
    assert line.body.startswith(OTHER)
    assert msgspec.json.decode(line.body[1:]) == msgspec.json.decode(updates_in(line.body))
    assert fold([line.body]).get(update["sessionUpdate"], update.get("toolCallId", "m")) is not None


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_finished_tool_call_that_every_version_can_say_is_plain(status: str) -> None:
    content = [{"type": "content", "content": TEXT}]
    update = {**CALL, "kind": "read", "status": status, "locations": [], "rawInput": None, "content": content}
    assert is_plain(update)
    (line,) = lines(update)
    assert line.body.startswith(b'{"sessionUpdate":"tool_call%s","toolCallId":"c"' % CALL_MARK)


def test_a_tool_call_whose_title_is_not_known_here_is_not_plain() -> None:
    (line,) = lines({**CALL, "title": None, "kind": "read"}, complete=False)
    assert line.body.startswith(OTHER)


def test_a_tool_call_that_does_not_begin_with_its_kind_is_to_be_decoded() -> None:
    assert stored(dict(reversed(DONE.items()))).startswith(OTHER)


@pytest.mark.parametrize("strange", ["\n", "\r\n", "\u2028", "\0", "\U0001f600"])
def test_a_line_is_one_line_whatever_is_said_in_it(strange: str) -> None:
    (line,) = lines({**MESSAGE, "content": [{"type": "text", "text": strange}], "_meta": {strange: strange}})
    assert b"\n" not in line.body
    assert b"\0" not in line.body


def test_a_search_finds_what_was_said_and_thought_and_what_tools_gave() -> None:
    content = [TEXT, {"type": "image"}, {"type": "text", "text": "y"}]
    found: list[Any] = [
        line.text
        for line in lines(
            {**MESSAGE, "content": content},
            {**MESSAGE, "sessionUpdate": "user_message", "content": [TEXT]},
            {**MESSAGE, "sessionUpdate": "session_message", "content": [TEXT]},
            {**CALL, "content": [{"type": "content", "content": TEXT}]},
            {"sessionUpdate": "tool_call_update", "toolCallId": "untitled"},
            {**MESSAGE, "sessionUpdate": "agent_thought", "content": [TEXT]},
            {"sessionUpdate": "terminal_update", "terminalId": "t", "output": {"data": "eA=="}},
            {"sessionUpdate": "plan_update", "plan": {"type": "markdown", "planId": "p", "content": "x"}},
            {"sessionUpdate": "_mine", "text": "x"},
        )
    ]
    assert found == ["x\ny", "x", "x", "Read\nx", "", "x", "x", "", ""]


def test_an_entry_of_several_lines_is_found_by_the_first_of_them_and_by_all_it_says() -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": TEXT, "_meta": {"x": 1}}
    written = lines(chunk, {**chunk, "_meta": {"x": 2}})
    assert [line.text for line in written] == ["xx", "", ""]
    assert searchable(line.body for line in written) == "xx"
