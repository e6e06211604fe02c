"""How things look: widths, times, sizes, columns."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tests.support.updates import values
from holdfast.view.safe_text import safe_text
from holdfast_app.cli import output

DAY = 86_400


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "just now"), (0, "just now"), (59, "just now"), (60, "1 min ago"), (3_599, "59 min ago"),
        (3_600, "1 h ago"), (DAY - 1, "23 h ago"), (DAY, "1 day ago"), (2 * DAY, "2 days ago"),
        (14 * DAY - 1, "13 days ago"),
    ],
)  # fmt: skip
def test_times_are_told_as_people_do(seconds: int, said: str) -> None:
    now = 1_800_000_000.0
    assert output.ago(int((now - seconds) * 1e6), now) == said


def test_what_was_long_ago_is_told_by_its_date() -> None:
    assert output.ago(1_700_000_000_000_000, 1_800_000_000.0).startswith("2023-11-1")


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (99_949, "99.9 kB"), (123_456, "123 kB"), (1_000_000, "1.0 MB"),
        (999_999_999, "1000 MB"), (5 * 10**9, "5.0 GB"), (3 * 10**12, "3.0 TB"), (10**16, "10000 TB"),
    ],
)  # fmt: skip
def test_sizes_are_told_in_few_digits(count: int, said: str) -> None:
    assert output.size(count) == said


@given(st.text(), st.integers(2, 30))
def test_a_text_is_cut_to_the_room_there_is(text: str, room: int) -> None:
    cut = output.cut(text, room)
    assert output.cells(cut) <= room
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))
    assert output.cut(text, None) == text


@given(st.text(st.characters(exclude_characters="\n\t")), st.integers(4, 30))
def test_a_line_is_broken_and_nothing_of_it_is_lost_but_spaces(text: str, room: int) -> None:
    lines = output.wrapped(text, room)
    assert all(output.cells(line) <= room for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_lines_are_broken_at_spaces_where_there_are_any() -> None:
    assert output.wrapped("the quick brown fox", 10) == ["the quick", "brown fox"]
    assert output.wrapped("thequickbrownfox jumps", 10) == ["thequickbr", "ownfox", "jumps"]
    assert output.wrapped("日本語日本語", 5) == ["日本", "語日", "本語"]
    assert output.wrapped("a bcd日", 5) == ["a", "bcd日"]
    assert output.wrapped("a bcde日", 5) == ["a", "bcde", "日"], "behind the space there may be too little room still"
    assert output.wrapped("日本", 1) == ["日", "本"], "what is wider than the room has a line of its own"


def test_columns_are_aligned_by_what_is_seen() -> None:
    rows = output.columns([("a", "1", "x"), ("日本", "23", "yy"), ("e\u0301", "456", "")], (False, True))
    assert ["|".join(row) for row in rows] == ["a   |  1|x", "日本| 23|yy", "e\u0301   |456|"]
    assert output.columns([]) == []


@given(values | st.text() | st.dictionaries(st.text(), st.text()))
def test_json_is_the_same_value_and_steers_nothing(value: Any) -> None:
    text = output.json_text(value)
    assert safe_text(text) == text
    assert json.loads(text) == value
