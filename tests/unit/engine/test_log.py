"""What was said on its way to being shown, where keeping takes its time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.engine.log import OpenLog
from holdfast.errors import StoreError
from holdfast.model import Event, event_from, text_event

if TYPE_CHECKING:
    from collections.abc import Sequence


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


class TakenLog:
    """Belongs to another process by now."""

    def append(self, lines: bytes) -> None:
        raise StoreError("Another process has taken the session over")

    async def sync(self) -> None: ...


@pytest.mark.requirement("P4")
async def test_who_has_lost_the_session_does_not_even_show_what_would_not_be_stored() -> None:
    shown, failed = list[Event](), list[str]()
    log = OpenLog(TakenLog(), shown.extend, lambda: failed.append("failed"), whole=True)
    log.append(event_from({"sessionUpdate": "notice", "severity": "info", "title": "Still here"}))
    await log.shown()
    assert not shown and failed == ["failed"] and log.failure is not None
