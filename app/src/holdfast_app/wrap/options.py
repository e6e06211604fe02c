"""The options of a wrapped agent, as the engine knows options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.model import Choice, ChoiceGroup, Option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.model import OptionValue, Update


def options_from(update: Update) -> tuple[tuple[Option, ...], dict[str, OptionValue]]:
    """Return the options of a `config_option_update`, and their values. What cannot be set is left out."""
    options: list[Option] = []
    values: dict[str, OptionValue] = {}
    for told in _objects(update.get("configOptions")):
        option = _option(told)
        if option is not None and option.id not in values:
            options.append(option)
            values[option.id] = option.default
    return tuple(options), values


def _option(told: Update) -> Option | None:
    option_id, value = told.get("configId"), told.get("currentValue")
    name = told.get("name")
    if not isinstance(option_id, str):
        return None
    about: dict[str, Any] = {
        "category": _text(told.get("category")),
        "description": _text(told.get("description")),
    }
    label = name if isinstance(name, str) else option_id
    if told.get("type") == "boolean":
        return Option(option_id, label, value is True, **about)
    choices = _choices(told.get("options"))
    if not isinstance(value, str) or not choices:
        return None
    option = Option(option_id, label, value, choices, **about)
    if option.accepts(value):
        return option
    # Agents exist whose current value is not among those they offer (hermes takes any mode).
    if isinstance(choices[-1], ChoiceGroup):
        own = ChoiceGroup("current", "Current", (Choice(value, value),))
        return Option(option_id, label, value, cast("Any", (*choices, own)), **about)
    return Option(option_id, label, value, cast("Any", (*choices, Choice(value, value))), **about)


def _choices(told: Any) -> tuple[Choice, ...] | tuple[ChoiceGroup, ...]:
    listed = list(_objects(told))
    if any("groupId" in choice for choice in listed):
        groups = [
            ChoiceGroup(str(group["groupId"]), str(group.get("name") or group["groupId"]), _flat(group.get("options")))
            for group in listed
            if "groupId" in group
        ]
        if loose := _flat([choice for choice in listed if "groupId" not in choice]):
            groups.append(ChoiceGroup("", "", loose))
        return tuple(groups)
    return _flat(listed)


def _flat(told: Any) -> tuple[Choice, ...]:
    return tuple(
        Choice(choice["value"], str(choice.get("name") or choice["value"]), _text(choice.get("description")))
        for choice in _objects(told)
        if isinstance(choice.get("value"), str)
    )


def _objects(value: Any) -> Iterable[Update]:
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return (cast("Update", item) for item in listed if isinstance(item, dict))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
