"""Whether what agent code wants stored is a JSON value, and if not, which part of it."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from holdfast.errors import UsageError

DEEPEST = 20
"""What holds itself is not followed further."""


def check_json(name: str, value: object) -> None:
    """Raise `UsageError` where a value cannot be written as JSON; it names the part that cannot, as ``state['a']``."""
    if not _is_json(value):
        raise UsageError(
            f"{_fault(name, value, DEEPEST)}; keep strings, numbers, booleans, None, lists and dicts in it"
        )


def _fault(name: str, value: object, depth: int) -> str:
    if depth and isinstance(value, dict | list | tuple):
        parts = (
            cast("dict[Any, Any]", value).items() if isinstance(value, dict) else enumerate(cast("list[Any]", value))
        )
        for key, part in parts:
            if not _is_json(part):
                return _fault(f"{name}[{key!r}]", part, depth - 1)
        return f"{name} has keys that are no strings"
    return (
        f"{name} is a {type(value).__name__}, which is no JSON value"
        if depth
        else f"{name} is too deep, or holds itself"
    )


def _is_json(value: object) -> bool:
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
