"""What version 1 clients are told of the agent's terminals: text in the tool call they belong to."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.format import lines_of
from holdfast.model import Event, History, event_from
from holdfast.surface.v1 import lower
from holdfast.surface.v1.client import Client
from holdfast.surface.v1.lower import Lowering

if TYPE_CHECKING:
    import pytest


def run(number: int) -> list[Event]:
    """Tell of a call that runs a command in a terminal, from its beginning to its end."""
    call, terminal = f"call{number}", f"term{number}"
    updates: list[dict[str, Any]] = [
        {"sessionUpdate": "tool_call_update", "toolCallId": call, "title": "Count", "status": "in_progress"},
        {"sessionUpdate": "terminal_update", "terminalId": terminal, "command": "count"},
        {
            "sessionUpdate": "tool_call_content_chunk",
            "toolCallId": call,
            "content": {"type": "terminal", "terminalId": terminal},
        },
        {"sessionUpdate": "terminal_output_chunk", "terminalId": terminal, "data": b64encode(b"1\n").decode()},
        {"sessionUpdate": "terminal_output_chunk", "terminalId": terminal, "data": b64encode(b"2\n").decode()},
        {"sessionUpdate": "terminal_update", "terminalId": terminal, "exitStatus": {"exitCode": 0}},
        {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed"},
    ]
    return [event_from(it) for it in updates]


def updates_in(lines: bytes) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line)["params"]["update"] for line in lines.splitlines()]


SHOWN = [{"type": "content", "content": {"type": "text", "text": "```\n1\n2\n```"}}]


def test_a_stored_call_is_said_once_with_what_its_terminal_printed() -> None:
    history = History()
    for number in range(3):
        for event in run(number):
            history.apply(event)
    pieces = Lowering("s", Client({})).past(b"\n".join(line.body for line in lines_of(history)))
    said = updates_in(b"".join(pieces))
    assert [(it["sessionUpdate"], it["toolCallId"], it["content"]) for it in said] == [
        ("tool_call", f"call{number}", SHOWN) for number in range(3)
    ]


def test_a_terminal_that_is_stored_in_a_later_block_is_added_to_its_call() -> None:
    history = History()
    for event in run(0):
        history.apply(event)
    lowering = Lowering("s", Client({}))
    said = [it for line in lines_of(history) for it in updates_in(b"".join(lowering.past(line.body)))]
    assert [(it["sessionUpdate"], it["content"]) for it in said] == [("tool_call", []), ("tool_call_update", SHOWN)]


def test_nothing_of_a_turn_is_remembered_after_its_end() -> None:
    lowering = Lowering("s", Client({}))
    said = updates_in(lowering.live(run(0)))
    assert said[-1]["status"] == "completed"
    assert said[-1]["content"] == SHOWN
    lowering.live([event_from({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"})])
    again = updates_in(lowering.live(run(0)[3:4]))
    assert again == []


def test_a_text_that_grows_for_long_is_not_said_more_often_than_it_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 2 is told each line once; version 1 has to be told all of them again."""
    now = [0.0]
    monkeypatch.setattr(lower.time, "monotonic", lambda: now[0])
    lowering, said, worth = Lowering("s", Client({})), 0, 0
    lowering.live(run(0)[:3])
    for n in range(8_000):
        now[0] += 0.02
        line = b64encode(b"line %d of a long output\n" % n).decode()
        chunk = event_from({"sessionUpdate": "terminal_output_chunk", "terminalId": "term0", "data": line})
        told = [lowering.live([chunk])]
        if lowering.has_more and n % 25 == 0:
            told.append(lowering.rest())
        said += sum(map(len, told))
        worth += len(chunk.body) + 90
    assert said < 2 * worth
    now[0] += lower.LATEST_SECONDS
    assert "line 7999 of" in updates_in(lowering.rest())[-1]["content"][0]["content"]["text"]
    assert not lowering.has_more
