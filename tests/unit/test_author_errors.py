"""An author's mistake is told by its cause: at the end, in the author's words, with what to write instead."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from holdfast import Agent, Turn
from holdfast.diagnostics.logging_setup import TextLines
from holdfast.errors import RemoteError, UsageError
from holdfast.testing import connect_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def fail_in_kit(mistake: Callable[[Turn], Awaitable[object]]) -> str:
    """Return the last line that a test shows when an agent makes a mistake."""
    agent = Agent("mistaken")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await mistake(turn)

    async with connect_to(agent) as client:
        with pytest.raises(RemoteError) as failed:
            await client.say("go")
    assert failed.value.__cause__ is not None
    return str(failed.value).splitlines()[-1]


async def test_a_test_names_the_cause_and_its_line_and_not_a_log_that_is_not_there() -> None:
    async def divide(_turn: Turn) -> None:
        _ = 1 / 0

    line = divide.__code__.co_firstlineno + 1
    assert (
        await fail_in_kit(divide)
        == f"The agent failed at {__file__}:{line}: ZeroDivisionError: division by zero (-32603)"
    )
    assert "text must be a string, not int" in await fail_in_kit(lambda turn: turn.say(5))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("whole", "frames"), [(False, False), (True, True)])
async def test_only_a_log_that_asks_for_it_has_the_frames_of_holdfast(whole: bool, frames: bool) -> None:
    with pytest.raises(UsageError) as raised:
        Agent("mistaken").prompt(print)
    failed = raised.value
    record = logging.LogRecord("x", logging.ERROR, "", 0, "", None, (type(failed), failed, failed.__traceback__))
    text = TextLines("%(message)s", whole=whole).format(record)
    assert ("agent/agent.py" in text) is frames
    assert frames or text.splitlines()[-1].startswith("holdfast.errors.UsageError: a prompt handler must be")
