"""Options: which values they take, and how they are told."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidParams
from holdfast.model import Choice, ChoiceGroup, Option, checked_value, options_update

UNITS = Option("units", "Units", "c", (Choice("c", "Celsius"), Choice("f", "Fahrenheit", "For some")))
MODEL = Option(
    "model",
    "Model",
    "small",
    (ChoiceGroup("a", "All", (Choice("small", "S"), Choice("big", "B"))), ChoiceGroup("n", "None", ())),
    "model",
    "Which one thinks",
)
LOUD = Option("loud", "Loud", default=False)
ALL = (UNITS, MODEL, LOUD)

pytestmark = pytest.mark.requirement("D1")


@pytest.mark.requirement("D2")
@pytest.mark.parametrize(
    ("option", "value"), [("units", "c"), ("units", "f"), ("model", "big"), ("loud", True), ("loud", False)]
)
def test_an_offered_value_is_taken(option: str, value: object) -> None:
    assert checked_value(ALL, option, value) == value


@pytest.mark.requirement("D2")
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("units", "k"), ("units", ""), ("units", None), ("units", True), ("units", ["c"]), ("units", {"c": 1}),
        ("model", "a"), ("model", "All"),
        ("loud", "true"), ("loud", 1), ("loud", 0), ("loud", None),
        ("nobody", "c"), ("", True),
    ],
)  # fmt: skip
def test_a_value_that_is_not_offered_or_an_option_that_is_not_there_is_refused(option: str, value: object) -> None:
    with pytest.raises(InvalidParams):
        checked_value(ALL, option, value)


@pytest.mark.requirement("D2")
def test_a_refusal_says_what_would_be_taken() -> None:
    with pytest.raises(InvalidParams, match="small, big"):
        checked_value(ALL, "model", "huge")
    with pytest.raises(InvalidParams, match="true, false"):
        checked_value(ALL, "loud", "yes")
    with pytest.raises(InvalidParams, match="units, model, loud"):
        checked_value(ALL, "nobody", "yes")
    with pytest.raises(InvalidParams, match="none"):
        checked_value((), "nobody", "yes")


def test_options_are_told_whole_and_in_order_with_their_values_or_defaults() -> None:
    assert options_update(ALL, {"units": "f", "gone": "x"}) == {
        "sessionUpdate": "config_option_update",
        "configOptions": [
            {
                "configId": "units",
                "name": "Units",
                "type": "select",
                "currentValue": "f",
                "options": [
                    {"value": "c", "name": "Celsius"},
                    {"value": "f", "name": "Fahrenheit", "description": "For some"},
                ],
            },
            {
                "configId": "model",
                "name": "Model",
                "type": "select",
                "currentValue": "small",
                "category": "model",
                "description": "Which one thinks",
                "options": [
                    {
                        "groupId": "a",
                        "name": "All",
                        "options": [{"value": "small", "name": "S"}, {"value": "big", "name": "B"}],
                    },
                    {"groupId": "n", "name": "None", "options": []},
                ],
            },
            {"configId": "loud", "name": "Loud", "type": "boolean", "currentValue": False},
        ],
    }


def test_a_value_that_is_false_is_not_taken_for_the_default() -> None:
    on = Option("on", "On", default=True)
    (told,) = options_update((on,), {"on": False})["configOptions"]
    assert told["currentValue"] is False
