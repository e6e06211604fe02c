"""Clients that come at the worst moment: while a turn is being sealed, or a session is being lost.

What a turn said last may be stored with its seal. Whoever comes then has it once, whatever he comes for: the whole of
it, or what happened since a position (P5, B12).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.sessions import (
    CWD,
    PATIENCE,
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
from holdfast.engine import EngineLimits
from holdfast.errors import SessionMoved, StoreError
from holdfast.store import EventWindow

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import Engine

pytestmark = pytest.mark.requirement("P5", "B12")

KEEPING = EngineLimits(keep_events=EventWindow())


class Seals:
    """The seals of a store: each waits until it is let through."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = asyncio.Event()
        self.let = asyncio.Event()
        self.failure: Exception | None = None
        """What they fail with."""
        seal = engine.store.seal

        async def sealed(*arguments: Any, **how: Any) -> None:
            self.reached.set()
            await self.let.wait()
            if self.failure is not None:
                raise self.failure
            await seal(*arguments, **how)

        monkeypatch.setattr(engine.store, "seal", sealed)

    async def until_reached(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.reached.wait()


async def a_while() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def once(work: asyncio.Future[Any]) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await work


@pytest.mark.parametrize("script", [("say b",), ("say b", "plan p", "notice n"), ("say b", "stop refusal")])
async def test_who_comes_while_a_turn_is_sealed_has_all_of_it_once(
    place: Path | str, monkeypatch: pytest.MonkeyPatch, script: tuple[str, ...]
) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        early = await watch(engine, session)
        await run(engine, session, "say a")
        seals = Seals(engine, monkeypatch)
        turn = begin(engine, session, *script)
        await seals.until_reached()
        late = Recorder()
        coming = asyncio.ensure_future(watch(engine, session, late))
        await a_while()
        seals.let.set()
        await ended(turn)
        await once(coming)
        await run(engine, session, "say c")
        stored = await history(engine, session)
        assert texts(stored) == ["a", "b", "c"]
        assert late.history() == early.history() == stored


async def test_who_comes_back_while_a_turn_is_sealed_has_what_it_missed_once(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_at(place, ScriptedAgent(), KEEPING) as engine:
        session = await engine.create(CWD)
        early = await watch(engine, session)
        await run(engine, session, "say a")
        seen, known = session.journal.position, len(early.events)
        seals = Seals(engine, monkeypatch)
        turn = begin(engine, session, "say b", "plan p", "title t")
        await seals.until_reached()
        late = Recorder()
        coming = asyncio.ensure_future(session.attach(late, seen))
        await a_while()
        seals.let.set()
        await ended(turn)
        (await once(coming)).follow()
        await run(engine, session, "say c")
        stored = [event.body for event in early.events[known:] if event.kind != "state_update"]
        had = Counter(event.body for event in late.events if event.kind != "state_update")
        assert had == Counter(stored)
        assert [event.body for event in late.events if event.kind != "state_update"] == stored


async def test_who_comes_while_a_turn_is_sealed_in_vain_is_told_and_comes_later(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        early = await watch(engine, session)
        await run(engine, session, "say a")
        with monkeypatch.context() as patch:
            seals = Seals(engine, patch)
            seals.failure = StoreError("There is no room")
            turn = begin(engine, session, "say b")
            await seals.until_reached()
            coming = asyncio.ensure_future(watch(engine, session))
            await a_while()
            seals.let.set()
            assert (await ended(turn)).reason == "error"
            try:
                late = await once(coming)
            except StoreError:
                late = None  # on a store that keeps things later: what is not stored is not shown (P1)
        await run(engine, session, "say c")
        late = late or await watch(engine, session)
        stored = await history(engine, session)
        assert texts(stored) == ["a", "b", "c"]
        assert late.history() == early.history() == stored


async def test_who_comes_while_one_turn_follows_the_other_does_not_wait_for_the_last_of_them(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say first")
        seals = Seals(engine, monkeypatch)
        turns = [begin(engine, session, f"say {number}") for number in range(10)]
        await seals.until_reached()
        late = Recorder()

        async def come() -> int:
            attachment = await session.attach(late)
            over = sum(turn.ended.done() for turn in turns)
            late.past = [
                line async for blocks in attachment.past(engine.store) for it in blocks for line in it.split(b"\n")
            ]
            attachment.follow()
            return over

        coming = asyncio.ensure_future(come())
        await a_while()
        seals.let.set()
        assert await once(coming) <= 3
        await ended(turns[-1])
        assert late.history() == await history(engine, session)


@pytest.mark.requirement("P4")
async def test_who_comes_while_a_session_is_lost_is_told_so_and_watches_nothing(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say a")
        seals = Seals(engine, monkeypatch)
        seals.failure = SessionMoved("Another process has taken this session over")
        turn = begin(engine, session, "say b")
        await seals.until_reached()
        late = Recorder()
        coming = asyncio.ensure_future(session.attach(late))
        await a_while()
        seals.let.set()
        await ended(turn)
        try:
            await once(coming)
        except SessionMoved as e:
            late.drops.append(e.message)  # it came after the session was lost, and is told no later than the others
        assert len(late.drops) == 1 and "another process" in late.drops[0].lower()
        assert session.attachments == ()
