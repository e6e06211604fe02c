"""Whatever a store holds can be read: what makes no sense is shown as it is, and nothing else is lost (P11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.tests.support.updates import FEW
from holdfast.document.session_document import DocumentWriter
from holdfast.format import event_in, fold, lines_of, stored
from holdfast.model import RULES, event_from
from holdfast.redaction.redact import Redactor
from holdfast.surface.v1.client import Client
from holdfast.surface.v1.lower import Lowering as Lowering1
from holdfast.surface.v2.lower import Lowering as Lowering2
from holdfast.view.entries import view_entry
from holdfast.view.live import LiveView
from holdfast.view.summary import summary_line
from holdfast_app.chat.paint import Painter
from holdfast_app.export.markdown import MarkdownWriter
from holdfast_app.export.page import PageWriter

if TYPE_CHECKING:
    from holdfast.model import Update

scalars: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", "completed", "text", "YQ==", "*", "https://x"]
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "content", "data", "terminalId", "path", "newText", "uri", "entries"]),
            inner | st.sampled_from(["text", "content", "diff", "terminal", "image", "items", "resource"]),
            max_size=3,
        )
    ),
    max_leaves=6,
)
KINDS = [*RULES, "_holdfast/damaged", "_holdfast/hand_over", "_holdfast/turn_end", "_mine"]
MEMBERS = sorted(
    {
        "content",
        "title",
        "status",
        "kind",
        "rawInput",
        "rawOutput",
        "locations",
        "output",
        "exitStatus",
        "plan",
        "state",
    }
    | {"error", "stopReason", "reason", "lines", "from", "to", "summary", "_meta", "data", "cost", "severity"}
    | {rule.key for rule in RULES.values() if rule.key}
)


def update(kind: str, members: Update) -> Update:
    return {"sessionUpdate": kind, **members}


nonsense = st.builds(update, st.sampled_from(KINDS), st.dictionaries(st.sampled_from(MEMBERS), values, max_size=4))


@settings(max_examples=4 * FEW, deadline=None)
@given(st.lists(nonsense, max_size=6), st.booleans())
@example([{"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": 5}], True)
@example([{"sessionUpdate": "agent_message", "messageId": "m", "content": {"type": "text"}}], True)
@example([{"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": "x"}], True)
@example([{"sessionUpdate": "plan_update", "plan": 5}], True)
@example([{"sessionUpdate": "tool_call_update", "toolCallId": "c", "kind": [], "status": {}, "title": "t"}], False)
def test_any_updates_can_be_folded_stored_and_read_again(updates: list[Update], complete: bool) -> None:
    history = fold([msgspec.json.encode(update) for update in updates], complete=complete)
    once = list(history.updates())
    again = fold([line.body for line in lines_of(history)], complete=complete)
    assert list(again.updates()) == once


@settings(max_examples=4 * FEW, deadline=None)
@given(st.lists(nonsense, max_size=6))
@example([{"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": 5, "locations": 5}])
@example([{"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": "x"}])
@example([{"sessionUpdate": "state_update", "state": "idle", "stopReason": {}, "error": "x"}])
def test_any_updates_can_be_shown_and_written(updates: list[Update]) -> None:
    history = fold([msgspec.json.encode(update) for update in updates])
    for entry in history:
        for writer in (MarkdownWriter(), PageWriter(), DocumentWriter()):
            assert writer.entry(Redactor().entry(entry)) + writer.closing(0)
    live, painter = LiveView(), Painter(40)
    for update in updates:
        assert summary_line(update)
        for block in live.feed(event_from(update)):
            painter.lines(block)
        painter.live(live.live(), 10)
    for block in (*live.finish(), *LiveView().replay(history)):
        painter.lines(block)


@pytest.mark.requirement("P11")
@settings(max_examples=4 * FEW, deadline=None)
@given(st.lists(nonsense, max_size=6))
@example([{"sessionUpdate": "plan_update", "plan": {"planId": "p", "type": "items", "entries": 5}}])
@example([{"sessionUpdate": "plan_update", "plan": 5}])
@example([{"sessionUpdate": "terminal_update", "terminalId": "t", "output": {"data": 5}}])
@example([{"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [{"type": "terminal"}]}])
def test_any_stored_updates_can_be_sent_to_clients_of_either_version(updates: list[Update]) -> None:
    message = {
        "sessionUpdate": "agent_message",
        "messageId": "last",
        "content": [{"type": "text", "text": "still here"}],
    }
    lines = [stored(update) for update in (*updates, message)]
    for lowering in (Lowering1("s", Client({})), Lowering2("s")):
        sent = b"".join(lowering.past(b"\n".join(lines))).splitlines()
        said = [msgspec.json.decode(line)["params"]["update"] for line in sent]
        assert "still here" in str(said)


@pytest.mark.requirement("P11")
def test_a_version_1_client_reads_where_a_part_of_the_history_makes_no_sense() -> None:
    plan = {"sessionUpdate": "plan_update", "plan": {"planId": "p", "type": "items", "entries": 5}}
    damaged = {"sessionUpdate": "_holdfast/damaged", "lines": 3, "reason": "The checksum is wrong"}
    sent = b"".join(Lowering1("s", Client({})).past(b"\n".join(map(stored, (plan, damaged)))))
    said = [msgspec.json.decode(line)["params"]["update"] for line in sent.splitlines()]
    assert [each["content"]["text"] for each in said] == [
        "An entry of this session cannot be read.",
        "3 entries of this session cannot be read.",
    ]
    assert said[0]["messageId"] != said[1]["messageId"]


@settings(max_examples=FEW, deadline=None)
@given(st.binary(max_size=40).filter(lambda line: b"\n" not in line) | values.map(msgspec.json.encode))
@example(b"")
@example(b"5")
@example(b'{"sessionUpdate":5}')
@example(b'{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"te')
@example(b'{"sessionUpdate":"_mine","x":"\xff"}')
def test_a_line_that_holds_no_update_becomes_an_entry_that_says_so(line: bytes) -> None:
    event = event_in(line)
    if event.kind == "_holdfast/damaged":
        (entry,) = fold([line])
        view = view_entry(entry)
        assert view.role == "note" and view.title == "Damaged: 1 line of the history cannot be read"
        assert view.parts[0].text
