"""What an agent knows of a conversation, found out from what it replays: pure functions (G5)."""

from __future__ import annotations

import pytest

from holdfast.model import Event, History, event_from
from holdfast_app.wrap.compare import Turn, compared, split_turns
from holdfast_app.wrap.record import AgentRecord

pytestmark = pytest.mark.requirement("G5")


def says(kind: str, key: str, text: str) -> Event:
    content = {"type": "text", "text": text}
    return event_from({"sessionUpdate": f"{kind}_message_chunk", "messageId": key, "content": content})


def talk(*words: str, prefix: str = "m") -> list[Event]:
    """Return a conversation: the user speaks first, then both by turns."""
    return [says("user" if at % 2 == 0 else "agent", f"{prefix}{at}", text) for at, text in enumerate(words)]


def turns_of(events: list[Event]) -> list[Turn]:
    history = History()
    for event in events:
        history.apply(event)
    return split_turns(history)


OURS = talk("one", "First.", "two", "Second.", "three", "Third.")
KNOWN = AgentRecord(session="s", knows="m4")


def missing(replayed: list[Event] | None, record: AgentRecord = KNOWN, ours: list[Event] | None = None) -> list[str]:
    return [turn.id for turn in compared(turns_of(ours or OURS), record, replayed).missing]


def test_a_replay_of_everything_lacks_nothing() -> None:
    found = compared(turns_of(OURS), KNOWN, talk("one", "First.", "two", "Second.", "three", "Third.", prefix="x"))
    assert (list(found.missing), list(found.surplus), found.knows_nothing) == ([], [], False)


def test_white_space_reminders_and_melted_messages_make_no_difference() -> None:
    melted = talk("<system-reminder>x</system-reminder> one\n\ttwo\nthree", "First. Second. Third.")
    assert missing(melted) == []


def test_the_end_that_a_replay_lacks_is_missing() -> None:
    assert missing(talk("one", "First.", "two", "Second.")) == ["m4"]
    assert missing(talk("one", "First.")) == ["m2", "m4"]


def test_a_beginning_that_a_replay_lacks_is_not() -> None:
    assert missing(talk("two", "Second.", "three", "Third.")) == []


def test_nothing_or_another_conversation_is_known_as_such() -> None:
    for replayed in ([], talk("something", "else")):
        assert compared(turns_of(OURS), KNOWN, replayed).knows_nothing


def test_after_a_resume_the_torn_turns_are_missing() -> None:
    assert missing(None) == []
    assert missing(None, AgentRecord(session="s", knows="m2")) == ["m4"]
    assert missing(None, AgentRecord(session="s")) == ["m0", "m2", "m4"]


def test_what_was_told_again_before_a_torn_turn_is_not_missing() -> None:
    assert missing(None, AgentRecord(session="s", seeded="m4", since="m4")) == ["m4"]


def test_a_torn_answer_that_the_replay_shows_is_not_missing() -> None:
    torn = AgentRecord(session="s", knows="m2")
    assert missing(talk("one", "First.", "two", "Second.", "three", "Third. And more."), torn) == []
    assert missing(talk("one", "First.", "two", "Second.", "three"), torn) == ["m4"]


def test_an_agent_that_replays_no_users_and_remembers_is_marked() -> None:
    answers = [event for event in OURS if event.kind.startswith("agent")]
    found = compared(turns_of(OURS), KNOWN, answers)
    assert (found.without_users, found.knows_nothing, list(found.missing)) == (True, False, [])
    torn = compared(turns_of(OURS), AgentRecord(session="s", knows="m2"), answers[:2])
    assert [turn.id for turn in torn.missing] == ["m4"]


def test_what_happened_without_us_is_surplus() -> None:
    found = compared(turns_of(OURS), KNOWN, [*OURS, *talk("four", "Fourth.", prefix="n")])
    assert [event.key for event in found.surplus] == ["n0", "n1"]
    assert found.surplus_turn == "n0"


def test_injected_messages_of_the_user_are_no_surplus() -> None:
    injected = [*OURS[:5], says("user", "x", "[Request interrupted by user]"), *OURS[5:]]
    assert list(compared(turns_of(OURS), KNOWN, injected).surplus) == []
    at_the_end = [*OURS, says("user", "x", "[Request interrupted by user]")]
    assert list(compared(turns_of(OURS), KNOWN, at_the_end).surplus) == []


def test_a_prompt_without_words_is_not_looked_for() -> None:
    image = event_from(
        {
            "sessionUpdate": "user_message",
            "messageId": "i",
            "content": [{"type": "image", "data": "", "mimeType": "image/png"}],
        }
    )
    assert missing([], AgentRecord(session="s", knows="i"), [image, says("agent", "a", "A cat.")]) == []


def test_a_session_of_which_we_have_nothing_is_all_surplus() -> None:
    found = compared([], AgentRecord(session="s"), talk("one", "First."))
    assert [event.key for event in found.surplus] == ["m0", "m1"]
