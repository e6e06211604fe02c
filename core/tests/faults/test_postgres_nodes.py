"""Three nodes in a bad minute; `python -m core.tests.torture.three_nodes` goes on for longer."""

from __future__ import annotations

import os

import pytest

from core.tests.support import postgres
from core.tests.torture.three_nodes import trial

pytestmark = pytest.mark.requirement("P1", "P3", "P4")


@pytest.mark.timeout(600)
async def test_nodes_killed_stopped_and_cut_off_lose_nothing_that_was_seen_and_write_nothing_stale() -> None:
    if postgres.GIVEN in os.environ:
        pytest.skip(f"{postgres.GIVEN} names a server that is not ours to stop")
    postgres.server()  # or why there is none
    tally = await trial(60.0, 7)
    assert tally.wrong == []
    for happened in ("kill", "pause", "cut", "restart", "accepted", "shown", "loaded", "refused"):
        assert tally.counts[happened], f"too little happened: {tally}"
    assert not tally.counts["did not end"], tally
