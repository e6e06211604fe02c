"""A client whose stream is cut anywhere goes on exactly there: nothing is missing, nothing comes twice (H4).

Random turns, and what happens between them, are watched by one client that knows the position of all it sees. Then the
stream is cut behind every event it saw, and another client goes on from there: in the same process, and in another one
that finds the files as the first left them at that moment, however it died.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core.tests.support.sessions import Recorder, ScriptedAgent, begin, disk_as_of_now, ended, engine_at, eventually
from holdfast.engine import EngineLimits
from holdfast.errors import PositionLost
from holdfast.model import Position
from holdfast.model.kinds import TURN_END
from holdfast.store import EventWindow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from holdfast.engine import Attachment, Engine, LiveSession
    from holdfast.model import Event

LIMITS = EngineLimits(keep_events=EventWindow())
MEMORY = Path("/dev/shm")  # where syncing costs nothing

ANNOUNCED = frozenset({"state_update", "notice", "config_option_update", "session_info_update"})
"""What is not stored as an event of its own; a title that a prompt makes is, but nobody here counts on it."""


class Numbered(Recorder):
    """A client that keeps the position of all it is shown."""

    def __init__(self) -> None:
        super().__init__(always="allow_once")
        self.attachment: Attachment | None = None
        self.seen: list[tuple[Position, Event]] = []
        self.told: list[Event] = []

    def show(self, events: Sequence[Event]) -> None:
        super().show(events)
        assert self.attachment is not None
        before = self.attachment.showing
        if before is None:
            self.told += events
        else:
            self.seen += ((before.after(i), event) for i, event in enumerate(events, start=1))
            assert self.attachment.position == self.seen[-1][0]

    def stored(self, since: Position) -> list[tuple[Position, str, bytes]]:
        return [(at, event.kind, event.body) for at, event in self.seen if at > since and event.kind not in ANNOUNCED]


async def watched(session: LiveSession, since: Position | None = None) -> Numbered:
    client = Numbered()
    client.attachment = await session.attach(client, since)
    client.attachment.follow()
    return client


lines = st.sampled_from(
    ["say a", "think b", "notice n", "tick", "call c1 Dig", "output c1 x", "usage 5", "ask dig", "unknown m", "title t"]
)
turns = st.tuples(
    st.just("turn"), st.lists(lines, max_size=8).map(lambda found: [*found, "tick"]), st.sampled_from(["", "fail x"])
)
between = st.tuples(st.sampled_from(["between", "option", "rename", "settle", "tell", "reopen", "crash"]))
stories = st.lists(st.one_of(turns, between), min_size=1, max_size=6)


async def happen(engine: Engine, session: LiveSession, client: Numbered, what: tuple[object, ...]) -> None:
    match what:
        case ("turn", script, str(end)):
            await ended(begin(engine, session, *cast("list[str]", script), end))
        case ("between",):
            session.emit_update({"sessionUpdate": "_zed/mood", "mood": "fine"})
        case ("option",):
            await session.set_option("loud", not session.state.options.get("loud", False))
        case ("rename",):
            await session.rename("Another")
        case ("settle",):
            await session.journal.settle()
        case ("tell",):
            session.tell(client, {"sessionUpdate": "notice", "severity": "info", "title": "For you"})
        case _:
            raise AssertionError(what)


async def check_all_cuts(session: LiveSession, seen: Numbered, start: Position) -> None:
    """Cut behind every event that was ever seen, and before the first; see what comes then."""
    whole = seen.stored(start)
    for since in [start, *(at for at, _ in seen.seen)]:
        again = await watched(session, since)
        assert again.stored(since) == [found for found in whole if found[0] > since], since
        session.detach(again.attachment)  # pyright: ignore[reportArgumentType]


async def tell_story(place: Path, story: list[tuple[object, ...]]) -> None:
    """Let things happen; "reopen" and "crash" let another process go on."""
    engines: list[AbstractAsyncContextManager[Engine]] = []
    opening = engine_at(place, ScriptedAgent(), LIMITS)
    engine = await opening.__aenter__()
    engines.append(opening)
    try:
        session = await engine.create("/project")
        start = session.journal.position
        client = await watched(session)
        for number, what in enumerate(story):
            if what[0] in ("reopen", "crash"):
                await session.journal.shown()
                if what[0] == "crash":
                    begin(engine, session, "say before", f"call cut{number} Dig", "notice n", "tick 3", "wait gate")
                    await client.until(lambda: client.seen and client.seen[-1][1].kind == "notice")  # noqa: B023
                    place = disk_as_of_now(place, place.parent / f"crash{number}")
                else:
                    await engines.pop().__aexit__(None, None, None)
                opening = engine_at(place, ScriptedAgent(), LIMITS)
                engine = await opening.__aenter__()
                engines.append(opening)
                session = await engine.restore(session.id, "/project")
                seen, client = client, await watched(session, client.seen[-1][0] if client.seen else start)
                client.seen[:0] = seen.seen
            else:
                await happen(engine, session, client, what)
        await session.journal.shown()
        positions = [at for at, _ in client.seen]
        assert positions == sorted(set(positions))
        await check_all_cuts(session, client, start)
    finally:
        for opened in engines:
            await opened.__aexit__(None, None, None)


@pytest.mark.requirement("H4", "P1")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stories)
@example([("between",), ("reopen",), ("turn", ["tick"], ""), ("reopen",)])
@example([("turn", ["say a"], "fail x"), ("crash",), ("turn", ["notice n", "say b"], ""), ("reopen",), ("option",)])
@example([("option",), ("between",), ("crash",), ("crash",), ("settle",), ("rename",), ("turn", ["notice n"], "")])
@example([("between",), ("turn", ["notice n", "notice n", "say b", "notice n", "say c"], ""), ("between",)])
def test_a_stream_that_was_cut_anywhere_goes_on_there(story: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        asyncio.run(tell_story(Path(place) / "0" / "store.db", story))


@pytest.mark.requirement("H4")
async def test_a_mark_of_a_bad_end_comes_again_to_whoever_missed_it(tmp_path: Path) -> None:
    async with engine_at(tmp_path / "s.db", limits=LIMITS) as engine:
        session = await engine.create("/project")
        client = await watched(session)
        await ended(begin(engine, session, "say a", "fail x"))
        before_mark = next(at for at, event in client.seen if event.kind == TURN_END).after(-1)
        again = await watched(session, before_mark)
        assert [event.kind for _, event in again.seen] == [TURN_END]


@pytest.mark.requirement("H4")
@pytest.mark.parametrize("place", ["s.db", ":memory:"])
async def test_a_running_turn_goes_on_for_whoever_comes_back_to_it(tmp_path: Path, place: str) -> None:
    agent = ScriptedAgent()
    where = place if place == ":memory:" else tmp_path / place
    async with engine_at(where, agent, LIMITS) as engine:
        session = await engine.create("/project")
        client = await watched(session)
        turn = begin(engine, session, "say a", "tick 3", "say b", "tick 3", "wait gate", "say c")
        await agent.at("gate")
        await session.journal.shown()
        cut = next(at for at, event in client.seen if event.text == "a")
        again = await watched(session, cut)
        agent.gates["gate"].set()
        await ended(turn)
        assert again.said() == "bc"
        assert again.stored(cut) == client.stored(cut)


@pytest.mark.requirement("H4")
async def test_a_position_that_is_not_kept_is_refused_with_advice(tmp_path: Path) -> None:
    async with engine_at(tmp_path / "plain.db") as engine:  # keeps no events
        session = await engine.create("/project")
        client = await watched(session)
        await ended(begin(engine, session, "say a"))
        with pytest.raises(PositionLost, match="load the session again"):
            await session.attach(client, client.seen[0][0])
        assert len(session.attachments) == 1
        assert (await watched(session, session.journal.position)).seen == []  # nothing was missed
        with pytest.raises(PositionLost):
            await session.attach(client, session.journal.position.after(1))


@pytest.mark.requirement("H4")
@pytest.mark.parametrize("place", ["s.db", ":memory:"])
async def test_no_more_is_kept_than_was_asked_for_and_the_newest_stays(tmp_path: Path, place: str) -> None:
    limits = EngineLimits(keep_events=EventWindow(size=40_000))
    where = place if place == ":memory:" else tmp_path / place
    async with engine_at(where, limits=limits) as engine:
        session = await engine.create("/project")
        client = await watched(session)
        for _ in range(12):
            await ended(begin(engine, session, "say " + "x" * 8_000))
            last = await watched(
                session, next(at for at, event in reversed(client.seen) if event.kind == "user_message")
            )
            assert len(last.said()) == 8_000
        with pytest.raises(PositionLost):
            await session.attach(client, client.seen[0][0])
        if place != ":memory:":
            assert sum(path.stat().st_size for path in (tmp_path / "s.db.turns").iterdir()) < 80_000


@pytest.mark.requirement("H4")
async def test_what_is_too_old_is_not_kept(tmp_path: Path) -> None:
    limits = EngineLimits(keep_events=EventWindow(seconds=0.2), idle=0.04)
    async with engine_at(tmp_path / "s.db", limits=limits) as engine:
        session = await engine.create("/project")
        client = await watched(session)
        await ended(begin(engine, session, "say a"))
        logs = tmp_path / "s.db.turns"
        await eventually(lambda: not any(logs.iterdir()))
        with pytest.raises(PositionLost):
            await session.attach(client, client.seen[0][0])
        await ended(begin(engine, session, "say b"))
        assert "b" in client.said()


@pytest.mark.requirement("H4")
async def test_a_process_that_keeps_no_events_in_between_makes_older_positions_unknown(tmp_path: Path) -> None:
    async with engine_at(tmp_path / "s.db", limits=LIMITS) as engine:
        session = await engine.create("/project")
        client = await watched(session)
        await ended(begin(engine, session, "say a"))
    async with engine_at(tmp_path / "s.db") as engine:
        await ended(begin(engine, await engine.restore(session.id, "/project"), "say b"))
    async with engine_at(tmp_path / "s.db", limits=LIMITS) as engine:
        session = await engine.restore(session.id, "/project")
        with pytest.raises(PositionLost):
            await session.attach(client, client.seen[-1][0])


@pytest.mark.requirement("F2", "H4")
async def test_a_hand_over_makes_older_positions_unknown(tmp_path: Path) -> None:
    async with engine_at(tmp_path / "s.db", limits=LIMITS) as engine:
        session = await engine.create("/project")
        client = await watched(session)
        await ended(begin(engine, session, "say a"))
        await cast("Any", engine.store).hand_over(session.id, "another")
        session = await engine.restore(session.id, "/project")
        with pytest.raises(PositionLost):
            await session.attach(client, client.seen[-1][0])


def test_a_position_is_written_and_read() -> None:
    assert Position.parse(str(Position(3, 14, 15))) == Position(3, 14, 15)
    assert [Position.parse(text) for text in ("", "3.14", "a.b.c", "1.2.3.4", "-1.2.3", "1.2.3\n")] == [None] * 6
    assert Position(1, 9, 9) < Position(2, 1, 1) < Position(2, 1, 2)
