"""Forms: a schema in, questions and values out."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast_app.chat.forms import FormField, form_fields


def field(required: bool = False, **schema: Any) -> FormField:
    params = {"requestedSchema": {"properties": {"it": schema}, "required": ["it"] if required else []}}
    (found,) = form_fields(params)
    return found


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, " Ann ", "Ann"),
        ({"type": "string"}, "", None),
        ({"type": "string", "default": "Bob"}, "", "Bob"),
        ({"type": "integer"}, "7", 7),
        ({"type": "number"}, "7.5", 7.5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"type": "boolean", "default": False}, "", False),
        ({"type": "string", "enum": ["S", "M"]}, "2", "M"),
        ({"type": "string", "enum": ["S", "M"]}, "S", "S"),
        ({"type": "string", "oneOf": [{"const": "r", "title": "Red"}]}, "red", "r"),
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}}, "1, c", ["a", "c"]),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}, "", None),
        ({}, "anything", "anything"),
    ],
)
def test_answers_are_read(schema: dict[str, Any], text: str, value: object) -> None:
    assert field(**schema).question().check(text) == ""
    assert field(**schema).read(text) == value


@pytest.mark.parametrize(
    ("schema", "text", "says"),
    [
        ({"type": "string", "required": True}, "", "needed"),
        ({"type": "integer"}, "7.5", "whole number"),
        ({"type": "number"}, "nan", "a number"),
        ({"type": "number"}, "1e999", "a number"),
        ({"type": "integer", "minimum": 0}, "-1", "at least 0"),
        ({"type": "number", "maximum": 1}, "2", "at most 1"),
        ({"type": "string", "minLength": 3}, "ab", "at least 3"),
        ({"type": "string", "maxLength": 3}, "abcd", "at most 3"),
        ({"type": "string", "enum": ["S", "M"]}, "XL", "not among them"),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}, "a,b", "at most 1"),
        ({"type": "boolean"}, "perhaps", "yes or no"),
    ],
)
def test_wrong_answers_are_told_what_is_wrong(schema: dict[str, Any], text: str, says: str) -> None:
    assert says in field(**schema).question().check(text)


def test_questions_say_what_is_asked() -> None:
    size = field(title="Size", description="of the shirt", type="string", enum=["S", "M"], default="M")
    assert size.question().label == "Size: of the shirt"
    assert size.question().hint == "Enter for M, Esc to decline"
    assert size.listed() == "1 S\n2 M"


@pytest.mark.parametrize(
    "params", [{}, {"requestedSchema": None}, {"requestedSchema": {"properties": []}}, {"requestedSchema": 7}]
)
def test_a_form_that_makes_no_sense_has_no_fields(params: dict[str, Any]) -> None:
    assert list(form_fields(params)) == []
