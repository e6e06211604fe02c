"""What several scripts look at is played once, and fails for all of them where it fails."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from app.tests.support.checked_agent import InProcess
from holdfast_app.check import CheckSettings, Outcome, Prompts, run_checks
from holdfast_app.check.outcomes import NotTested
from holdfast_app.check.trial import Stories, Trial

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from holdfast_app.check.target import Link


@asynccontextmanager
async def trials(tmp_path: Path, count: int) -> AsyncGenerator[list[Trial]]:
    stories = Stories()
    async with AsyncExitStack() as closing:
        made = [Trial(InProcess("", tmp_path), CheckSettings(), 1, stories) for _ in range(count)]
        yield [await closing.enter_async_context(trial) for trial in made]


async def test_a_story_is_played_once_for_all_who_look_at_it(tmp_path: Path) -> None:
    played = 0

    async def play() -> int:
        nonlocal played
        played += 1
        await asyncio.sleep(0)
        return played

    async with trials(tmp_path, 3) as made:
        assert await asyncio.gather(*(trial.once("a", play) for trial in made)) == [1, 1, 1]
        assert [await trial.once("b", play) for trial in made] == [2, 2, 2]


async def test_a_story_that_cannot_be_told_is_the_same_for_all(tmp_path: Path) -> None:
    async def play() -> None:
        await asyncio.sleep(0)
        raise NotTested("too quick")

    async with trials(tmp_path, 3) as made:
        told = await asyncio.gather(*(trial.once("a", play) for trial in made), return_exceptions=True)
    assert [str(error) for error in told] == ["too quick"] * 3


async def test_who_waits_for_a_story_plays_it_where_the_first_was_stopped(tmp_path: Path) -> None:
    async def for_ever() -> str:
        await asyncio.Event().wait()
        return "never"

    async def play() -> str:
        return "played"

    async with trials(tmp_path, 2) as (one, other):
        first = asyncio.ensure_future(one.once("a", for_ever))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(other.once("a", play))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "played"
        with pytest.raises(asyncio.CancelledError):
            await first


class Counting(InProcess):
    """Counts how often the agent is started."""

    started = 0

    async def start(self, cwd: str) -> Link:
        self.started += 1
        return await super().start(cwd)


async def test_the_checks_of_a_replay_look_at_one_conversation(tmp_path: Path) -> None:
    shared = ("load", "load-agent-messages", "load-before-answer")

    async def started(*only: str) -> int:
        target = Counting("load-before-answer", tmp_path)
        talk = Prompts(talk="Pebbles are small")
        report = await run_checks(target, CheckSettings((), only, (1,), talk, quiet=0.05, jobs=8))
        outcomes = {row.id: row for row in report.results}
        if "load-before-answer" in only:
            assert outcomes["load-before-answer"].outcome is Outcome.FAILED
            assert outcomes["load-before-answer"].frames, "a failure shows the frames of the conversation it looked at"
        return target.started

    assert await started(*shared) == await started("load")
