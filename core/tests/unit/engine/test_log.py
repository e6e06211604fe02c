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

    def hold(self) -> None: ...

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


class BreakingLog(LaterLog):
    """Takes nothing more from a moment on."""

    def __init__(self) -> None:
        super().__init__()
        self.is_broken = False

    def append(self, lines: bytes) -> asyncio.Future[None]:
        if self.is_broken:
            raise StoreError("The network is gone")
        return super().append(lines)


@pytest.mark.requirement("P5")
@pytest.mark.parametrize("arrives", [True, False])
async def test_what_a_log_does_not_take_stays_behind_what_was_said_before_it(arrives: bool) -> None:
    breaking, shown = BreakingLog(), list[Event]()
    log = OpenLog(breaking, shown.extend, lambda: None, whole=True)
    first, second, third = (text_event("agent_message_chunk", "m", text) for text in ("first", "second", "third"))
    log.append(first)
    await ticks(2)
    breaking.is_broken = True
    log.append(second)
    waiting = asyncio.create_task(log.shown())
    await ticks(2)
    if arrives:
        breaking.flights[0].set_result(None)
    else:
        breaking.flights[0].set_exception(StoreError("The network is gone"))
    await asyncio.wait_for(waiting, 30)
    log.append(third)
    await log.shown()
    assert shown == ([first] if arrives else [])
    assert [*shown, *log.unshown] == [first, second, third]
    assert log.failure is not None


class TakenLog:
    """Belongs to another process by now."""

    def append(self, lines: bytes) -> None:
        raise StoreError("Another process has taken the session over")

    def hold(self) -> None: ...

    async def sync(self) -> None: ...


@pytest.mark.requirement("P4")
async def test_who_has_lost_the_session_does_not_even_show_what_would_not_be_stored() -> None:
    shown, failed = list[Event](), list[str]()
    log = OpenLog(TakenLog(), shown.extend, lambda: failed.append("failed"), whole=True)
    log.append(event_from({"sessionUpdate": "notice", "severity": "info", "title": "Still here"}))
    await log.shown()
    assert not shown and failed == ["failed"] and log.failure is not None


class CountedLog:
    """Keeps at once, and remembers each append."""

    def __init__(self) -> None:
        self.appended: list[bytes] = []

    def append(self, lines: bytes) -> None:
        self.appended.append(lines)

    def hold(self) -> None: ...

    async def sync(self) -> None: ...


async def ticks(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.requirement("P1")
async def test_text_that_is_streamed_tick_by_tick_is_kept_when_it_is_shown_and_not_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.engine.log.PACE", 0.05)
    kept, shown = CountedLog(), list[Event]()
    everything = asyncio.Event()

    def show(events: Sequence[Event]) -> None:
        shown.extend(events)
        assert all(event.body in b"".join(kept.appended) for event in shown)
        if len(shown) == 6:
            everything.set()

    log = OpenLog(kept, show, lambda: None, whole=True)
    for piece in "abcdef":
        log.append(text_event("agent_message_chunk", "m", piece))
        await ticks(2)
    assert len(kept.appended) == 1 and [event.plain_text for event in shown] == ["a"]
    await asyncio.wait_for(everything.wait(), 30)
    assert len(kept.appended) == 2
    assert "".join(event.plain_text or "" for event in shown) == "abcdef"


@pytest.mark.requirement("P3")
async def test_what_is_no_text_is_kept_at_the_end_of_its_tick_with_the_text_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.engine.log.PACE", 3600.0)
    kept = CountedLog()
    log = OpenLog(kept, lambda _: None, lambda: None, whole=True)
    for piece in "ab":
        log.append(text_event("agent_message_chunk", "m", piece))
        await ticks(2)
    assert len(kept.appended) == 1
    log.append(event_from({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "Delete"}))
    await ticks(2)
    assert [line.count(b"\n") for line in kept.appended] == [1, 2]
    assert b'"b"' in kept.appended[1] and b"Delete" in kept.appended[1]


@pytest.mark.requirement("P1")
async def test_where_showing_takes_long_as_long_again_passes_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.engine.log.LONGEST_PACE", 3600.0)
    loop, passed, shown = asyncio.get_running_loop(), 0.0, list[list[str]]()
    real_time = loop.time
    monkeypatch.setattr(loop, "time", lambda: real_time() + passed)

    def show_to_many(events: Sequence[Event]) -> None:
        nonlocal passed
        passed += 600.0
        shown.append([event.plain_text or "" for event in events])

    log = OpenLog(CountedLog(), show_to_many, lambda: None, whole=True)
    for text in ("at once ", "later ", "with it"):
        log.append(text_event("agent_message_chunk", "m", text))
        await ticks(3)
    assert shown == [["at once "]]
    await log.shown()
    assert shown == [["at once "], ["later ", "with it"]]
