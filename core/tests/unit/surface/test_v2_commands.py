"""Commands of version 2 agents: what they leave out is added, and nothing else is changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.errors import InvalidParams
from holdfast.surface.v2.lift import Lifting

PLAN: dict[str, Any] = {"name": "plan", "description": "Plan"}
WHOLE: dict[str, Any] = {"type": "_own", **PLAN, "input": {"type": "_form", "hint": "x"}, "_meta": {"a": 1}}


def lifted(*commands: object) -> list[Any]:
    update = {"sessionUpdate": "available_commands_update", "availableCommands": list(commands)}
    [event] = Lifting().lift(msgspec.json.encode(update))
    return msgspec.json.decode(event.body)["availableCommands"]


def test_types_that_are_missing_are_added_and_others_stay() -> None:
    assert lifted(PLAN, {**PLAN, "input": {"hint": "what"}}, WHOLE, {**PLAN, "input": None}) == [
        {"type": "command", **PLAN},
        {"type": "command", **PLAN, "input": {"type": "text", "hint": "what"}},
        WHOLE,
        {"type": "command", **PLAN, "input": None},
    ]
    [event] = Lifting().lift_configuration({"availableCommands": [PLAN]})
    assert msgspec.json.decode(event.body)["availableCommands"] == [{"type": "command", **PLAN}]


@pytest.mark.parametrize("command", [7, None, {"type": "command"}, {"name": 1}])
def test_what_is_no_command_is_refused(command: object) -> None:
    with pytest.raises(InvalidParams):
        lifted(command)
