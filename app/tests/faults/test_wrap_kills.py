"""A wrapped agent, its proxy, or both are killed: a few rounds of `app.tests.torture.wrapped_kills`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.tests.torture.wrapped_kills import torture

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.requirement("G8", "P1", "P3")
@pytest.mark.timeout(240)
async def test_what_was_seen_is_there_after_every_kill(tmp_path: Path) -> None:
    failures, killed, seen = await torture(5, 1, tmp_path)
    assert failures == 0
    assert sum(killed.values()) == 5
    assert seen > 0
