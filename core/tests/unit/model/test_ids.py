"""Ids of things inside a session say when they were made, and those of others say nothing."""

from __future__ import annotations

import time

import pytest

from holdfast.model import made_at, new_id


@pytest.mark.requirement("B1")
def test_an_id_knows_when_it_was_made_and_is_like_no_other() -> None:
    before = time.time_ns() // 1_000_000 * 1_000
    ids = [new_id("msg") for _ in range(2_000)]
    after = time.time_ns() // 1_000
    assert len(set(ids)) == len(ids)
    assert all(before <= (made_at(each) or 0) <= after for each in ids)


@pytest.mark.parametrize(
    "foreign",
    [
        "", "msg_", "m1", "call_0123456789abcdef", "toolu_01A09q90qw90lq917835lq9", "msg_" + "f" * 24,
        "msg_" + "0" * 24,
        "call_019a8b3c4d5e6f708192a3b4c", "019a8b3c-4d5e-7f70-8192-a3b4c5d6e7f8", "Msg_019a8b3c4d5e6f708192a3b4",
    ],
)  # fmt: skip
def test_ids_of_others_are_not_taken_for_times(foreign: str) -> None:
    assert made_at(foreign) is None
