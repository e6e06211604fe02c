"""P4 with many processes, in short; `python -m tests.torture.eight_processes` goes on for longer."""

from __future__ import annotations

import pytest
from tests.support.scratch import scratch
from tests.torture.eight_processes import Tally, trial

pytestmark = pytest.mark.requirement("P1", "P4")


HAPPENINGS = ("said", "sealed", "moved", "refused", "killed", "recovered", "forked")
ATTEMPTS = 5
"""On a busy machine little happens in the time there is."""


@pytest.mark.timeout(300)
async def test_eight_processes_on_one_store_lose_nothing_and_nobody_writes_what_is_anothers() -> None:
    tally = Tally()
    for seed in range(ATTEMPTS):
        with scratch() as place:
            part = await trial(place, 7.0, seed=seed)
        tally.counts += part.counts
        assert part.wrong == []
        if all(tally.counts[happening] for happening in HAPPENINGS):
            return
    pytest.fail(f"not everything happened, so little is proved: {tally}")
