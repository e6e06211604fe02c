"""The answer to a form counts only if it fits the form's schema."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model import form_fits

pytestmark = pytest.mark.requirement("C9")

TITLED = [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]

FIELDS: list[tuple[dict[str, Any], list[object], list[object]]] = [
    ({"type": "string"}, ["", "a"], [1, True, ["a"], {}]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "abc"], ["a", "abcd"]),
    ({"type": "string", "enum": ["S", "M"]}, ["S", "M"], ["L", ""]),
    ({"type": "string", "oneOf": TITLED}, ["s", "l"], ["Small"]),
    ({"type": "integer"}, [0, -3, 3.0], [3.5, "3", True, float("inf"), float("nan")]),
    ({"type": "integer", "minimum": 0, "maximum": 9}, [0, 9], [-1, 10]),
    ({"type": "number", "minimum": 0.5}, [0.5, 1], [0.4, "1", False]),
    ({"type": "boolean"}, [True, False], [0, "true"]),
    ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, [[], ["a", "b"]], ["a", ["c"], [1]]),
    (
        {"type": "array", "items": {"anyOf": TITLED}, "minItems": 1, "maxItems": 2},
        [["s"]],
        [[], ["s", "l", "s"], ["x"]],
    ),
    ({"type": "string", "minLength": None, "enum": None}, ["a"], [1]),
    ({"type": "_future"}, [1, "a"], []),
]


@pytest.mark.parametrize(("field", "good", "bad"), FIELDS, ids=lambda value: str(value)[:60])
def test_a_field_takes_what_its_schema_allows(field: dict[str, Any], good: list[object], bad: list[object]) -> None:
    schema = {"type": "object", "properties": {"x": field}}
    assert [value for value in good if not form_fits(schema, {"x": value})] == []
    assert [value for value in bad if form_fits(schema, {"x": value})] == []


def test_what_is_required_must_be_filled_in() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    assert form_fits(schema, {"a": "x"}) and form_fits(schema, {"a": "x", "b": None, "other": 1})
    assert not form_fits(schema, None)
    assert not form_fits(schema, {"b": "x"})
    assert not form_fits(schema, {"a": None})


def test_a_form_that_requires_nothing_may_stay_empty() -> None:
    assert form_fits({"type": "object", "properties": {"a": {"type": "string"}}}, None)
    assert form_fits(None, {"a": 1})
