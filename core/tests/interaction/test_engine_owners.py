"""P4: one writer. Whoever lost a session is refused, and so is whoever comes while its turn runs; both are told why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support import postgres
from core.tests.support.engines import engine_process
from core.tests.support.sessions import (
    CWD,
    ScriptedAgent,
    begin,
    ended,
    engine_at,
    history,
    run,
    texts,
    watch,
)
from holdfast.errors import SessionBusy, SessionMoved, SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from holdfast.engine import Engine, LiveSession


async def test_an_idle_session_is_taken_over_and_who_had_it_is_told_at_the_next_write(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as first, engine_at(place) as second:
        session = await first.create(CWD)
        recorder, other = await watch(first, session), await watch(first, session)
        await run(first, session, "say one")
        taken = await second.restore(session.id, CWD)
        await run(second, taken, "say two")
        turn = begin(first, session, "say lost")
        end = await ended(turn)
        assert end.reason == "error" and end.error and "taken over by process" in end.error
        with pytest.raises(SessionMoved):
            await turn.accepted
        for watcher in (recorder, other):
            assert watcher.drops == [end.error]
            assert watcher.said() == "one"
        assert agent.performed == ["say one"]
        await agent.heard("closed", session.id)
        assert agent.told.count(("closed", session.id)) == 1
        with pytest.raises(SessionNotFound):
            first.get(session.id)
        with pytest.raises(SessionMoved, match="load the session again"):
            begin(first, session, "say more")  # it is there, though not here
        back = await first.restore(session.id, CWD)  # and it may be taken back
        await run(first, back, "say three")
        assert texts(await history(first, back)) == ["one", "two", "three"]


@pytest.mark.parametrize("opener", ["restore", "fork"])
async def test_whoever_opens_a_session_that_was_taken_over_sees_what_happened_elsewhere(
    place: Path, opener: str
) -> None:
    async with engine_at(place) as first, engine_at(place) as second:
        session = await first.create(CWD)
        recorder = await watch(first, session)
        await run(first, session, "say one")
        await run(second, await second.restore(session.id, CWD), "say two")
        opened = await getattr(first, opener)(session.id, CWD)
        assert opened is not session
        assert texts(await history(first, opened)) == ["one", "two"]
        assert len(recorder.drops) == 1


WRITES: dict[str, Callable[[Engine, LiveSession], Awaitable[Any]]] = {
    "option": lambda engine, session: session.set_option("units", "f"),
    "agent's option": lambda engine, session: session.adjust_option("units", "f"),
    "title": lambda engine, session: session.rename("T"),
    "memory": lambda engine, session: session.save(),
}


@pytest.mark.parametrize("write", WRITES)
async def test_every_write_to_a_session_that_was_taken_over_is_refused_and_changes_nothing(
    place: Path, write: str
) -> None:
    async with engine_at(place) as first, engine_at(place) as second:
        session = await first.create(CWD)
        recorder = await watch(first, session)
        session.state.memory["n"] = 1
        await second.restore(session.id, CWD)
        before = await second.store.get(session.id)
        with pytest.raises(SessionMoved):
            await WRITES[write](first, session)
        assert len(recorder.drops) == 1
        assert await second.store.get(session.id) == before
        with pytest.raises(SessionNotFound):
            first.get(session.id)


@pytest.mark.parametrize("write", WRITES)
async def test_every_write_to_a_session_that_was_deleted_elsewhere_says_so(place: Path, write: str) -> None:
    async with engine_at(place) as first, engine_at(place) as second:
        session = await first.create(CWD)
        recorder = await watch(first, session)
        await second.delete(session.id)
        with pytest.raises(SessionNotFound):
            await WRITES[write](first, session)
        assert len(recorder.drops) == 1
        with pytest.raises(SessionNotFound):
            first.get(session.id)


async def test_a_prompt_or_a_load_of_a_session_that_was_deleted_elsewhere_says_so(place: Path) -> None:
    async with engine_at(place) as first, engine_at(place) as second:
        prompted, loaded = await first.create(CWD), await first.create(CWD)
        recorder = await watch(first, prompted)
        for session in (prompted, loaded):
            await second.delete(session.id)
        turns = [begin(first, prompted, "say a"), begin(first, prompted, "say b")]
        for turn in turns:
            assert (await ended(turn)).reason == "error"
        with pytest.raises(SessionNotFound):
            await turns[0].accepted
        assert len(recorder.drops) == 1
        with pytest.raises(SessionNotFound):
            await first.restore(loaded.id, CWD)
        for session in (prompted, loaded):
            with pytest.raises(SessionNotFound):
                first.get(session.id)


async def test_a_session_whose_turn_runs_is_refused_to_others_with_a_message_that_says_where(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as first, engine_at(place) as second:
        session = await first.create(CWD)
        turn = begin(first, session, "say a", "wait gate", "say b")
        await agent.at("gate")
        operations: list[Awaitable[object]] = [
            second.restore(session.id, CWD),
            second.fork(session.id, CWD),
            second.archive(session.id, archived=True),
            second.rename(session.id, "T"),
            second.delete(session.id),
        ]
        for operation in operations:
            with pytest.raises(SessionBusy, match=r"running in process \d+"):
                await operation
        await second.close(session.id)  # is not open there: nothing to do
        agent.gates["gate"].set()
        assert (await ended(turn)).reason == "end_turn"
        assert texts(await history(second, await second.restore(session.id, CWD))) == ["ab"]


async def test_prompts_that_wait_when_a_session_is_lost_are_refused_and_do_not_harm_who_has_it_next(
    place: Path,
) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as first, engine_at(place) as second:
        session = await first.create(CWD)
        await second.restore(session.id, CWD)
        turns = [begin(first, session, f"say {n}") for n in range(4)]
        assert (await ended(turns[0])).reason == "error"
        back = await first.restore(session.id, CWD)
        for turn in turns:
            assert (await ended(turn)).reason == "error"
            with pytest.raises(SessionMoved):
                await turn.accepted
        with pytest.raises(SessionMoved):
            await session.set_option("units", "f")  # by one who has not heard
        assert first.get(session.id) is back
        assert (await run(first, back, "say mine")).reason == "end_turn"
        assert agent.told.count(("closed", session.id)) == 1


async def test_two_engines_that_fight_for_a_session_lose_nothing_and_double_nothing(place: Path) -> None:
    async with engine_at(place) as first, engine_at(place) as second:
        session = await first.create(CWD)
        await run(first, session, "say start")
        done: list[str] = []

        async def fight(engine: Engine, name: str) -> None:
            for n in range(25):
                while True:
                    try:
                        ours = await engine.restore(session.id, CWD)
                        end = await ended(begin(engine, ours, f"say {name}{n}", "tick"))
                    except (SessionBusy, SessionMoved, SessionNotFound):
                        await asyncio.sleep(0)
                        continue
                    if end.reason == "end_turn":
                        done.append(f"{name}{n}")
                        break

        await asyncio.gather(fight(first, "a"), fight(second, "b"))
        said = texts(await history(second, await second.restore(session.id, CWD)))
        assert said[0] == "start"
        assert sorted(said[1:]) == sorted(done)
        for name in "ab":
            assert [it for it in said if it[0] == name] == [f"{name}{n}" for n in range(25)]


async def test_opening_a_session_many_times_at_once_opens_it_once(place: Path) -> None:
    async with engine_at(place) as engine:
        created = await engine.create(CWD)
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        for _ in range(5):
            opened = await asyncio.gather(
                *(engine.restore(created.id, CWD) for _ in range(10)),
                *(engine.fork(created.id, CWD) for _ in range(3)),
                *(engine.archive(created.id, archived=False) for _ in range(3)),
            )
            assert len({id(it) for it in opened[:10]}) == 1
            assert engine.get(created.id) is opened[0]
            assert agent.told.count(("opened", created.id)) == agent.told.count(("closed", created.id)) + 1
            await asyncio.gather(*(engine.close(created.id) for _ in range(3)))


async def test_whoever_waits_for_a_session_has_it_alone_however_many_others_come_and_go(place: Path) -> None:
    """Opening and closing overlap nowhere: the agent is told of one after the other, never of two in a row."""
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        sessions = [(await engine.create(CWD)).id for _ in range(3)]
        agent.told.clear()

        async def come_and_go(at: int) -> None:
            for n in range(30):
                session_id = sessions[(at + n) % len(sessions)]
                await engine.close(f"sess_{at}_{n}")  # somebody else's business
                await (engine.close(session_id) if n % 2 else engine.restore(session_id, CWD))
                for _ in range(at % 3):
                    await asyncio.sleep(0)

        await asyncio.gather(*(come_and_go(at) for at in range(12)))
        for session_id in sessions:
            told = [what for what, about in agent.told if about == session_id]
            assert told == ["closed", "opened"] * (len(told) // 2) + ["closed"] * (len(told) % 2)
            assert len(told) > 10


async def test_in_two_processes_a_session_moves_is_refused_and_is_taken_from_the_dead(place: Path) -> None:
    async with engine_process(place) as first, engine_process(place) as second:
        session = await first.do("create")
        assert await first.do("run", session, "say one") == ["end_turn", None]
        assert await second.do("restore", session) is False
        assert await second.do("run", session, "say two") == ["end_turn", None]
        reason, error = await first.do("run", session, "say lost")
        assert reason == "error" and f"process {second.pid}" in error
        assert first.drops == [error]
        await second.do("begin", session, "say three\ncall c Read\nwait gate\nsay never")
        refused, why = await first.do("restore", session)
        assert refused == "SessionBusy" and f"process {second.pid}" in why
        await second.kill()
        if isinstance(place, str):
            assert (await first.do("restore", session))[0] == "SessionBusy"  # until its lease is over
            await postgres.end_lease(place, session)
        assert await first.do("restore", session) is True
        stored = await first.do("history", session)
        assert texts(stored) == ["one", "two", "three"]
        assert [it["status"] for it in stored if "toolCallId" in it] == ["failed"]
        assert stored[-1] == {"sessionUpdate": "_holdfast/turn_end", "reason": "interrupted"}
        assert await first.do("performed") == ["say one"]
        assert await first.do("run", session, "say four") == ["end_turn", None]
