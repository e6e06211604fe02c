"""Whether what agent code wants stored is a JSON value, and if not, which part of it and what to write instead.

Only what comes back as it was counts: a set, a date or a tuple can be written as JSON too, and would be something else
in the next process.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, cast

import msgspec

from holdfast.errors import UsageError
from holdfast.model.events import without_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable

DEEPEST = 200
"""How deep lists and dicts may be in each other: what holds itself is not followed for ever."""

_LEAVES = frozenset({str, int, bool, type(None)})
_STRINGS = frozenset({str})

_INSTEAD = {
    "Enum": "write its .value",
    "tuple": "write list(…): a tuple would come back as a list",
    "set": "write list(…)",
    "frozenset": "write list(…)",
    "dict": "write dict(…): it would come back as a dict",
    "list": "write list(…): it would come back as a list",
    "bytes": "write text, as base64.b64encode(…).decode()",
    "bytearray": "write text, as base64.b64encode(…).decode()",
    "memoryview": "write text, as base64.b64encode(…).decode()",
    "date": "write .isoformat()",
    "time": "write .isoformat()",
    "timedelta": "write .total_seconds()",
    "Decimal": "write str(…)",
    "UUID": "write str(…)",
    "PurePath": "write str(…)",
    "str": "write str(…)",
    "int": "write int(…)",
    "float": "write float(…)",
    "Struct": "write msgspec.to_builtins(…)",
    "BaseModel": 'write .model_dump(mode="json")',
}
"""By the name of a class or of one it inherits from, so that none of them need be imported; the first counts."""


def check_json(name: str, value: object) -> bytes:
    """Return a value as JSON. A lone surrogate, half of a character, becomes U+FFFD.

    Args:
        name: what the author calls it, as ``session.state``.
        value: what is to be stored.

    Raises:
        UsageError: it is something else than a str, int, finite float, bool, None, list, or dict with string keys, or
            one of its parts is. The message names the part, as ``session.state['a']``, and what to write instead.

    """
    if (fault := _fault(value, DEEPEST)) is not None:
        raise UsageError(name + fault)
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(without_lone_surrogates(value))


def _fault(value: object, depth: int) -> str | None:
    """Return where and why it is no JSON value, as ``['a'] is a set, …``; None where it is one."""
    kind = type(value)
    if kind in _LEAVES:
        return None
    if kind is float:
        return None if isfinite(cast("float", value)) else f" is {value}, which JSON has no number for; write None"
    if kind is list:
        return _fault_inside(enumerate(cast("list[Any]", value)), depth)
    if kind is dict:
        members = cast("dict[Any, Any]", value)
        if not _STRINGS.issuperset(map(type, members)):
            key = next(key for key in members if type(key) is not str)
            return f" has the key {key!r}, which is no string; write str(…)"
        return _fault_inside(members.items(), depth)
    return f" is a {kind.__name__}, which is no JSON value; {_instead(kind)}"


def _fault_inside(parts: Iterable[tuple[Any, Any]], depth: int) -> str | None:
    if not depth:
        return " is too deep, or holds itself"
    for key, part in parts:
        # Most parts are leaves: a call for each would take most of the time.
        if type(part) not in _LEAVES and (fault := _fault(part, depth - 1)) is not None:
            return f"[{key!r}]{fault}"
    return None


def _instead(kind: type) -> str:
    if "__dataclass_fields__" in vars(kind):
        return "write dataclasses.asdict(…)"
    names = {base.__name__ for base in kind.__mro__}
    fitting = (instead for name, instead in _INSTEAD.items() if name in names)
    return next(fitting, "keep strings, numbers, booleans, None, lists and dicts in it")
