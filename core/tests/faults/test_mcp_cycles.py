"""Servers that come and go leave nothing behind; `python -m core.tests.torture.mcp_cycles` does it a thousand times."""

from __future__ import annotations

import pytest

from core.tests.torture.mcp_cycles import cycles


@pytest.mark.requirement("E5", "P8")
async def test_fifty_toolboxes_that_come_and_go_leave_no_process_and_no_open_file() -> None:
    started = 0
    for _ in range(5):  # on a busy machine some are closed before their process has begun
        outcome = await cycles(50)
        assert outcome.files_after <= outcome.files_before
        started += outcome.started
        if started >= 50:
            break
    assert started >= 50
