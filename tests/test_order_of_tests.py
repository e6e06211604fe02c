"""Long tests begin first, and none is left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tests.support.order import LONGEST, WHOLE, longest_first

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Collected:
    nodeid: str


def ordered(names: Sequence[str], workers: int) -> list[str]:
    items = [cast("pytest.Item", Collected(name)) for name in names]
    return [item.nodeid for item in longest_first(items, workers)]


@given(st.lists(st.sampled_from(["tests/unit/test_a.py", *LONGEST[:3], WHOLE[0]]), max_size=60), st.integers(1, 8))
def test_every_test_is_there_once_however_many_are_long(files: list[str], workers: int) -> None:
    names = [f"{name}::test_{number}" for number, name in enumerate(files)]
    assert sorted(ordered(names, workers)) == sorted(names)


@pytest.mark.parametrize("workers", [1, 2, 6])
def test_each_worker_begins_with_long_ones(workers: int) -> None:
    short = [f"tests/unit/test_a.py::test_{number}" for number in range(50)]
    long = [f"{LONGEST[number % 2]}::test_{number}" for number in range(10)]
    order = ordered([*short, *long], workers)
    begins = 0
    for worker in range(workers):
        assert order[begins] in long
        begins += (len(order) - begins) // (workers - worker)
    # What is known to take longest is the first of all.
    assert order[0].startswith(LONGEST[0])


def test_what_one_made_for_all_of_a_file_stays_with_one_worker() -> None:
    short = [f"tests/unit/test_a.py::test_{number}" for number in range(90)]
    whole = [f"{WHOLE[0]}::test_{number}" for number in range(9)]
    order = ordered([*short[:40], *whole, *short[40:]], 3)
    begins = order.index(whole[0])
    assert begins % 33 == 0
    assert order[begins : begins + 9] == whole


def test_the_files_that_take_longest_are_there() -> None:
    assert set(WHOLE) <= set(LONGEST)
    assert not [name for name in LONGEST if not (ROOT / name).is_file()]
