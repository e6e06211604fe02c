"""Options, modes, models and commands in version 1's words, lowered and lifted: three views of one thing (D4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.errors import InvalidParams

if TYPE_CHECKING:
    from holdfast.model import Update
    from holdfast.surface.v1.client import Client


def lower_options(update: Update, client: Client) -> list[Update]:
    """Give the options of a `config_option_update` to a client; switches only to one that knows them (D3)."""
    return [_option(it) for it in update["configOptions"] if it["type"] != "boolean" or client.switches]


def _option(option: Update) -> Update:
    lowered = {name: value for name, value in option.items() if name != "configId"}
    lowered["id"] = option["configId"]
    if "options" in option:
        lowered["options"] = [_choice(it) for it in option["options"]]
    return lowered


def _choice(it: Update) -> Update:
    if "groupId" not in it:
        return it
    return {"group": it["groupId"], **{name: value for name, value in it.items() if name != "groupId"}}


def modes(update: Update) -> Update | None:
    """Give the option of category `mode` as modes."""
    if (option := _in_category(update, "mode")) is None:
        return None
    available = [{"id": it.pop("value"), **it} for it in _choices(option)]
    return {"currentModeId": option["currentValue"], "availableModes": available}


def current_mode(update: Update) -> str | None:
    """Return the mode that is set, if there are modes."""
    option = _in_category(update, "mode")
    return None if option is None else option["currentValue"]


def models(update: Update) -> Update | None:
    """Give the option of category `model` as models."""
    if (option := _in_category(update, "model")) is None:
        return None
    available = [{"modelId": it.pop("value"), **it} for it in _choices(option)]
    return {"currentModelId": option["currentValue"], "availableModels": available}


def configuration(update: Update, client: Client) -> Update:
    """Give all three views for an answer; `configOptions` only where there are any (D3)."""
    views: Update = {"modes": modes(update), "models": models(update), "configOptions": lower_options(update, client)}
    return {name: view for name, view in views.items() if view}


def option_in(update: Update, category: str) -> str | None:
    """Find the id of the option that is shown as modes or models."""
    option = _in_category(update, category)
    return None if option is None else option["configId"]


def lower_commands(update: Update) -> list[Update]:
    """Give the commands of an `available_commands_update`."""
    return [_command(it) for it in update["availableCommands"]]


def _command(it: Update) -> Update:
    lowered = {name: value for name, value in it.items() if name != "type"}
    if isinstance(it.get("input"), dict):
        lowered["input"] = {"hint": "", **{name: value for name, value in it["input"].items() if name != "type"}}
    return lowered


def _in_category(update: Update, category: str) -> Update | None:
    found = (it for it in update["configOptions"] if it.get("category") == category and it["type"] == "select")
    return next(found, None)


def _choices(option: Update) -> list[dict[str, Any]]:
    flat: list[dict[str, Any]] = []
    for it in option["options"]:
        flat += [dict(choice) for choice in it["options"]] if "groupId" in it else [dict(it)]
    return flat


# The other way


def lift_options(options: Any) -> list[Update]:
    """Take the options of an agent; refuse what cannot be any."""
    return [_lift_option(it) for it in _objects(options, "configOptions", "id")]


def _lift_option(option: Update) -> Update:
    lifted = {"configId": option["id"], **{name: value for name, value in option.items() if name != "id"}}
    if isinstance(option.get("options"), list):
        lifted["options"] = [_lift_choice(it) for it in _objects(option["options"], "options")]
    return lifted


def _lift_choice(it: Update) -> Update:
    if "group" not in it:
        return it
    return {"groupId": it["group"], **{name: value for name, value in it.items() if name != "group"}}


def lift_commands(commands: Any) -> list[Update]:
    """Take the commands of an agent; refuse what cannot be any."""
    return [_lift_command(it) for it in _objects(commands, "availableCommands", "name")]


def _lift_command(it: Update) -> Update:
    lifted: Update = {"type": "command", **it}
    if isinstance(it.get("input"), dict):
        lifted["input"] = {"type": "text", **it["input"]}
    return lifted


def option_of_modes(modes: Any) -> Update | None:
    """Make an option of modes, if there are any."""
    return _option_of(modes, "mode", "Mode", "currentModeId", "availableModes", "id")


def option_of_models(models: Any) -> Update | None:
    """Make an option of models, if there are any."""
    return _option_of(models, "model", "Model", "currentModelId", "availableModels", "modelId")


def _option_of(view: Any, category: str, name: str, current: str, available: str, key: str) -> Update | None:
    if not isinstance(view, dict) or not isinstance(value := cast("Update", view).get(current), str):
        return None
    offered = _objects(cast("Update", view).get(available), available, key)
    choices = [{"value": it[key], **{name: other for name, other in it.items() if name != key}} for it in offered]
    about = {"configId": category, "name": name, "category": category, "type": "select"}
    return {**about, "currentValue": value, "options": choices}


def _objects(value: Any, name: str, *required: str) -> list[Update]:
    if not isinstance(value, list):
        raise InvalidParams(f"`{name}` must be a list")
    for it in cast("list[Any]", value):
        if not isinstance(it, dict) or not all(isinstance(cast("Update", it).get(key), str) for key in required):
            raise InvalidParams(f"`{name}` must be made of objects, each with {' and '.join(required) or 'members'}")
    return cast("list[Update]", value)
