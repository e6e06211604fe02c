"""Options and commands in version 2's words: those of the events. What agents leave out of them is added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import InvalidParams

if TYPE_CHECKING:
    from holdfast.model import Update


def lower_options(update: Update) -> list[Update]:
    """Return the options for an answer."""
    return update["configOptions"]


def lower_commands(update: Update) -> list[Update]:
    """Return the commands for an answer."""
    return update["availableCommands"]


def lift_commands(commands: list[Any]) -> list[Update]:
    """Return the commands of an agent with their types and those of their inputs, which some leave out (crow does).

    Raises `InvalidParams` for what cannot be any.
    """
    return [_lift_command(command) for command in commands]


def _lift_command(value: Any) -> Update:
    command = cast("Update", value) if isinstance(value, dict) else {}
    if not isinstance(command.get("name"), str):
        raise InvalidParams("`availableCommands` must be made of objects, each with a string as `name`")
    lifted: Update = {"type": "command", **command}
    if isinstance(command.get("input"), dict):
        lifted["input"] = {"type": "text", **command["input"]}
    return lifted
