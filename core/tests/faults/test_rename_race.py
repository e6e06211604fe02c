"""P9 under a race, in short; `python -m core.tests.torture.rename_race` runs it at length and compares."""

from __future__ import annotations

from typing import Literal

import pytest

from core.tests.torture.rename_race import Flip, Way, race
from holdfast.workspace import openat2

TRIES = 5_000 // 3
"""How often each way to open is tried for reading and for writing, in each race."""


@pytest.mark.parametrize("flip", ["directory", "file", "ancestor", "root"])
@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_nothing_outside_is_reached_while_the_way_to_it_is_swapped(
    way: Way, kind: Literal["read", "write"], flip: Flip
) -> None:
    if way == "openat2" and not openat2.available():
        pytest.skip("this kernel has no openat2")
    tally = race(kind, flip, way, TRIES)
    assert tally.escapes == 0
    assert tally.done + tally.refused + tally.failed == TRIES
