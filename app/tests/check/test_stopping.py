"""A check that is told to stop begins nothing more, and waits for nothing that was just begun."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from app.tests.support.checked_agent import InProcess
from core.tests.support.leftovers import expect_gone, own_time
from core.tests.support.links import PATIENCE
from holdfast_app.check import CheckSettings, CommandTarget, Outcome, run_checks

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast_app.check.target import Link


class Counted(InProcess):
    """The good agent; how often it was started."""

    started = 0

    async def start(self, cwd: str) -> Link:
        self.started += 1
        return await super().start(cwd)


async def test_no_agent_is_started_once_it_was_stopped(tmp_path: Path) -> None:
    target, stop = Counted("", tmp_path), asyncio.Event()
    stop.set()
    report = await run_checks(target, CheckSettings(("spec",), quiet=0.05), None, stop)
    assert target.started == 0
    assert {row.outcome for row in report.results} == {Outcome.NOT_RUN}


@pytest.mark.parametrize("ticks", [2, 4, 6])
async def test_an_agent_that_is_stopped_while_it_is_started_is_waited_for_no_longer(ticks: int, tmp_path: Path) -> None:
    seconds = own_time()
    agent = ("sh", "-c", f"sleep {seconds} & wait")  # what it starts has its pipes
    starting = asyncio.ensure_future(CommandTarget(agent).start(str(tmp_path)))
    for _ in range(ticks):
        await asyncio.sleep(0)
    starting.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait({starting})
    assert starting.cancelled()
    await asyncio.to_thread(expect_gone, seconds)
