"""Options, modes, models and commands in version 1's words, lowered and lifted: three views of one thing (D4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import InvalidParams

if TYPE_CHECKING:
    from holdfast.model import Update
    from holdfast.surface.v1.client import Client


def lower_options(update: Update, client: Client) -> list[Update]:
    """Return the options of a `config_option_update`; switches only for a client that knows them (D3)."""
    return [_option(option) for option in _configured(update) if option.get("type") != "boolean" or client.switches]


def _option(option: Update) -> Update:
    lowered = {name: value for name, value in option.items() if name != "configId"}
    lowered["id"] = option["configId"]
    if "options" in option:
        lowered["options"] = [_choice(choice) for choice in option["options"]]
    return lowered


def _choice(choice: Update) -> Update:
    if "groupId" not in choice:
        return choice
    return {"group": choice["groupId"], **{name: value for name, value in choice.items() if name != "groupId"}}


def modes(update: Update) -> Update | None:
    """Return the option of category `mode` as modes."""
    if (option := _in_category(update, "mode")) is None:
        return None
    available = [{"id": choice.pop("value"), **choice} for choice in _choices(option)]
    return {"currentModeId": option["currentValue"], "availableModes": available}


def current_mode(update: Update) -> str | None:
    """Return the mode that is set, if there are modes."""
    option = _in_category(update, "mode")
    return None if option is None else option["currentValue"]


def models(update: Update) -> Update | None:
    """Return the option of category `model` as models."""
    if (option := _in_category(update, "model")) is None:
        return None
    available = [{"modelId": choice.pop("value"), **choice} for choice in _choices(option)]
    return {"currentModelId": option["currentValue"], "availableModels": available}


def configuration(update: Update, client: Client) -> Update:
    """Return all three views for an answer; `configOptions` only where there are any (D3)."""
    views: Update = {"modes": modes(update), "models": models(update), "configOptions": lower_options(update, client)}
    return {name: view for name, view in views.items() if view}


def option_in(update: Update, category: str) -> str | None:
    """Return the id of the option that is shown as modes or models."""
    option = _in_category(update, category)
    return None if option is None else option["configId"]


def lower_commands(update: Update) -> list[Update]:
    """Return the commands of an `available_commands_update`."""
    return [_command(command) for command in update.get("availableCommands") or ()]


def _command(command: Update) -> Update:
    lowered = {name: value for name, value in command.items() if name != "type"}
    if isinstance(command.get("input"), dict):
        lowered["input"] = {"hint": "", **{name: value for name, value in command["input"].items() if name != "type"}}
    return lowered


def _in_category(update: Update, category: str) -> Update | None:
    selects = (option for option in _configured(update) if option.get("type") == "select")
    return next((option for option in selects if option.get("category") == category), None)


def _configured(update: Update) -> list[Update]:
    return update.get("configOptions") or []


def _choices(option: Update) -> list[dict[str, Any]]:
    flat: list[dict[str, Any]] = []
    for listed in option["options"]:
        flat += [dict(choice) for choice in listed["options"]] if "groupId" in listed else [dict(listed)]
    return flat


# The other way


def lift_options(options: Any) -> list[Update]:
    """Parse the options of an agent; raise `InvalidParams` for what cannot be any."""
    return [_lift_option(option) for option in _objects(options, "configOptions", "id")]


def _lift_option(option: Update) -> Update:
    lifted = {"configId": option["id"], **{name: value for name, value in option.items() if name != "id"}}
    if isinstance(option.get("options"), list):
        lifted["options"] = [_lift_choice(choice) for choice in _objects(option["options"], "options")]
    return lifted


def _lift_choice(choice: Update) -> Update:
    if "group" not in choice:
        return choice
    return {"groupId": choice["group"], **{name: value for name, value in choice.items() if name != "group"}}


def lift_commands(commands: Any) -> list[Update]:
    """Parse the commands of an agent; raise `InvalidParams` for what cannot be any."""
    return [_lift_command(command) for command in _objects(commands, "availableCommands", "name")]


def _lift_command(command: Update) -> Update:
    lifted: Update = {"type": "command", **command}
    if isinstance(command.get("input"), dict):
        lifted["input"] = {"type": "text", **command["input"]}
    return lifted


def option_of_modes(modes: Any) -> Update | None:
    """Return modes as an option, if there are any."""
    return _option_of(modes, "mode", "Mode", "currentModeId", "availableModes", "id")


def option_of_models(models: Any) -> Update | None:
    """Return models as an option, if there are any."""
    return _option_of(models, "model", "Model", "currentModelId", "availableModels", "modelId")


def _option_of(view: Any, category: str, name: str, current: str, available: str, key: str) -> Update | None:
    if not isinstance(view, dict) or not isinstance(value := cast("Update", view).get(current), str):
        return None
    offered = _objects(cast("Update", view).get(available), available, key)
    choices = [{"value": one[key], **{name: other for name, other in one.items() if name != key}} for one in offered]
    about = {"configId": category, "name": name, "category": category, "type": "select"}
    return {**about, "currentValue": value, "options": choices}


def _objects(value: Any, name: str, *required: str) -> list[Update]:
    if not isinstance(value, list):
        raise InvalidParams(f"`{name}` must be a list")
    for item in cast("list[Any]", value):
        if not isinstance(item, dict) or not all(isinstance(cast("Update", item).get(key), str) for key in required):
            raise InvalidParams(f"`{name}` must be made of objects, each with {' and '.join(required) or 'members'}")
    return cast("list[Update]", value)
