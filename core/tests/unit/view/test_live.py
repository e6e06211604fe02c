"""Events in, blocks out: what is finished when, and in which order."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.model import History, event_from, text_event
from holdfast.view.blocks import AgentContent, AgentText, Block, Call, Note, Plan, Prompt
from holdfast.view.live import LiveView

if TYPE_CHECKING:
    from collections.abc import Iterable


def see(view: LiveView, update: str, /, **members: Any) -> list[Block]:
    return list(view.feed(event_from({"sessionUpdate": update, **members})))


def say(view: LiveView, text: str, message: str = "m", kind: str = "agent_message_chunk") -> list[Block]:
    return list(view.feed(text_event(kind, message, text)))


def call(view: LiveView, key: str = "c", **members: Any) -> list[Block]:
    return see(view, "tool_call_update", toolCallId=key, **members)


def content(view: LiveView, text: str, key: str = "c") -> list[Block]:
    block = {"type": "content", "content": {"type": "text", "text": text}}
    return see(view, "tool_call_content_chunk", toolCallId=key, content=block)


def end(view: LiveView, reason: str = "end_turn") -> list[Block]:
    return see(view, "state_update", state="idle", stopReason=reason)


def said(blocks: Iterable[Block]) -> list[str]:
    return [block.part.text for block in blocks if isinstance(block, AgentText)]


def test_text_is_given_part_by_part_and_the_rest_is_live() -> None:
    view = LiveView()
    assert said(say(view, "One.\n\nTw")) == ["One."]
    assert said(view.live()) == ["Tw"]
    assert say(view, "o.") == []
    assert said(view.live()) == ["Two."]
    assert said(end(view)) == ["Two."]
    assert list(view.live()) == []


def test_a_thought_is_told_apart_and_ends_where_the_answer_begins() -> None:
    view = LiveView()
    assert say(view, "Hm.", "t", "agent_thought_chunk") == []
    (thought,) = say(view, "Yes.")
    assert isinstance(thought, AgentText) and thought.thought and thought.first
    (answer,) = end(view)
    assert isinstance(answer, AgentText) and not answer.thought and answer.first


def test_a_tool_call_is_live_until_it_ends_and_given_once() -> None:
    view = LiveView()
    assert call(view, title="Look", kind="read", status="in_progress", locations=[{"path": "/a", "line": 2}]) == []
    assert list(view.live()) == [Call("Look", "read", "in_progress", ("/a:2",))]
    assert content(view, "found") == []
    (live,) = view.live()
    assert isinstance(live, Call) and [part.text for part in live.parts] == ["found"]
    (done,) = call(view, status="completed")
    assert isinstance(done, Call) and done.status == "completed" and [part.text for part in done.parts] == ["found"]
    assert list(view.live()) == end(view) == []


def test_what_is_said_before_a_tool_call_is_given_before_it() -> None:
    view = LiveView()
    say(view, "I will look.")
    assert said(call(view, title="Look", status="in_progress")) == ["I will look."]


def test_a_tool_call_that_ends_while_the_agent_speaks_does_not_break_the_sentence() -> None:
    view = LiveView()
    call(view, title="Look", status="in_progress")
    assert say(view, "While it ") == []
    assert call(view, status="completed") == []
    assert say(view, "runs.") == []
    first, second = end(view)
    assert said([first]) == ["While it runs."]
    assert isinstance(second, Call) and second.status == "completed"


def test_tool_calls_side_by_side_are_given_as_they_end() -> None:
    view = LiveView()
    for key in "ab":
        call(view, key, title=key, status="in_progress")
    assert [block.title for block in call(view, "b", status="failed") if isinstance(block, Call)] == ["b"]
    assert [block.title for block in call(view, "a", status="completed") if isinstance(block, Call)] == ["a"]


def test_a_tool_call_that_has_more_to_show_after_its_end_is_given_again() -> None:
    view = LiveView()
    call(view, title="Look", status="completed")
    assert call(view, status="completed") == []
    (again,) = content(view, "late")
    assert isinstance(again, Call) and [part.text for part in again.parts] == ["late"]


def test_a_tool_call_that_never_ends_is_given_with_the_turn() -> None:
    view = LiveView()
    call(view, title="Look")
    (block, note) = end(view, "cancelled")
    assert block == Call("Look", "", "pending")
    assert note == Note("cancelled", tone="end")


def test_what_a_command_prints_is_shown_in_its_tool_call() -> None:
    view = LiveView()
    call(view, title="Run", status="in_progress")
    see(view, "tool_call_content_chunk", toolCallId="c", content={"type": "terminal", "terminalId": "t"})
    see(view, "terminal_update", terminalId="t", command="make")
    for n in range(1000):
        see(view, "terminal_output_chunk", terminalId="t", data=b64encode(b"\x1b[32mline %d\x1b[0m\r\n" % n).decode())
    (live,) = view.live()
    assert isinstance(live, Call) and live.parts[0].text.endswith("line 999") and "line 10\n" not in live.parts[0].text
    (done,) = call(view, status="completed")
    assert isinstance(done, Call)
    assert done.parts[0].text == "\n".join(f"line {n}" for n in range(1000))


def test_a_plan_is_live_until_it_is_carried_out_or_the_turn_ends() -> None:
    view = LiveView()

    def plan(*status: str) -> list[Block]:
        entries = [{"content": f"step {n}", "status": it, "priority": "low"} for n, it in enumerate(status)]
        return see(view, "plan_update", plan={"type": "items", "planId": "p", "entries": entries})

    assert plan("completed", "in_progress") == []
    (live,) = view.live()
    assert isinstance(live, Plan) and [part.label for part in live.parts] == ["completed", "in_progress"]
    (done,) = plan("completed", "completed")
    assert isinstance(done, Plan)
    assert end(view) == []
    assert plan("pending") == []
    assert [type(block) for block in end(view)] == [Plan]


def test_the_users_own_words_are_not_repeated_and_those_of_others_are_shown() -> None:
    view = LiveView()
    assert view.prompted("hello") == Prompt("hello")
    assert see(view, "user_message", messageId="u", content=[{"type": "text", "text": "hello"}]) == []
    assert say(view, "Hi.") == []
    assert say(view, "from another window", "v", "user_message_chunk")[0] == AgentText(said_part("Hi."), first=True)
    assert end(view) == [Prompt("from another window")]


def said_part(text: str) -> Any:
    (block,) = [*say(view := LiveView(), text), *view.finish()]
    assert isinstance(block, AgentText)
    return block.part


def test_a_message_that_is_told_whole_is_shown_as_far_as_it_is_new() -> None:
    view = LiveView()
    say(view, "One")
    assert see(view, "agent_message", messageId="m", content=[{"type": "text", "text": "One"}]) == []
    assert see(view, "agent_message", messageId="m", content=[{"type": "text", "text": "One two"}]) == []
    assert said(view.live()) == ["One two"]
    first, note = see(view, "agent_message", messageId="m", content=[{"type": "text", "text": "Other"}])
    assert said([first]) == ["One two"]
    assert isinstance(note, Note)
    assert said(end(view)) == ["Other"]


def test_what_is_no_text_is_shown_between_the_text() -> None:
    view = LiveView()
    say(view, "See: ")
    image = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    text, shown = see(view, "agent_message_chunk", messageId="m", content=image)
    assert said([text]) == ["See:"]
    assert isinstance(shown, AgentContent) and shown.part.kind == "image"


@pytest.mark.parametrize(
    ("reason", "tone"), [("cancelled", "end"), ("max_tokens", "warning"), ("refusal", "warning"), ("error", "error")]
)
def test_how_a_turn_ended_is_told_once(reason: str, tone: str) -> None:
    view = LiveView()
    (note,) = see(view, "_holdfast/turn_end", reason=reason)
    assert isinstance(note, Note) and note.tone == tone
    assert end(view, reason) == []
    (note,) = end(view, reason)
    assert isinstance(note, Note) and note.tone == tone


def test_what_the_data_of_an_error_repeats_is_not_told_twice() -> None:
    def told(data: Any) -> str:
        error = {"code": -32602, "message": "/home/ada is not yours", "data": data}
        (note,) = see(LiveView(), "state_update", state="idle", stopReason="error", error=error)
        assert isinstance(note, Note)
        return note.details

    assert told({"directory": "/home/ada"}) == told({"reason": "not yours"}) == "/home/ada is not yours"
    assert told({"directory": "/srv"}) == '/home/ada is not yours: {"directory": "/srv"}'
    assert told({"reason": "ask for it"}) == "/home/ada is not yours: ask for it"


def test_notices_and_compactions_are_told() -> None:
    view = LiveView()
    assert see(view, "notice", severity="error", title="Oh", description="no") == [Note("Oh", "no", "error")]
    assert see(view, "compaction_update", compactionId="k", status="in_progress") == []
    assert len(list(view.live())) == 1
    assert see(view, "compaction_update", compactionId="k", status="completed") == [
        Note("What was said so far was summed up")
    ]
    assert list(view.live()) == []


def test_what_is_not_known_is_left_out() -> None:
    view = LiveView()
    for kind in ("_something", "usage_update", "session_info_update", "available_commands_update", "state_update"):
        assert see(view, kind, state="running", used=1, size=2, availableCommands=[]) == []


def test_a_past_is_shown_in_its_order() -> None:
    history = History()
    for update in (
        {"sessionUpdate": "user_message", "messageId": "u", "content": [{"type": "text", "text": "do it"}]},
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": [{"content": "x"}]}},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Look", "status": "completed"},
        {"sessionUpdate": "agent_message", "messageId": "m", "content": [{"type": "text", "text": "Done.\n\nAll."}]},
        {"sessionUpdate": "_holdfast/turn_end", "reason": "interrupted"},
        {"sessionUpdate": "user_message", "messageId": "v", "content": [{"type": "text", "text": "again"}]},
    ):
        history.apply(event_from(update))
    blocks = list(LiveView().replay(history))
    assert [type(block) for block in blocks] == [Prompt, Plan, Call, AgentText, AgentText, Note, Prompt]


@pytest.mark.parametrize("running", [True, False])
def test_a_tool_call_that_runs_while_the_past_is_shown_is_shown_whole_when_it_ends(running: bool) -> None:
    history = History()
    for update in (
        {"sessionUpdate": "user_message", "messageId": "u", "content": [{"type": "text", "text": "do it"}]},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Look", "status": "in_progress"},
    ):
        history.apply(event_from(update))
    view = LiveView()
    past = list(view.replay(history, running=running))
    assert [type(block) for block in past] == ([Prompt] if running else [Prompt, Call])  # is it over? Nobody said so
    assert [type(block) for block in view.live()] == ([Call] if running else [])
    (ended,) = see(view, "tool_call_update", toolCallId="c", status="completed")
    assert isinstance(ended, Call) and (ended.title, ended.status) == ("Look", "completed")
    assert end(view) == []


def test_a_very_long_answer_takes_time_in_proportion() -> None:
    view = LiveView()
    count = 0
    for n in range(150_000):  # as if 600 kB came in small pieces; in quadratic time this would not end
        count += len(say(view, "word" if n % 20 else "\n"))
        if n % 50 == 0:
            list(view.live())
    for _ in range(50_000):
        count += len(say(view, "word"))
    count += len(end(view))
    assert count > 30


@pytest.mark.requirement("P11", "F2")
def test_damage_and_a_hand_over_are_seen_where_they_are() -> None:
    view = LiveView()
    say(view, "Before.")
    before, note = see(view, "_holdfast/damaged", lines=2, reason="The checksum is wrong")
    assert said([before]) == ["Before."]
    assert note == Note("Damaged: 2 lines of the history cannot be read", "The checksum is wrong", "warning")
    (note,) = see(view, "_holdfast/hand_over", **{"from": "weather", "to": "code"})
    assert note == Note("The session was handed over from weather to code", tone="end")


def state(view: LiveView, name: str, *items: tuple[str, str]) -> list[Block]:
    ids = {"terminal": "terminalId", "tool_call": "toolCallId"}
    background = [{"type": kind, ids[kind]: key} for kind, key in items]
    more = {"stopReason": "end_turn"} if name == "idle" else {}
    return see(view, "state_update", state=name, background=background, **more)


def calls(blocks: Iterable[Block]) -> list[tuple[str, str, list[str]]]:
    found = [block for block in blocks if isinstance(block, Call)]
    return [(call.title, call.status, [part.text for part in call.parts]) for call in found]


def output(view: LiveView, text: bytes, terminal: str = "t") -> list[Block]:
    return see(view, "terminal_output_chunk", terminalId=terminal, data=b64encode(text).decode())


@pytest.mark.requirement("C13")
@pytest.mark.parametrize("reported", [True, False])
def test_a_call_that_ends_in_a_later_turn_has_the_title_it_began_with(reported: bool) -> None:
    view = LiveView()
    items = [("tool_call", "c")] if reported else []
    call(view, title="Grow", status="in_progress")
    state(view, "running", *items)
    at_the_end = calls(state(view, "idle", *items))
    assert at_the_end == ([] if reported else [("Grow", "in_progress", [])])  # what goes on is live instead
    assert calls(view.live()) == ([("Grow", "in_progress", [])] if reported else [])
    say(view, "Something else.", "n")
    state(view, "idle", *items)
    content(view, "grown")
    assert calls(call(view, status="completed")) == [("Grow", "completed", ["grown"])]
    assert state(view, "idle") == [] and calls(view.live()) == []


@pytest.mark.requirement("C13")
def test_a_command_that_outlives_its_call_is_live_until_it_ends_and_shown_whole_then() -> None:
    view = LiveView()
    call(view, title="Serve", status="in_progress")
    see(view, "terminal_update", terminalId="t", command="npm run dev")
    see(view, "tool_call_content_chunk", toolCallId="c", content={"type": "terminal", "terminalId": "t"})
    state(view, "running", ("terminal", "t"))
    assert calls(call(view, status="completed")) == [("Serve", "completed", [])]
    assert calls(state(view, "idle", ("terminal", "t"))) == []
    for text in (b"one\n", b"two\n"):
        assert output(view, text) == []
    assert calls(view.live()) == calls(view.going_on()) == [("Serve", "in_progress", ["one\ntwo"])]
    (ended,) = see(view, "terminal_update", terminalId="t", exitStatus={"exitCode": 3})
    assert calls([ended]) == [("Serve", "failed", ["one\ntwo"])]
    assert isinstance(ended, Call) and ended.exit_status == "exit status 3"
    assert state(view, "idle") == [] and calls(view.live()) == []


@pytest.mark.requirement("C13")
def test_what_a_call_prints_after_its_end_again_and_again_is_live_and_given_with_the_next_turn() -> None:
    view = LiveView()

    def prints(*lines: str) -> list[Block]:
        text = "\n".join(("```", *lines, "```"))
        return call(view, content=[{"type": "content", "content": {"type": "text", "text": text}}])

    call(view, title="Serve", status="completed")
    end(view)
    assert prints("one") == prints("one", "two") == []
    assert calls(view.live()) == [("Serve", "completed", ["one\ntwo"])]  # and no fence
    ((title, status, (text,)),) = calls(end(view))
    assert (title, status, text.split()) == ("Serve", "completed", ["one", "two"])
    assert calls(view.live()) == [] == end(view)
    call(view, "d", title="Run", status="completed")
    one, two, three = (calls(content(view, text, "d")) for text in ("a", "b", "c"))
    assert (len(one), two, three) == (1, [], [])
    assert calls(end(view)) == [("Run", "completed", ["a", "b", "c"])]


def test_a_call_of_the_same_id_in_a_later_turn_is_another_one() -> None:
    view = LiveView()
    call(view, "1", title="Look", kind="read", status="completed")
    end(view)
    assert calls(call(view, "1", title="Write", status="in_progress")) == []
    assert calls(view.live()) == [("Write", "in_progress", [])]
    assert calls(call(view, "1", status="completed")) == [("Write", "completed", [])]


def test_of_a_past_a_command_is_shown_with_what_it_printed_and_how_it_ended() -> None:
    history = History()
    shown = [{"type": "terminal", "terminalId": "t"}]
    printed = {"data": b64encode(b"ran\n").decode()}
    for update in (
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c",
            "title": "Run",
            "status": "completed",
            "content": shown,
        },
        {"sessionUpdate": "terminal_update", "terminalId": "t", "output": printed, "exitStatus": {"exitCode": 3}},
    ):
        history.apply(event_from(update))
    (block,) = LiveView().replay(history)
    assert isinstance(block, Call) and block.exit_status == "exit status 3"
    assert calls([block]) == [("Run", "failed", ["ran"])]


@pytest.mark.requirement("C13")
def test_what_goes_on_in_the_background_of_a_session_that_is_restored_is_live() -> None:
    history = History()
    shown = [{"type": "terminal", "terminalId": "t"}]
    for update in (
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c",
            "title": "Serve",
            "status": "completed",
            "content": shown,
        },
        {"sessionUpdate": "terminal_update", "terminalId": "t", "output": {"data": b64encode(b"up\n").decode()}},
    ):
        history.apply(event_from(update))
    view = LiveView()
    background = {"t": {"type": "terminal"}, "u": {"type": "terminal"}}
    assert calls(view.replay(history, background=background)) == [("Serve", "completed", ["up"])]
    output(view, b"more\n")
    see(view, "terminal_update", terminalId="u", command="make watch")
    assert calls(view.live()) == [("Serve", "in_progress", ["up\nmore"]), ("make watch", "in_progress", [])]
    assert calls(see(view, "terminal_update", terminalId="t", exitStatus={})) == [("Serve", "completed", ["up\nmore"])]


@pytest.mark.requirement("C13")
def test_what_went_on_in_the_background_is_given_as_far_as_it_came_when_nothing_more_will_come() -> None:
    view = LiveView()
    call(view, title="Grow", status="in_progress")
    content(view, "a leaf")
    see(view, "terminal_update", terminalId="u", command="make watch")
    state(view, "running", ("tool_call", "c"), ("terminal", "u"))
    for _ in range(2):
        assert calls(state(view, "idle", ("tool_call", "c"), ("terminal", "u"))) == []
    output(view, b"up\n", "u")
    shown = [("Grow", "in_progress", ["a leaf"]), ("make watch", "in_progress", ["up"])]
    assert calls(view.live()) == shown == calls(view.finish())
    assert list(view.live()) == list(view.finish()) == []
