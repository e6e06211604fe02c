"""What `turn.allow` asks, in every way an author can write it, is what `holdfast check` wants of a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.checked_agent import InProcess
from holdfast import Agent
from holdfast_app.check import CheckSettings, Outcome, Prompts, run_checks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from holdfast import Turn


async def about_a_call(turn: Turn) -> bool:
    async with turn.tool("Throw", kind="other") as call:
        allowed = await turn.allow("May I?", call)
        if not allowed:
            await call.fail("The user said no")
        return allowed


WAYS: dict[str, Callable[[Any], Awaitable[bool]]] = {
    "plain": lambda turn: turn.allow("May I?"),
    "command": lambda turn: turn.allow("May I?", command="touch pebble.txt"),
    "call": about_a_call,
}


@pytest.mark.requirement("P13")
@pytest.mark.parametrize("way", WAYS)
async def test_a_question_of_an_author_passes(way: str, tmp_path: Path) -> None:
    agent = Agent("asking")

    @agent.prompt
    async def ask(turn: Turn) -> None:
        await turn.say(str(await WAYS[way](turn)))

    only = ("permission-options", "permission-call", "permission-rejected")
    settings = CheckSettings(only=only, prompts=Prompts(ask="go"), deadline=40.0, exit_deadline=40.0, quiet=0.1)
    report = await run_checks(InProcess("", tmp_path, lambda: agent), settings)
    seen = {(row.id, row.version): row.outcome for row in report.results if row.id in only}
    assert seen == {(id_, version): Outcome.PASSED for id_ in only for version in (1, 2)}
