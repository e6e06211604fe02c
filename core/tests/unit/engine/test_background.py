"""What is left of work beside the turns when its process is gone."""

from __future__ import annotations

import pytest

from holdfast.engine.background import background_ends, background_keys
from holdfast.model import History, SessionState, event_from

pytestmark = pytest.mark.requirement("C13")

TERMINAL = {"type": "terminal", "terminalId": "t"}
CALL = {"type": "tool_call", "toolCallId": "c"}


def test_what_went_on_has_ended() -> None:
    ends = [event.update() for event in background_ends(SessionState(background=(TERMINAL, CALL)), History())]
    assert ends == [
        {"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": {}, "capabilities": None},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed", "capabilities": None},
    ]


def test_what_told_its_end_is_not_ended_again() -> None:
    said = History(complete=False)
    said.apply(event_from({"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": {"exitCode": 0}}))
    said.apply(event_from({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}))
    assert background_ends(SessionState(background=(TERMINAL, CALL)), said) == []


def test_what_another_version_has_listed_is_passed_over() -> None:
    strange = [{"type": "subagent", "sessionId": "s"}, {"type": "terminal"}, {"type": "tool_call", "toolCallId": 5}, {}]
    assert background_keys([*strange, CALL]) == {("tool_call_update", "c")}
    assert background_ends(SessionState(background=tuple(strange)), History()) == []
