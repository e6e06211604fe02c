"""Watching: whoever comes sees all there was and will be, once (B12); whoever is slow harms only himself (P7)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.support.sessions import (
    CWD,
    Recorder,
    ScriptedAgent,
    begin,
    ended,
    engine_at,
    history,
    run,
    texts,
    watch,
)
from holdfast.engine.attachment import DROP_BYTES, HELD_BYTES
from holdfast.engine.turn import CONGESTED_BYTES
from holdfast.errors import ConnectionLost
from holdfast.model import text_event

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import LiveTurn
    from holdfast.model import StopReason

SCRIPT = (
    "say a",
    "call c Read",
    "output c x",
    "tick",
    "wait gate",
    "output c y",
    "done c",
    "think t",
    "say b",
    "plan p",
)


@pytest.mark.requirement("B12")
@pytest.mark.parametrize("moment", ["before the past", "in the past", "after the past"])
async def test_whoever_comes_while_a_turn_runs_sees_it_whole_even_if_it_is_sealed_meanwhile(
    place: Path, moment: str
) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        early = await watch(engine, session)
        await run(engine, session, "say first")
        turn = begin(engine, session, *SCRIPT)
        await agent.at("gate")
        late = Recorder()
        attachment = await session.attach(late)

        async def end_the_turn() -> None:
            agent.gates["gate"].set()
            await ended(turn)
            await run(engine, session, "say next")

        if moment == "before the past":
            await end_the_turn()
        async for blocks in attachment.past(engine.store):
            if moment == "in the past" and not late.past:
                await end_the_turn()
            late.past += (line for it in blocks for line in it.split(b"\n"))
        if moment == "after the past":
            await end_the_turn()
        assert late.events == []  # nothing is shown before it follows
        attachment.follow()
        await run(engine, session, "say last")
        stored = await history(engine, session)
        assert late.history() == early.history() == stored
        assert texts(stored) == ["first", "a", "b", "next", "last"]


@pytest.mark.requirement("B12")
async def test_whoever_comes_at_any_tick_of_a_turn_sees_everything_once(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        first = await watch(engine, session)
        script = "say 0 \ntick\ncall c# Read\nsay 1 \noutput c# x\ntick\nplan p\nsay 2 \ntick\nsay 3\nstop refusal"
        others: list[Recorder] = []
        for ticks in range(0, 60, 3):
            turn = begin(engine, session, script.replace("#", str(ticks)))
            if ticks % 2:
                await turn.accepted
            for _ in range(ticks):
                await asyncio.sleep(0)
            others.append(await watch(engine, session))
            await ended(turn)
        stored = await history(engine, session)
        for recorder in (first, *others):
            assert recorder.history() == stored


@pytest.mark.requirement("B12")
async def test_what_is_said_in_the_same_tick_as_somebody_comes_is_seen_once() -> None:
    class Attaching(ScriptedAgent):
        late: Recorder

        async def perform(self, turn: LiveTurn) -> StopReason | None:
            turn.emit(text_event("agent_message_chunk", "m", "a"))
            self.late = Recorder()
            await turn.session.attach(self.late)  # what was just said was not stored yet
            turn.emit(text_event("agent_message_chunk", "m", "b"))
            return None

    agent = Attaching()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "x")
        (attachment,) = session.attachments
        agent.late.past = [it async for some in attachment.past(engine.store) for it in some]
        attachment.follow()
        assert agent.late.history() == await history(engine, session)
        assert texts(agent.late.history()) == ["ab"]


@pytest.mark.requirement("B12")
async def test_whoever_comes_while_a_turn_runs_knows_its_title_and_usage() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        turn = begin(engine, session, "title Weather", "usage 7", "wait gate")
        await agent.at("gate")
        assert session.title == "Weather"
        assert session.state.latest["usage_update"]["used"] == 7
        agent.gates["gate"].set()
        await ended(turn)
        assert (await engine.list()).sessions[0].title == "Weather"


async def test_everybody_sees_the_same_in_the_same_order() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        recorders = [await watch(engine, session) for _ in range(5)]
        for n in range(3):
            await run(engine, session, f"say {n}", "tick", "call c Read", "option units f", "title t", "notice x")
        assert recorders[0].events
        assert all(it.events == recorders[0].events for it in recorders)


async def test_whoever_has_left_sees_nothing_more() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        recorder, other = Recorder(), await watch(engine, session)
        attachment = await session.attach(recorder)
        await run(engine, session, "say held")
        session.detach(attachment)
        attachment.follow()
        await run(engine, session, "say a")
        assert recorder.events == [] and recorder.drops == []
        assert other.said() == "helda"
        session.detach(attachment)  # leaving twice is leaving once


async def test_one_who_does_not_read_is_dropped_with_a_reason_and_the_others_are_unaffected() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        stalled, good = await watch(engine, session), await watch(engine, session)
        stalled.backlog = DROP_BYTES + 1
        assert (await run(engine, session, "say a", "tick", "say b")).reason == "end_turn"
        assert len(stalled.drops) == 1 and "fast enough" in stalled.drops[0]
        assert "b" not in stalled.said()
        assert good.said() == "ab"
        again = await watch(engine, session)
        assert again.history() == good.history() == await history(engine, session)


async def test_one_who_takes_too_long_over_the_past_is_dropped_before_memory_is_full_of_what_waits_for_him() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        slow = Recorder()
        attachment = await session.attach(slow)
        piece = "x" * (1 << 20)
        for _ in range(HELD_BYTES // len(piece) + 2):
            await run(engine, session, f"say {piece}")
            if slow.drops:
                break
        assert "fast enough" in slow.drops[0]
        attachment.follow()
        assert slow.events == []


class Flooding(ScriptedAgent):
    """Says more than can be shown at once, and waits until it can."""

    async def perform(self, turn: LiveTurn) -> StopReason | None:
        for _ in range(3):
            turn.emit(text_event("agent_message_chunk", "m", "x" * (300 << 10)))
            assert turn.congested
            self.arrived["waits"].set()
            await turn.drain()
            assert not turn.congested
        return None


async def test_a_turn_waits_while_everybody_is_behind_and_goes_on_when_one_is_not() -> None:
    agent = Flooding()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        first, second = await watch(engine, session), await watch(engine, session)
        first.backlog = second.backlog = CONGESTED_BYTES + 1
        turn = begin(engine, session, "x")
        await agent.at("waits")
        await first.until(first.said)
        assert len(first.said()) == 300 << 10  # what waits is the next piece
        assert not turn.ended.done()
        second.take()
        assert (await ended(turn)).reason == "end_turn"
        assert len(first.said()) == len(second.said()) == 3 * (300 << 10)


@pytest.mark.parametrize("change", ["leaves", "fails", "is cancelled", "newcomer", "cancel"])
async def test_a_turn_does_not_wait_for_one_who_will_never_read(change: str) -> None:
    agent = Flooding()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        stalled = await watch(engine, session)
        stalled.backlog = CONGESTED_BYTES + 1
        stalled.broken = {"fails": ConnectionLost("gone"), "is cancelled": asyncio.CancelledError()}.get(change)
        turn = begin(engine, session, "x")
        await agent.at("waits")
        match change:
            case "leaves":
                session.detach(session.attachments[0])
            case "newcomer":
                await watch(engine, session)
            case "cancel":
                session.cancel()
            case _:
                await stalled.until(lambda: stalled.drops)
        assert (await ended(turn)).reason == ("cancelled" if change == "cancel" else "end_turn")


async def test_a_session_that_is_watched_by_one_who_does_not_read_does_not_hold_up_another_session() -> None:
    async with engine_at(":memory:", Flooding()) as engine:
        slow, quick = await engine.create(CWD), await engine.create(CWD)
        stalled, reading = await watch(engine, slow), await watch(engine, quick)
        stalled.backlog = CONGESTED_BYTES + 1
        waiting = begin(engine, slow, "x")
        for _ in range(5):
            assert (await run(engine, quick, "x")).reason == "end_turn"
        assert len(reading.said()) == 15 * (300 << 10)
        assert not waiting.ended.done()
        stalled.take()
        await ended(waiting)
