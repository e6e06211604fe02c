"""Options of a session. Modes and models are options too, told apart by their category (D1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from holdfast.errors import InvalidParams
from holdfast.model.events import text_without_lone_surrogates
from holdfast.model.near_names import choice_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.model.events import Update

OptionValue: TypeAlias = str | bool


def _replace_lone_surrogates(described: msgspec.Struct) -> None:
    for name in described.__struct_fields__:
        text: object = getattr(described, name)
        if isinstance(text, str) and (clean := text_without_lone_surrogates(text)) is not text:
            msgspec.structs.force_setattr(described, name, clean)


class Choice(msgspec.Struct, frozen=True):
    """One value of a select option.

    Attributes:
        value: its name for programs.
        name: its name for people.
        description: what it does, for people to read.

    """

    value: str
    name: str
    description: str | None = None

    def __post_init__(self) -> None:
        """Take texts whatever is in them (A2)."""
        _replace_lone_surrogates(self)


class ChoiceGroup(msgspec.Struct, frozen=True):
    """Choices under a heading.

    Attributes:
        id: its name for programs.
        name: the heading.
        choices: what is under it.

    """

    id: str
    name: str
    choices: tuple[Choice, ...]

    def __post_init__(self) -> None:
        """Take texts whatever is in them (A2)."""
        _replace_lone_surrogates(self)


class Option(msgspec.Struct, frozen=True):
    """Something the user can set for a session. One without choices is a switch: true or false.

    Attributes:
        id: its name for programs.
        name: its name for people.
        default: the value that holds until the user sets another.
        choices: the values it can have, perhaps in groups.
        category: what it is about: ``mode``, ``model``, ``thought_level``.
        description: what it does, for people to read.

    """

    id: str
    name: str
    default: OptionValue
    choices: tuple[Choice, ...] | tuple[ChoiceGroup, ...] = ()
    category: str | None = None
    description: str | None = None

    def __post_init__(self) -> None:
        """Take texts whatever is in them (A2)."""
        _replace_lone_surrogates(self)

    @property
    def is_switch(self) -> bool:
        """Whether it is a switch."""
        return isinstance(self.default, bool)

    def values(self) -> Iterator[str]:
        """Iterate over every value it can have.

        Yields:
            The values; none for a switch.

        """
        for choice in self.choices:
            if isinstance(choice, Choice):
                yield choice.value
            else:
                yield from (inner.value for inner in choice.choices)

    def name_of(self, value: OptionValue) -> str:
        """Return what people call a value.

        Args:
            value: the value.

        Returns:
            Its name, or the value itself where it has none.

        """
        for choice in self.choices:
            for inner in (choice,) if isinstance(choice, Choice) else choice.choices:
                if inner.value == value:
                    return inner.name
        return str(value)

    def accepts(self, value: object) -> bool:
        """Return whether it can have a value.

        Args:
            value: anything.

        Returns:
            Whether it can.

        """
        return isinstance(value, bool) if self.is_switch else value in tuple(self.values())


def options_update(options: tuple[Option, ...], values: Mapping[str, OptionValue]) -> Update:
    """Return the update that tells all options and their values."""
    return {
        "sessionUpdate": "config_option_update",
        "configOptions": [_described(option, values.get(option.id, option.default)) for option in options],
    }


def _described(option: Option, value: OptionValue) -> Update:
    described: Update = {"configId": option.id, "name": option.name, "type": "boolean", "currentValue": value}
    if not option.is_switch:
        described["type"] = "select"
        described["options"] = [_described_choice(choice) for choice in option.choices]
    if option.category is not None:
        described["category"] = option.category
    if option.description is not None:
        described["description"] = option.description
    return described


def _described_choice(choice: Choice | ChoiceGroup) -> Update:
    if isinstance(choice, ChoiceGroup):
        inner = [_described_choice(each) for each in choice.choices]
        return {"groupId": choice.id, "name": choice.name, "options": inner}
    described: Update = {"value": choice.value, "name": choice.name}
    if choice.description is not None:
        described["description"] = choice.description
    return described


def no_such_option(options: tuple[Option, ...], option_id: str) -> str:
    """Return what is wrong with the id of an option that was not offered."""
    known = (option.id for option in options)
    return f"There is no option {option_id!r}{choice_of(option_id, known, are='there are:')}"


def checked_value(options: tuple[Option, ...], option_id: str, value: object) -> OptionValue:
    """Return a value that is to be set; raise `InvalidParams` for one that was not offered (D2)."""
    option = next((option for option in options if option.id == option_id), None)
    if option is None:
        raise InvalidParams(no_such_option(options, option_id))
    if isinstance(value, str):
        value = text_without_lone_surrogates(value)
    if not option.accepts(value):
        if option.is_switch:
            raise InvalidParams(f"Option {option_id!r} cannot be {value!r}; it can be: true, false")
        if option.category in ("mode", "model"):
            there_are = choice_of(value, option.values(), are="there are:")
            raise InvalidParams(f"There is no {option.category} {value!r}{there_are}")
        can_be = choice_of(value, option.values(), are="it can be:")
        raise InvalidParams(f"Option {option_id!r} cannot be {value!r}{can_be}")
    assert isinstance(value, str | bool)
    return value
