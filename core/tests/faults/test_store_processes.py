"""P4 with many processes, in short; `python -m core.tests.torture.eight_processes` goes on for longer."""

from __future__ import annotations

import pytest

from core.tests.support.scratch import scratch
from core.tests.torture.eight_processes import trial

pytestmark = pytest.mark.requirement("P1", "P4")


WRITTEN_DOWN = ("said", "sealed", "moved", "refused", "recovered", "forked")


@pytest.mark.timeout(300)
async def test_eight_processes_on_one_store_lose_nothing_and_nobody_writes_what_is_anothers() -> None:
    with scratch() as place:
        tally = await trial(place, 7.0, wanted=WRITTEN_DOWN, longest=150.0)
    assert tally.wrong == []
    assert all(tally.counts[happening] for happening in (*WRITTEN_DOWN, "killed")), f"too little happened: {tally}"
