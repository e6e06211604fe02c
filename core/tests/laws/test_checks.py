"""What an agent says is refused, or can be folded, sealed, recovered and read again: there is nothing in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.tests.support.schemas import invalid
from core.tests.support.updates import updates as schema_like
from holdfast.engine.journal import closing_events, recovered, sealed_lines
from holdfast.errors import UsageError
from holdfast.format import event_in, fold, lines_of
from holdfast.model import RULES, History, SessionInfo, SessionState, check_update, checked_event, event_from
from holdfast.model.kinds import LOG_ONLY
from holdfast.store import Record, UnsealedTurn

if TYPE_CHECKING:
    from holdfast.model import Update

odd: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-1, 1) | st.sampled_from(["", "x", "text", "YQ==", "*", "ü", "completed"])
)
blocks = st.dictionaries(
    st.sampled_from(["type", "text", "content", "data", "_meta"]),
    st.sampled_from(["text", "content", "terminal", "image"])
    | odd
    | st.fixed_dictionaries({"type": st.sampled_from(["text", "image"]), "text": odd})
    | st.lists(odd, max_size=2),
    max_size=3,
)
values = odd | blocks | st.lists(blocks | odd, max_size=3)
KEYS = sorted({rule.key for rule in RULES.values() if rule.key})
members = st.dictionaries(
    st.sampled_from(
        ["title", "status", "kind", "content", "summary", "output", "data", "exitStatus", "_meta", "odd", *KEYS]
    ),
    values,
    max_size=4,
)


@st.composite
def updates(draw: st.DrawFn) -> Update:
    kind = draw(st.sampled_from([*RULES, "_unknown"]) | odd)
    update: Any = {"sessionUpdate": kind, **draw(members)}
    rule = RULES.get(kind) if isinstance(kind, str) else None
    if rule is not None and draw(st.integers(0, 9)):  # mostly right, so that mistakes have somewhere to hide
        if kind == "plan_update":
            update["plan"] = draw(st.sampled_from([{"planId": "p"}, {"planId": ""}, {}]) | values)
        elif rule.key:
            update[rule.key] = draw(st.sampled_from(["a", "b", ""]))
        if rule.item and draw(st.booleans()):
            update[rule.item] = "YQ==" if rule.item == "data" else {"type": "text", "text": "t"}
    return update


@settings(deadline=None, max_examples=300)
@given(st.lists(updates(), max_size=8), st.booleans())
def test_what_is_not_refused_can_be_folded_sealed_recovered_and_read(said: list[Update], complete: bool) -> None:
    history = History(complete=complete)
    kept: list[bytes] = []
    for update in said:
        try:
            check_update(update)
        except UsageError:
            continue
        event = event_from(update)
        history.apply(event)
        kept.append(event.body)
    for event in closing_events(history, status="failed", whole=complete):
        history.apply(event)
    lines, _, _ = sealed_lines(history, [], SessionState())
    assert lines == lines_of(history)
    again = fold([line.body for line in lines], complete=complete)
    assert list(again.updates()) == list(history.updates())

    info = SessionInfo("s", "/", (), None, 0, 0, archived=False, messages=0)
    state = SessionState()
    prompt = event_from({"sessionUpdate": "user_message", "messageId": "msg_prompt", "content": []})
    broken = UnsealedTurn([prompt.body, *kept])
    seal = recovered(broken, Record(info, state, 0, 1, 0), begins_entries=complete)
    assert [line.body for line in seal.lines[1:-1]] == [line.body for line in lines] and not seal.private
    assert event_in(seal.lines[-1].body).update() == {"sessionUpdate": "_holdfast/turn_end", "reason": "interrupted"}
    assert state.interrupted and seal.changes.state is state


@settings(deadline=None, max_examples=150)
@given(st.lists(updates(), min_size=1, max_size=8))
def test_a_log_with_anything_in_it_can_be_recovered(said: list[Update]) -> None:
    info = SessionInfo("s", "/", (), None, 0, 0, archived=False, messages=0)
    prompt: Update = {"sessionUpdate": "user_message", "messageId": "msg_prompt", "content": []}
    broken = UnsealedTurn([msgspec.json.encode(update) for update in (prompt, *said)])
    seal = recovered(broken, Record(info, SessionState(), 0, 1, 0), begins_entries=True)
    assert event_in(seal.lines[-1].body).update()["reason"] == "interrupted"


PROMPT: Update = {"sessionUpdate": "user_message", "messageId": "msg_prompt", "content": []}


@pytest.mark.requirement("P11")
@pytest.mark.parametrize(
    "line",
    [
        b'{"sessionUpdate":"_holdfast/permission","subject":5,"allow":"yes"}',
        b'{"sessionUpdate":"_holdfast/permission"}',
        b'{"sessionUpdate":"_holdfast/private"}',
        b'{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"ty',
        b"[]",
    ],
)
def test_what_makes_no_sense_in_a_log_is_skipped_with_a_mark(line: bytes) -> None:
    info = SessionInfo("s", "/", (), None, 0, 0, archived=False, messages=0)
    said = msgspec.json.encode(
        {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "hello"}}
    )
    state = SessionState()
    broken = UnsealedTurn([msgspec.json.encode(PROMPT), line, line, said])
    seal = recovered(broken, Record(info, state, 0, 1, 0), begins_entries=True)
    updates = [event_in(stored.body).update() for stored in seal.lines]
    kinds = ["user_message", "_holdfast/damaged", "agent_message", "_holdfast/turn_end"]
    assert [update["sessionUpdate"] for update in updates] == kinds
    assert updates[1]["lines"] == 2 and not seal.private and not state.permissions


@pytest.mark.requirement("P13")
@pytest.mark.parametrize("kind", sorted(LOG_ONLY))
def test_what_only_our_logs_may_hold_is_refused_wherever_it_comes_from(kind: str) -> None:
    update: Update = {"sessionUpdate": kind, "subject": "rocket", "allow": True, "data": {}}
    for check in (check_update, checked_event):
        with pytest.raises(UsageError, match=kind):
            check(update)


@settings(deadline=None, max_examples=400)
@given(updates() | schema_like)
@example({"sessionUpdate": "user_message", "title": False, "messageId": "a"})
def test_what_agent_code_may_say_is_valid_in_the_newest_version_and_can_be_folded(update: Update) -> None:
    try:
        event = checked_event(update)
    except UsageError:
        return
    check_update(event.update())
    assert not invalid(2, "SessionUpdate", event.update(), stable=True)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(UsageError, match="tool_call_update: `toolCallId` must be a string"):
        check_update({"sessionUpdate": "tool_call_update"})
