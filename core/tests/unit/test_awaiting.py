"""A question that nobody waits for is neither true nor false; all else of a coroutine stays."""

from __future__ import annotations

import asyncio
import gc
import operator
from typing import Any

import pytest

from holdfast.await_guard import awaited
from holdfast.errors import UsageError


@awaited
async def twice(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


@pytest.mark.requirement("P13")
@pytest.mark.parametrize("taken", [bool, operator.not_])
async def test_what_was_not_awaited_is_neither_true_nor_false(taken: Any) -> None:
    with pytest.raises(UsageError, match="write `await` before"):
        taken(twice(1))


async def test_it_can_be_awaited_and_made_a_task_of() -> None:
    assert await twice(1) == 2
    assert await asyncio.gather(twice(2), asyncio.create_task(twice(3)), asyncio.wait_for(twice(4), 30)) == [4, 6, 8]


async def test_a_task_of_it_can_be_cancelled() -> None:
    task = asyncio.create_task(twice(1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_of_it_can_be_shown_by_every_python() -> None:
    """Python 3.12 takes its coroutine for true or false; whatever shows a task, as `signal` does, would fail."""
    task = asyncio.create_task(twice(1))
    assert "twice" in repr(task) or "NotAwaited" in repr(task)
    await task
    with pytest.raises(UsageError, match="write `await` before"):
        bool(twice(1))


async def test_one_that_was_dropped_is_warned_of() -> None:
    with pytest.warns(RuntimeWarning, match="twice' was never awaited"):
        _drop(twice(1))


def _drop(answer: object) -> None:
    del answer
    gc.collect()
