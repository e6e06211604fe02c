"""P2 in short; `python -m core.tests.torture.power_loss` goes on for longer."""

from __future__ import annotations

import pytest

from core.tests.torture.power_loss import trial

pytestmark = pytest.mark.requirement("P2", "P3")

ROUNDS = 125


@pytest.mark.parametrize("seed", range(4))
async def test_what_was_acknowledged_is_there_after_power_was_lost(seed: int) -> None:
    assert await trial(ROUNDS, seed) == []


async def test_on_a_disk_that_only_pretends_to_sync_something_would_be_lost() -> None:
    assert len(await trial(30, 1, lies=True)) > 5
