"""An update in one line, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.view.summary import summary_line

if TYPE_CHECKING:
    from holdfast.model import Update


def text(words: str) -> Update:
    return {"type": "text", "text": words}


def call(**members: Any) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": "c", **members}


def message(kind: str, *blocks: Update) -> Update:
    return {"sessionUpdate": kind, "messageId": kind, "content": list(blocks)}


@pytest.mark.parametrize(
    ("update", "line"),
    [
        (message("agent_message", text("a\nb"), text("c")), "agent_message: a b c"),
        ({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text("")}, "agent_message_chunk"),
        (call(title="Read", status="completed"), "tool_call_update: Read, completed"),
        (call(content=[{"type": "content", "content": text("21")}]), "tool_call_update: c, 21"),
        ({"sessionUpdate": "state_update", "state": "running"}, "state_update: running"),
        ({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}, "state_update: idle (end_turn)"),
        ({"sessionUpdate": "usage_update", "used": 1, "size": 2}, "usage_update: 1 of 2"),
        (
            {"sessionUpdate": "plan_update", "plan": {"entries": [{"content": "Rest", "status": "completed"}]}},
            "plan_update: Rest (completed)",
        ),
        ({"sessionUpdate": "terminal_update", "terminalId": "t", "command": "ls"}, "terminal_update: ls"),
        ({"sessionUpdate": "session_info_update", "title": "A day"}, "session_info_update: A day"),
        (
            {"sessionUpdate": "config_option_update", "configOptions": [{"configId": "mode", "currentValue": "a"}, 7]},
            "config_option_update: mode = a, = None",
        ),
        (
            {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "help"}]},
            "available_commands_update: /help",
        ),
        (message("user_message", text("\x1b[31mred\x07")), "user_message: ␛[31mred␇"),
        (message("user_message", text("x" * 500)), f"user_message: {'x' * 185}…"),
    ],
)
def test_an_update_can_be_printed(update: Update, line: str) -> None:
    assert summary_line(update) == line
