"""`run_alone`: a coroutine in a loop of its own, which fails if it leaves something behind."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine

TICKS = 10
"""A task that was cancelled or told to end has this many loop ticks to be gone."""


def run_alone(test: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine in a loop of its own; fail if it leaves tasks or unseen exceptions behind."""
    unseen: list[str] = []

    def note(_loop: asyncio.AbstractEventLoop, happened: dict[str, Any]) -> None:
        unseen.append(f"{happened.get('message')}: {happened.get('exception')!r}")

    async def observed() -> None:
        asyncio.get_running_loop().set_exception_handler(note)
        await test
        for _ in range(TICKS):
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {sorted(task.get_name() for task in left)}"

    asyncio.run(observed())
    gc.collect(1)  # a task whose exception nobody saw says so when it is collected
    assert not unseen, f"went wrong unseen: {unseen}"
