"""What agent code wants stored is a JSON value that comes back as it was, or is refused with what to write instead."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.model import check_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


class Point(NamedTuple):
    x: int


@dataclass
class Record:
    name: str


class Struct(msgspec.Struct):
    name: str


class Color(Enum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Mood(str, Enum):  # noqa: UP042  (as people wrote it before 3.11)
    GOOD = "good"


class Word(StrEnum):
    YES = "yes"


class Text(str):
    __slots__ = ()


@given(JSON)
def test_what_is_accepted_comes_back_as_it_was(value: Any) -> None:
    assert json.loads(check_json("state", value)) == value


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        ({1, 2}, "a set, which is no JSON value; write list(…)"),
        (frozenset({1}), "write list(…)"),
        ((1, 2), "a tuple, which is no JSON value; write list(…): a tuple would come back as a list"),
        (Point(1), "a tuple would come back as a list"),
        (b"x", "write text, as base64.b64encode(…).decode()"),
        (bytearray(b"x"), "write text, as base64"),
        (datetime(2026, 1, 1, tzinfo=UTC), "a datetime, which is no JSON value; write .isoformat()"),
        (date(2026, 1, 1), "write .isoformat()"),
        (time(12), "write .isoformat()"),
        (timedelta(1), "write .total_seconds()"),
        (Decimal("1.5"), "write str(…)"),
        (UUID(int=1), "write str(…)"),
        (Path("/"), "write str(…)"),
        (Color.RED, "write its .value"),
        (Size.BIG, "write its .value"),
        (Mood.GOOD, "write its .value"),
        (Word.YES, "write its .value"),
        (Text("x"), "write str(…)"),
        (Record("x"), "a Record, which is no JSON value; write dataclasses.asdict(…)"),
        (Struct("x"), "write msgspec.to_builtins(…)"),
        (defaultdict(int, a=1), "write dict(…): it would come back as a dict"),
        (OrderedDict({"a": 1}), "write dict(…)"),
        (object(), "keep strings, numbers, booleans, None, lists and dicts in it"),
        (1j, "a complex, which is no JSON value"),
        (float("nan"), "is nan, which JSON has no number for; write None"),
        (float("-inf"), "is -inf, which JSON has no number for"),
        ({1: 2}, "has the key 1, which is no string; write str(…)"),
        ({None: 2}, "has the key None"),
        ({Word.YES: 1}, "which is no string"),
    ],
)
def test_what_would_come_back_as_something_else_is_refused_wherever_it_is(value: Any, instead: str) -> None:
    for name, whole in (("", value), ("['a']", {"a": value}), ("['a'][1]['b']", {"a": [1, {"b": value}]})):
        with pytest.raises(UsageError) as refused:
            check_json("state", whole)
        assert str(refused.value).startswith(f"state{name} ") and instead in str(refused.value)


def test_what_holds_itself_is_too_deep() -> None:
    endless: list[Any] = []
    endless.append(endless)
    around: dict[str, Any] = {}
    around["again"] = [around]
    for value in (endless, around):
        with pytest.raises(UsageError, match="is too deep, or holds itself"):
            check_json("state", value)


def test_half_of_a_character_is_replaced() -> None:
    for value, stored in (("\ud800", "\ufffd"), (["\udfff"], ["\ufffd"]), ({"\ud800": 1}, {"\ufffd": 1})):
        assert msgspec.json.decode(check_json("state", value)) == stored
