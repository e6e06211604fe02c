"""P4 with many processes, in short; `python -m tests.torture.eight_processes` goes on for longer."""

from __future__ import annotations

import pytest
from tests.support.scratch import scratch
from tests.torture.eight_processes import trial

pytestmark = pytest.mark.requirement("P1", "P4")


async def test_eight_processes_on_one_store_lose_nothing_and_nobody_writes_what_is_anothers() -> None:
    with scratch() as place:
        tally = await trial(place, 7.0)
    assert tally.wrong == []
    for happened in ("said", "sealed", "moved", "refused", "killed", "recovered", "forked"):
        assert tally.counts[happened] > 0, f"nothing was {happened}, so nothing is proved: {tally}"
