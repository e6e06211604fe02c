"""What a client has missed, from the lines of a log alone."""

from __future__ import annotations

import pytest

from holdfast.engine.missed_events import ended_line, missed_events, opening_lines
from holdfast.model import Event, Position, event_from, text_event
from holdfast.store import KeptLog

pytestmark = pytest.mark.requirement("H4")

RUNNING = event_from({"sessionUpdate": "state_update", "state": "running"})


def asked(key: str) -> Event:
    return event_from({"sessionUpdate": "user_message", "messageId": key, "content": [{"type": "text", "text": key}]})


def log_of(*parts: bytes) -> KeptLog:
    return KeptLog(1, b"".join(parts).split(b"\n")[:-1])


def test_what_is_shown_as_a_log_begins_takes_positions_whether_it_is_stored_or_not() -> None:
    said = text_event("agent_message_chunk", "m", "hello")
    log = log_of(opening_lines(7, [asked("q"), RUNNING]), said.body + b"\n", ended_line(7, []))
    runs = missed_events([log], Position(7, 1, 0), Position(7, 1, 9))
    assert [(before.event, [event.key for event in run]) for before, run in runs] == [(0, ["q"]), (2, ["m"])]


def test_what_opened_a_log_for_a_turn_that_did_not_begin_is_not_shown() -> None:
    log = log_of(opening_lines(7, [asked("refused"), RUNNING]), opening_lines(7, [asked("q"), RUNNING]))
    runs = missed_events([log], Position(7, 1, 0), Position(7, 1, 9))
    assert [(before.event, [event.key for event in run]) for before, run in runs] == [(0, ["q"])]
