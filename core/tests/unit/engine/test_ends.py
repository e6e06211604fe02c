"""How turns end, piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import UNSET

from holdfast.engine.engine import finished_part
from holdfast.engine.journal import closing_events, end_mark, keep_latest, sealed_lines
from holdfast.format import event_in
from holdfast.model import History, SessionState, StopReason, TurnEnd, event_from, text_event

if TYPE_CHECKING:
    from holdfast.model import Update


def said(*updates: Update, whole: bool = True) -> History:
    history = History(complete=whole)
    for update in updates:
        history.apply(event_from(update))
    return history


def call(key: str, **members: Any) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": key, **members}


def message(key: str, kind: str = "agent_message") -> Update:
    return {"sessionUpdate": kind, "messageId": key, "content": [{"type": "text", "text": key}]}


def terminal(key: str, **members: Any) -> Update:
    return {"sessionUpdate": "terminal_update", "terminalId": key, **members}


@pytest.mark.parametrize("status", ["pending", "in_progress", "paused", "_odd", None])
def test_a_call_that_is_not_over_is_closed(status: str | None) -> None:
    members = {} if status is None else {"status": status}
    (event,) = closing_events(said(call("c", title="T", **members)), status="failed", whole=True)
    assert event.update() == call("c", status="failed")


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_call_that_is_over_stays_as_it_is(status: str) -> None:
    assert closing_events(said(call("c", status=status)), status="failed", whole=True) == []


def test_a_terminal_is_closed_unless_it_has_exited() -> None:
    history = said(terminal("a"), terminal("b", exitStatus={"exitCode": 0}), terminal("c", exitStatus=None))
    closed = closing_events(history, status="failed", whole=True)
    assert [it.update() for it in closed] == [terminal("a", exitStatus={}), terminal("c", exitStatus={})]


def test_a_call_of_an_earlier_turn_is_closed_only_if_this_turn_says_how_it_is() -> None:
    updates = (call("named", title="T"), call("open", status="in_progress"), call("other", kind="read"))
    history = said(*updates, whole=False)
    assert [it.key for it in closing_events(history, status="failed", whole=False)] == ["named", "open"]


@pytest.mark.parametrize(
    ("reason", "error", "mark"),
    [
        ("end_turn", None, None),
        ("cancelled", None, {"reason": "cancelled"}),
        ("refusal", None, {"reason": "refusal"}),
        ("error", "It failed", {"reason": "error", "error": "It failed"}),
    ],
)
def test_only_a_bad_end_leaves_a_mark(reason: StopReason, error: str | None, mark: Update | None) -> None:
    marks = [it.update() for it in end_mark(TurnEnd(reason, error))]
    assert marks == ([] if mark is None else [{"sessionUpdate": "_holdfast/turn_end", **mark}])


def test_what_is_sealed_has_the_mark_last_and_counts_what_user_and_agent_said() -> None:
    history = said(
        message("u", "user_message"), message("a"), message("t", "agent_thought"), call("c", status="failed")
    )
    state = SessionState()
    lines, changes, messages = sealed_lines(history, end_mark(TurnEnd("cancelled")), state)
    kinds = [event_in(it.body).kind for it in lines]
    assert kinds == ["user_message", "agent_message", "agent_thought", "tool_call_update", "_holdfast/turn_end"]
    assert messages == 2
    assert changes.state is state and changes.title is UNSET


def test_what_a_turn_says_of_its_session_is_kept_by_kind_and_options_and_titles_are_not() -> None:
    state = SessionState()
    updates: list[Update] = [
        {"sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": {"amount": 2}},
        {"sessionUpdate": "usage_update", "used": 3, "size": 9},
        {"sessionUpdate": "config_option_update", "configOptions": []},
        {"sessionUpdate": "session_info_update", "title": "T"},
    ]
    for update in updates:
        keep_latest(state, update)
    assert state.latest.keys() == {"usage_update"}
    assert state.latest["usage_update"] == {
        "sessionUpdate": "usage_update", "used": 3, "size": 9, "cost": {"amount": 2},
    }  # fmt: skip
    assert state.title_by == "agent"
    state.title_by = "user"
    keep_latest(state, {"sessionUpdate": "session_info_update", "title": None})
    assert state.title_by == "user"


@pytest.mark.requirement("B15")
def test_a_running_turn_gives_what_stands_before_the_first_that_is_open() -> None:
    user, done, open_ = message("u", "user_message"), call("c", status="completed"), call("o", status="in_progress")

    def keys(*updates: Update, up_to: str | None = None) -> tuple[list[str], str | None]:
        entries, rest = finished_part(said(*updates), up_to)
        return [it.key for it in entries], rest

    assert keys() == ([], None)
    assert keys(user) == (["u"], None)
    assert keys(user, message("a")) == (["u"], None)
    assert keys(user, message("a"), done) == (["u", "a", "c"], None)
    assert keys(user, open_, done, message("a")) == (["u"], None)
    assert keys(user, terminal("t"), done) == (["u"], None)
    assert keys(user, terminal("t", exitStatus={}), done) == (["u", "t", "c"], None)
    assert keys(user, open_, message("a"), done, up_to="a") == (["u", "a"], None)
    assert keys(user, message("a"), up_to="elsewhere") == ([], "elsewhere")
    assert keys({"sessionUpdate": "_odd"}, up_to="1") == ([], "1")  # what has no id is not found by one


def test_a_growing_message_is_given_where_it_is_asked_for() -> None:
    history = History()
    for text in ("a", "b"):
        history.apply(text_event("agent_message_chunk", "m", text))
    entries, rest = finished_part(history, "m")
    assert [it.text() for it in entries] == ["ab"] and rest is None
