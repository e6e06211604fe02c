"""Whether the answer to a form fits the form's schema (C9).

A form's schema is an object of simple fields: texts, numbers, switches and lists to choose from. What a later protocol
adds, and patterns, which may take for ever to match, are not looked at.
"""

from __future__ import annotations

from typing import Any, cast

from holdfast.model.events import is_object

Schema = dict[str, Any]


def form_fits(schema: object, content: dict[str, Any] | None) -> bool:
    """Return whether the content of a form has what is required, and in each field what the schema allows.

    A field that is null was not filled in.
    """
    if not isinstance(schema, dict):
        return True
    fields: Any = cast("Schema", schema).get("properties")
    required: Any = cast("Schema", schema).get("required")
    filled = {name: value for name, value in (content or {}).items() if value is not None}
    if isinstance(required, list) and not filled.keys() >= set(cast("list[str]", required)):
        return False
    known: Schema = cast("Schema", fields) if isinstance(fields, dict) else {}
    return all(_fits(known.get(name), value) for name, value in filled.items())


def _fits(field: object, value: object) -> bool:
    if not isinstance(field, dict):
        return True
    field = cast("Schema", field)
    match field.get("type"):
        case "string":
            return isinstance(value, str) and _within(len(value), field, "Length") and _is_offered(value, field)
        case "integer":
            return _is_number(value) and float(cast("float", value)).is_integer() and _in_range(value, field)
        case "number":
            return _is_number(value) and _in_range(value, field)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            items = cast("list[Any]", value) if isinstance(value, list) else None
            allowed: Any = field.get("items") or {}
            return (
                items is not None and _within(len(items), field, "Items") and all(_fits_item(allowed, i) for i in items)
            )
        case _:
            return True


def _fits_item(allowed: Schema, item: object) -> bool:
    return isinstance(item, str) and _is_offered(item, allowed)


def _is_offered(value: str, field: Schema) -> bool:
    """Return whether a text is one of those a field lists; any is where it lists none."""
    offered: list[Any] = []
    lists: list[list[Any]] = [field[name] for name in ("enum", "oneOf", "anyOf") if isinstance(field.get(name), list)]
    for listed in lists:
        offered += (option.get("const") if is_object(option) else option for option in listed)
    return not lists or value in offered


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _in_range(value: Any, field: Schema) -> bool:
    least, most = field.get("minimum"), field.get("maximum")
    return (not _is_number(least) or value >= least) and (not _is_number(most) or value <= most)


def _within(size: int, field: Schema, unit: str) -> bool:
    return _in_range(size, {"minimum": field.get(f"min{unit}"), "maximum": field.get(f"max{unit}")})
