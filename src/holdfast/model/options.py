"""Options of a session. Modes and models are options too, told apart by their category (D1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from holdfast.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.model.events import Update

OptionValue: TypeAlias = str | bool


class Choice(msgspec.Struct, frozen=True):
    """One value of a select option."""

    value: str
    name: str
    description: str | None = None


class ChoiceGroup(msgspec.Struct, frozen=True):
    """Choices under a heading."""

    id: str
    name: str
    choices: tuple[Choice, ...]


class Option(msgspec.Struct, frozen=True):
    """Something the user can set for a session; without choices it is a switch, on or off."""

    id: str
    name: str
    default: OptionValue
    choices: tuple[Choice, ...] | tuple[ChoiceGroup, ...] = ()
    category: str | None = None
    description: str | None = None

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off."""
        return isinstance(self.default, bool)

    def values(self) -> Iterator[str]:
        """Give every value it can have."""
        for it in self.choices:
            if isinstance(it, Choice):
                yield it.value
            else:
                yield from (choice.value for choice in it.choices)

    def accepts(self, value: object) -> bool:
        """Say whether it can have that value."""
        return isinstance(value, bool) if self.is_switch else value in tuple(self.values())


def options_update(options: tuple[Option, ...], values: Mapping[str, OptionValue]) -> Update:
    """Tell all options and their values, as an update."""
    return {
        "sessionUpdate": "config_option_update",
        "configOptions": [_described(it, values.get(it.id, it.default)) for it in options],
    }


def _described(option: Option, value: OptionValue) -> Update:
    about: Update = {"configId": option.id, "name": option.name, "type": "boolean", "currentValue": value}
    if not option.is_switch:
        about["type"] = "select"
        about["options"] = [_described_choice(it) for it in option.choices]
    if option.category is not None:
        about["category"] = option.category
    if option.description is not None:
        about["description"] = option.description
    return about


def _described_choice(it: Choice | ChoiceGroup) -> Update:
    if isinstance(it, ChoiceGroup):
        return {"groupId": it.id, "name": it.name, "options": [_described_choice(choice) for choice in it.choices]}
    about: Update = {"value": it.value, "name": it.name}
    if it.description is not None:
        about["description"] = it.description
    return about


def checked_value(options: tuple[Option, ...], option_id: str, value: object) -> OptionValue:
    """Check a value somebody wants to set; refuse what was not offered (D2)."""
    option = next((it for it in options if it.id == option_id), None)
    if option is None:
        known = ", ".join(it.id for it in options) or "none"
        raise InvalidParams(f"There is no option {option_id!r}; there are: {known}")
    if not option.accepts(value):
        offered = "true, false" if option.is_switch else ", ".join(option.values())
        raise InvalidParams(f"Option {option_id!r} cannot be {value!r}; it can be: {offered}")
    assert isinstance(value, str | bool)
    return value
