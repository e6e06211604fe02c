"""How each kind of event folds, and how entries are told again."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.format import fold
from holdfast.model import RULES, Fold, History, Terminal, event_from, text_event
from holdfast.view.transcript import markdown

if TYPE_CHECKING:
    from holdfast.model import Entry, Update

pytestmark = pytest.mark.requirement("B11", "C7")

MESSAGES = ("user_message", "agent_message", "agent_thought", "session_message")


def text(value: str) -> Update:
    return {"type": "text", "text": value}


def base64(value: bytes) -> str:
    return b64encode(value).decode()


def history_of(*updates: Update, complete: bool = True) -> History:
    history = History(complete=complete)
    for update in updates:
        history.apply(event_from(update))
    return history


def told(*updates: Update, complete: bool = True) -> list[Update]:
    """Fold, and tell again."""
    return list(history_of(*updates, complete=complete).updates())


def message(kind: str = "agent_message", /, key: str = "m", **members: Any) -> Update:
    return {"sessionUpdate": kind, "messageId": key, **members}


def chunk(said: str, kind: str = "agent_message", /, key: str = "m", **extra: Any) -> Update:
    return {"sessionUpdate": f"{kind}_chunk", "messageId": key, "content": text(said), **extra}


def call(key: str = "c", /, **members: Any) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": key, **members}


def terminal(key: str = "t", /, **members: Any) -> Update:
    return {"sessionUpdate": "terminal_update", "terminalId": key, **members}


def printed(data: bytes, **extra: Any) -> Update:
    return {"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": base64(data), **extra}


def plan(key: str = "p", /, *entries: str) -> Update:
    return {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": key, "entries": list(entries)}}


def removed(key: str = "p") -> Update:
    return {"sessionUpdate": "plan_removed", "planId": key}


def only(history: History) -> Entry:
    (entry,) = history
    return entry


# Messages


@pytest.mark.parametrize("kind", MESSAGES)
def test_chunks_of_plain_text_become_one_block(kind: str) -> None:
    assert told(chunk("Hel", kind), chunk("lo ", kind), chunk("\U0001f30d", kind)) == [
        message(kind, content=[text("Hello \U0001f30d")])
    ]


def test_a_text_event_folds_like_the_update_it_carries() -> None:
    history = History()
    for said in ("a", "b"):
        history.apply(text_event("agent_message_chunk", "m", said))
    assert list(history.updates()) == [message(content=[text("ab")])]


def test_two_thousand_chunks_are_one_entry_and_one_update() -> None:
    history = history_of(*[chunk(str(n % 10)) for n in range(2_000)])
    assert len(history) == 1
    assert [len(update["content"]) for update in history.updates()] == [1]


def test_what_is_not_plain_text_stands_between_texts() -> None:
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    updates = told(chunk("a"), message("agent_message_chunk", content=image), chunk("b"), chunk("c"))
    assert updates == [message(content=[text("a"), image, text("bc")])]


def test_a_text_that_says_more_than_its_text_is_not_merged() -> None:
    annotated = {**text("b"), "annotations": {"priority": 1}}
    updates = told(chunk("a"), message("agent_message_chunk", content=annotated), chunk("c"))
    assert updates == [message(content=[text("a"), annotated, text("c")])]


def test_messages_of_the_same_id_but_other_kinds_are_different_entries() -> None:
    assert told(chunk("a"), chunk("b", "agent_thought"), chunk("c")) == [
        message(content=[text("ac")]),
        message("agent_thought", content=[text("b")]),
    ]


def test_interleaved_messages_stand_where_they_first_appeared() -> None:
    updates = told(chunk("1", key="x"), chunk("2", key="y"), chunk("3", key="x"))
    assert [(update["messageId"], update["content"]) for update in updates] == [("x", [text("13")]), ("y", [text("2")])]


def test_a_whole_message_replaces_what_was_streamed_and_later_chunks_follow_it() -> None:
    assert told(chunk("draft"), message(content=[text("final")]), chunk("!")) == [message(content=[text("final!")])]


def test_a_message_without_content_changes_no_content() -> None:
    assert told(chunk("a"), message(_meta={"x": 1}), chunk("b")) == [message(_meta={"x": 1}, content=[text("ab")])]


@pytest.mark.parametrize("nothing", [None, []])
def test_content_that_is_null_or_empty_clears_it(nothing: object) -> None:
    history = history_of(chunk("a"), message(content=nothing))
    assert only(history).content() == []
    assert list(history.updates()) == [message(content=[])]


def test_an_entry_nothing_is_said_of_is_still_an_entry() -> None:
    assert told(message()) == [message()]


def test_an_empty_text_is_a_block_of_its_own_only_where_nothing_is_around_it() -> None:
    assert told(chunk("")) == [message(content=[text("")])]
    assert told(chunk("a"), chunk(""), chunk("b")) == [message(content=[text("ab")])]


# What comes along with chunks


def test_metadata_of_a_chunk_stay_with_the_chunk_and_do_not_patch_the_message() -> None:
    updates = [message(_meta={"x": 1}), chunk("a"), chunk("b", _meta={"x": 2, "y": None}), chunk("c")]
    assert told(*updates) == [
        message(_meta={"x": 1}, content=[]),
        chunk("a"),
        chunk("b", _meta={"x": 2, "y": None}),
        chunk("c"),
    ]


def test_members_of_a_chunk_that_nobody_knows_survive() -> None:
    updates = told(chunk("a", future={"deep": [None]}), chunk("b"), chunk("c"))
    assert updates == [message(content=[]), chunk("a", future={"deep": [None]}), chunk("bc")]


def test_text_is_read_as_one_whatever_came_along_with_its_pieces() -> None:
    image = {"type": "image", "mimeType": "image/png", "data": ""}
    pieces = [chunk("It is ", future=1), chunk("war", future=1), chunk("m", _meta={"x": 1}), chunk(".")]
    history = history_of(*pieces, message("agent_message_chunk", content=image), chunk("Bye", future=1))
    assert only(history).text() == "It is warm.\nBye"
    assert markdown(history) == "## Agent\n\n> It is warm.\n\n*Image: image/png*\n\n> Bye"


def test_null_metadata_of_a_chunk_are_as_good_as_none() -> None:
    assert told(chunk("a", _meta=None), chunk("b", _meta=None)) == [message(content=[text("ab")])]


def test_a_whole_message_takes_away_what_came_along_with_its_chunks() -> None:
    assert told(chunk("a", _meta={"x": 1}), message(content=[text("b")])) == [message(content=[text("b")])]


def test_what_came_along_with_a_piece_of_a_tool_call_survives() -> None:
    item = {"type": "content", "content": text("out")}
    piece = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": item, "_meta": {"x": 1}}
    assert told(call(title="Run"), piece) == [call(title="Run", content=[]), piece]


# Tool calls: members with three states


@pytest.mark.requirement("B11")
def test_a_tool_call_has_the_latest_of_each_member_and_keeps_what_was_not_named() -> None:
    updates = told(
        call(title="Read", kind="read", status="pending", rawInput={"path": "/a"}),
        call(status="in_progress", locations=[{"path": "/a"}]),
        call(status="completed", rawOutput={"lines": 3}),
    )
    assert updates == [
        call(
            title="Read",
            kind="read",
            status="completed",
            rawInput={"path": "/a"},
            locations=[{"path": "/a"}],
            rawOutput={"lines": 3},
        )
    ]


@pytest.mark.parametrize("member", ["title", "kind", "status", "locations", "rawInput", "rawOutput", "futureMember"])
def test_null_clears_a_member_and_nothing_else(member: str) -> None:
    before: dict[str, Any] = {"title": "T", "kind": "read", "status": "failed", "locations": [], "rawInput": 1}
    before |= {"rawOutput": {"a": None}, "futureMember": 7}
    (update,) = told(call(**before), call(**{member: None}))
    assert update == call(**{name: value for name, value in before.items() if name != member})


def test_a_member_that_was_cleared_can_be_set_again() -> None:
    assert told(call(title="a"), call(title=None), call(title="b")) == [call(title="b")]


def test_null_inside_a_value_is_part_of_the_value() -> None:
    assert told(call(rawInput={"a": None})) == [call(rawInput={"a": None})]


def test_pieces_of_a_tool_call_are_appended_and_a_whole_content_replaces_them() -> None:
    out = [{"type": "content", "content": text(letter)} for letter in "ab"]
    piece = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": out[1]}
    assert told(call(content=[out[0]]), piece) == [call(content=out)]
    assert told(call(content=[out[0]]), piece, call(content=[out[1]])) == [call(content=[out[1]])]


def test_neighbouring_texts_of_a_tool_call_stay_apart() -> None:
    out = [{"type": "content", "content": text(letter)} for letter in "ab"]
    assert told(call(content=out)) == [call(content=out)]


def test_a_piece_may_come_before_its_tool_call() -> None:
    item = {"type": "diff", "path": "/a", "oldText": None, "newText": "x"}
    piece = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": item}
    assert told(piece, call(title="Edit")) == [call(title="Edit", content=[item])]


# Metadata of entries, key by key


def test_metadata_of_an_entry_are_patched_key_by_key() -> None:
    updates = told(
        call(_meta={"a": {"deep": 1}, "b": 2, "c": 3}),
        call(_meta={"a": {"other": 1}, "b": None}),
        call(title="untouched"),
    )
    assert updates == [call(_meta={"a": {"other": 1}, "c": 3}, title="untouched")]


def test_null_metadata_clear_all_of_them() -> None:
    assert told(call(_meta={"a": 1}), call(_meta=None)) == [call()]
    assert told(call(_meta={"a": 1}), call(_meta=None), call(_meta={"b": 1})) == [call(_meta={"b": 1})]


# Plans


def test_a_plan_is_replaced_where_it_stands() -> None:
    assert told(plan("p", "a"), message(), plan("p", "b", "c")) == [plan("p", "b", "c"), message()]


def test_nothing_of_a_replaced_plan_is_left() -> None:
    assert told({**plan("p", "a"), "_meta": {"x": 1}}, plan("p", "b")) == [plan("p", "b")]


def test_a_removed_plan_is_gone_and_a_new_one_of_its_name_stands_behind() -> None:
    assert told(plan("p", "a"), plan("q"), removed("p")) == [plan("q")]
    assert told(plan("p", "a"), message(), removed("p"), plan("p", "b")) == [message(), plan("p", "b")]


def test_removing_a_plan_that_is_not_there_leaves_nothing() -> None:
    assert told(removed("p")) == []


def test_a_plan_of_a_kind_from_the_future_survives() -> None:
    strange = {"sessionUpdate": "plan_update", "plan": {"type": "_gantt", "planId": "p", "bars": [1, None]}, "x": None}
    assert told(strange) == [strange]


# Terminals


def test_pieces_of_output_become_one_whatever_their_padding() -> None:
    history = history_of(terminal(command="ls"), printed(b"a"), printed(b"\xff\x00"), printed(b""), printed(b"bcd"))
    assert list(history.updates()) == [terminal(command="ls", output={"data": base64(b"a\xff\x00bcd")})]
    entry = only(history)
    assert isinstance(entry, Terminal)
    assert entry.output() == b"a\xff\x00bcd"
    assert entry.text() == "", "what was printed is not something that was said"


def test_a_snapshot_replaces_the_output_and_later_pieces_follow_it() -> None:
    snapshot = terminal(output={"data": base64(b"whole")})
    assert told(printed(b"old"), snapshot, printed(b"!")) == [terminal(output={"data": base64(b"whole!")})]


def test_what_a_snapshot_says_besides_its_data_survives_until_the_next() -> None:
    first, second = {"data": base64(b"a"), "_meta": {"x": 1}, "more": None}, {"data": base64(b"b")}
    assert told(terminal(output=first)) == [terminal(output=first)]
    assert told(terminal(output=first), printed(b"b")) == [terminal(output={**first, "data": base64(b"ab")})]
    assert told(terminal(output=first), terminal(output=second)) == [terminal(output=second)]


def test_null_clears_the_output() -> None:
    assert told(printed(b"a"), terminal(output=None), printed(b"b")) == [terminal(output={"data": base64(b"b")})]


def test_a_terminal_keeps_its_other_members() -> None:
    updates = told(terminal(command="ls", cwd="/"), printed(b"a"), terminal(exitStatus={"exitCode": 0}, cwd=None))
    assert updates == [terminal(command="ls", exitStatus={"exitCode": 0}, output={"data": base64(b"a")})]


# The rest


def test_a_compaction_has_a_summary_that_may_be_streamed() -> None:
    head = {"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed"}
    piece = {"sessionUpdate": "compaction_summary_chunk", "compactionId": "k", "content": text("b")}
    assert told({**head, "summary": [text("a")]}, piece) == [{**head, "summary": [text("ab")]}]


def test_a_subagent_has_no_list_of_anything() -> None:
    update = {"sessionUpdate": "subagent_update", "sessionId": "s", "title": "T", "": [1], "content": 3}
    assert told(update, {"sessionUpdate": "subagent_update", "sessionId": "s", "title": None}) == [
        {name: value for name, value in update.items() if name != "title"}
    ]


def test_kinds_nobody_knows_survive_in_their_place_each_time_they_come() -> None:
    strange = {"sessionUpdate": "_mine/thing", "messageId": "m", "content": None, "_meta": {"a": None}}
    assert told(chunk("a"), strange, chunk("b"), strange) == [message(content=[text("ab")]), strange, strange]


@pytest.mark.parametrize("kind", [kind for kind, rule in RULES.items() if rule.fold is Fold.TRANSIENT])
def test_what_passes_leaves_no_entry_and_no_state(kind: str) -> None:
    history = history_of({"sessionUpdate": kind, "title": "x"})
    assert len(history) == 0
    assert history.state == {}


@pytest.mark.parametrize("kind", ["available_commands_update", "config_option_update"])
def test_of_things_about_the_session_the_latest_counts(kind: str) -> None:
    history = history_of({"sessionUpdate": kind, "a": 1}, {"sessionUpdate": kind, "b": 2})
    assert len(history) == 0
    assert history.state == {kind: {"sessionUpdate": kind, "b": 2}}


@pytest.mark.requirement("B17")
def test_information_about_the_session_is_patched() -> None:
    info = {"sessionUpdate": "session_info_update"}
    history = history_of(
        {**info, "title": "T", "_meta": {"a": 1, "b": 1}}, {**info, "updatedAt": "x", "_meta": {"b": 2}}
    )
    assert history.state == {"session_info_update": {**info, "title": "T", "updatedAt": "x", "_meta": {"a": 1, "b": 2}}}
    history.apply(event_from({**info, "title": None, "_meta": None}))
    assert history.state == {"session_info_update": {**info, "title": None, "updatedAt": "x", "_meta": None}}


def test_usage_without_a_cost_leaves_the_cost_that_was_reported() -> None:
    usage = {"sessionUpdate": "usage_update", "size": 100}
    cost = {"amount": 1, "currency": "EUR"}
    history = history_of({**usage, "used": 1, "cost": cost, "_meta": {"x": 1}}, {**usage, "used": 2})
    assert history.state == {"usage_update": {**usage, "used": 2, "cost": cost}}
    history.apply(event_from({**usage, "used": 3, "cost": None}))
    assert history.state == {"usage_update": {**usage, "used": 3, "cost": None}}


def test_an_entry_can_be_found_and_its_text_be_read() -> None:
    items = [{"type": "content", "content": text("out")}, {"type": "diff", "path": "/a"}]
    history = history_of(message(content=[text("a"), {"type": "image"}, text("b")]), call(content=items))
    said, done = history.get("agent_message", "m"), history.get("tool_call_update", "c")
    assert said is not None
    assert said.text() == "a\nb"
    assert done is not None
    assert done.text() == "out"
    assert history.get("agent_message", "nobody") is None


def test_encoded_lines_fold_as_updates_do() -> None:
    updates = [chunk("a"), call(title="x"), chunk("b")]
    assert list(fold(event_from(update).body for update in updates).updates()) == told(*updates)


# Histories that begin in the middle


def test_what_was_appended_to_an_unseen_entry_is_given_back_as_something_to_append() -> None:
    assert told(chunk("a"), chunk("b"), complete=False) == [chunk("ab")]
    assert told(printed(b"a"), printed(b"b"), complete=False) == [printed(b"ab")]


def test_members_and_pieces_of_an_unseen_entry_are_given_back_apart() -> None:
    item = {"type": "content", "content": text("out")}
    piece = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": item}
    members = call(kind="read", status="completed")
    # What is appended comes before the end: who hears of that may forget the rest.
    assert told(members, piece, complete=False) == [call(kind="read"), piece, call(status="completed")]


def test_an_entry_that_was_told_whole_is_given_back_whole() -> None:
    assert told(chunk("x"), message(content=[text("a")]), chunk("b"), complete=False) == [message(content=[text("ab")])]


def test_what_is_cleared_in_an_unseen_entry_is_given_back_as_cleared() -> None:
    assert told(call(title=None, _meta={"a": None, "b": 1}), complete=False) == [
        call(title=None, _meta={"a": None, "b": 1})
    ]
    assert told(call(content=None), complete=False) == [call(content=[])]


def test_metadata_that_were_cleared_and_set_again_are_given_back_as_both() -> None:
    updates = [call(_meta=None), call(_meta={"b": 1, "c": None})]
    assert told(*updates, complete=False) == [call(_meta=None), call(_meta={"b": 1})]
    assert told(call(_meta={"a": 1}), *told(*updates, complete=False)) == [call(_meta={"b": 1})]


def test_a_plan_removed_here_may_have_been_made_before() -> None:
    assert told(removed("p"), complete=False) == [removed("p")]
    assert told(plan("p", "a"), removed("p"), complete=False) == [removed("p")]
    assert told(removed("p"), plan("p", "a"), complete=False) == [removed("p"), plan("p", "a")]
