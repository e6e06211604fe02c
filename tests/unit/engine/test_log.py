"""What was said on its way to being shown, where keeping takes its time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.engine.log import OpenLog
from holdfast.model import text_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model import Event


class LaterLog:
    """Keeps each append when the test says so."""

    def __init__(self) -> None:
        self.flights: list[asyncio.Future[None]] = []

    def append(self, lines: bytes) -> asyncio.Future[None]:
        self.flights.append(asyncio.get_running_loop().create_future())
        return self.flights[-1]

    async def sync(self) -> None: ...


@pytest.mark.requirement("P1")
async def test_what_is_said_at_the_moment_when_all_before_it_was_kept_is_waited_for_too() -> None:
    later, shown = LaterLog(), list[str]()

    def show(events: Sequence[Event]) -> None:
        shown.extend(event.plain_text or "" for event in events)

    log = OpenLog(later, show, lambda: None, whole=True)
    log.append(text_event("agent_message_chunk", "m", "first"))
    waiting = asyncio.create_task(log.shown())
    await asyncio.sleep(0)
    # The last of what is in flight arrives, and while whoever waits is being woken up more is said.
    loop, second = asyncio.get_running_loop(), text_event("agent_message_chunk", "m", "second")
    later.flights[0].add_done_callback(lambda _: loop.call_soon(log.append, second))
    later.flights[0].set_result(None)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    later.flights[1].set_result(None)
    await asyncio.wait_for(waiting, 30)
    assert shown == ["first", "second"]
