"""Options, modes, models and commands in version 1's words: three views of one thing (D4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    return {"group": it["groupId"], "name": it["name"], "options": it["options"]}


def modes(update: Update) -> Update | None:
    """Give the option of category `mode` as modes."""
    if (option := _in_category(update, "mode")) is None:
        return None
    available = [{"id": it.pop("value"), **it} for it in _choices(option)]
    return {"currentModeId": option["currentValue"], "availableModes": available}


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
        lowered["input"] = {"hint": it["input"].get("hint", "")}
    return lowered


def _in_category(update: Update, category: str) -> Update | None:
    found = (it for it in update["configOptions"] if it.get("category") == category and it["type"] == "select")
    return next(found, None)


def _choices(option: Update) -> list[dict[str, Any]]:
    flat: list[dict[str, Any]] = []
    for it in option["options"]:
        flat += [dict(choice) for choice in it["options"]] if "groupId" in it else [dict(it)]
    return flat
