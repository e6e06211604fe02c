"""B15: a fork begins as its source has gone so far; after that neither knows of the other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.sessions import (
    CWD,
    ScriptedAgent,
    begin,
    block,
    ended,
    engine_at,
    history,
    run,
    texts,
    watch,
)
from holdfast.errors import InvalidParams
from holdfast.model.kinds import FORKED_EARLIER

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import Engine, LiveSession

pytestmark = pytest.mark.requirement("B15")


async def listed_messages(engine: Engine, session: LiveSession) -> int:
    return next(it.messages for it in (await engine.list()).sessions if it.id == session.id)


async def test_a_fork_has_the_whole_past_and_a_new_id_and_is_listed(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD, ["/a"])
        await run(engine, session, "say one", "call c Read", "done c", "remember n 1", "title T")
        await engine.archive(session.id, archived=True)
        fork = await engine.fork(session.id, CWD, ["/b"])
        assert fork.id != session.id
        assert fork.title == "T (fork)"
        assert fork.additional == ("/b",)
        assert fork.state.memory == {"n": 1}
        assert fork.state.forked_from == session.id
        assert agent.told[-1] == ("opened", fork.id)
        assert [it.id for it in (await engine.list()).sessions] == [fork.id]
    async with engine_at(place) as engine:
        source, fork = await engine.restore(session.id, CWD), await engine.restore(fork.id, CWD)
        assert await history(engine, fork) == await history(engine, source)
        assert await listed_messages(engine, fork) == 2


async def test_what_happens_later_on_one_side_is_not_on_the_other(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say one", "remember n 1")
        fork = await engine.fork(session.id, CWD)
        both = await history(engine, session)
        theirs, ours = await watch(engine, fork), await watch(engine, session)
        await run(engine, session, "say left", "remember n 2", "title Left")
        await run(engine, fork, "say right", "remember n 3")
        await fork.set_option("units", "f")
        await session.rename("Mine")
        deeper = await engine.fork(fork.id, CWD)
        await run(engine, deeper, "say deep")
    async with engine_at(place) as engine:
        session, fork, deeper = [await engine.restore(it.id, CWD) for it in (session, fork, deeper)]
        assert texts(await history(engine, session)) == ["one", "left"]
        assert texts(await history(engine, fork)) == ["one", "right"]
        assert texts(await history(engine, deeper)) == ["one", "right", "deep"]
        for each in (session, fork, deeper):
            assert (await history(engine, each))[: len(both)] == both
        assert [it.state.memory["n"] for it in (session, fork, deeper)] == [2, 3, 3]
        assert [it.state.options for it in (session, fork, deeper)] == [{}, {"units": "f"}, {"units": "f"}]
        assert (session.title, fork.title) == ("Mine", "say one (fork)")
        assert theirs.history() == await history(engine, fork)
        assert ours.history() == await history(engine, session)


@pytest.mark.requirement("B17")
async def test_forks_have_titles_that_tell_them_apart(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        assert (await engine.fork(session.id, CWD)).title is None
        await session.rename("word " * 15)
        fork = await engine.fork(session.id, CWD)
        deeper = await engine.fork(fork.id, CWD)
        deepest = await engine.fork(deeper.id, CWD)
        titles = [it.title or "" for it in (fork, deeper, deepest)]
        assert [title.rpartition(" (")[2] for title in titles] == ["fork)", "fork 2)", "fork 3)"]
        assert all(title.startswith("word word ") and len(title) <= 80 for title in titles)
        await run(engine, fork, "say one")
        assert fork.title == titles[0]
        assert {it.id: it.title for it in (await engine.list()).sessions} == {fork.id: titles[0]}


def split(entries: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the entries of a fork: what it has of its source, and what Holdfast says of it."""
    notes = [entry for entry in entries if entry["sessionUpdate"] == FORKED_EARLIER]
    assert all("files are as they are now" in note["text"] for note in notes)
    return [entry for entry in entries if entry not in notes], notes


@pytest.mark.requirement("B15", "P11")
async def test_a_fork_from_a_message_or_a_tool_call_ends_with_it(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        for n in range(3):
            await run(engine, session, f"say {n}", f"call c{n} Read", f"done c{n}", f"say after {n}")
        whole = await history(engine, session)
        keys = [it.get("messageId") or it["toolCallId"] for it in whole]
        for at, key in enumerate(keys):
            fork = await engine.fork(session.id, CWD, up_to=key)
            past, notes = split(await history(engine, fork))
            assert past == whole[: at + 1]
            assert len(notes) == (at + 1 < len(whole)), "the user is told that the files are newer"
            said = [it for it in whole[: at + 1] if it["sessionUpdate"] != "tool_call_update"]
            assert await listed_messages(engine, fork) == len(said)
            await run(engine, fork, "say on")
            assert (await history(engine, fork))[: at + 1] == whole[: at + 1]
        assert await history(engine, session) == whole


@pytest.mark.parametrize("up_to", ["msg_none", "", "1", '"', "%", "c"])
async def test_a_fork_from_what_is_not_there_is_refused_and_leaves_nothing_behind(up_to: str) -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say one", "unknown x", "call call Read")
        turn = begin(engine, session, "unknown x", "wait gate")
        await agent.at("gate")
        with pytest.raises(InvalidParams):
            await engine.fork(session.id, CWD, up_to=up_to)
        agent.gates["gate"].set()
        await ended(turn)
        with pytest.raises(InvalidParams):
            await engine.fork(session.id, CWD, up_to=up_to)
        assert [it.id for it in (await engine.list()).sessions] == [session.id]


async def test_a_message_whose_pieces_carry_metadata_is_forked_whole() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        chunks = [
            {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": block(it), "_meta": {"n": it}}
            for it in ("a", "b")
        ]
        await run(engine, session, *(f"emit {it!r}" for it in chunks), "say after")
        fork = await engine.fork(session.id, CWD, up_to="m")
        past, notes = split(await history(engine, fork))
        assert past == (await history(engine, session))[:-1]
        assert len(notes) == 1
        assert texts(past) == texts(await history(engine, session))[:-1]


async def test_a_running_turn_gives_what_is_finished(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say one")
        turn = begin(engine, session, "say two", "call c Read", "done c", "say three", "wait a", "call d Run", "wait b")
        await agent.at("a")
        growing = await engine.fork(session.id, CWD)
        agent.gates["a"].set()
        await agent.at("b")
        running = await engine.fork(session.id, CWD)
        at_call = await engine.fork(session.id, CWD, up_to="d")
        at_message = await engine.fork(session.id, CWD, up_to=recorder.history()[-2]["messageId"])
        earlier = await engine.fork(session.id, CWD, up_to=recorder.history()[1]["messageId"])
        agent.gates["b"].set()
        await ended(turn)
        whole = await history(engine, session)
        expected = {growing: 5, running: 6, at_call: 6, at_message: 6, earlier: 2}
        for fork, length in expected.items():
            past, notes = split(await history(engine, fork))
            assert past == whole[:length]
            assert len(notes) == (fork in (at_call, at_message, earlier))
        assert texts(await history(engine, running)) == ["one", "two", "three"]
    async with engine_at(place) as engine:
        for fork, length in expected.items():
            assert split(await history(engine, await engine.restore(fork.id, CWD)))[0] == whole[:length]
            said = [it for it in whole[:length] if "messageId" in it]
            assert await listed_messages(engine, fork) == len(said)


async def test_a_fork_taken_at_any_tick_has_every_entry_once_and_in_order(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say before")
        for ticks in range(40):
            turn = begin(engine, session, "say x", "tick", f"call c{ticks} Read", "tick", f"done c{ticks}", "say y")
            await turn.accepted
            for _ in range(ticks // 2):
                await asyncio.sleep(0)
            fork = await engine.fork(session.id, CWD)
            await ended(turn)
            forked, whole = await history(engine, fork), await history(engine, session)
            keys = [it.get("messageId") or it["toolCallId"] for it in forked]
            assert len(set(keys)) == len(keys)
            assert forked == whole[: len(forked)]
            assert await listed_messages(engine, fork) == len([it for it in forked if "messageId" in it])


async def test_a_fork_of_a_session_that_is_not_open_opens_it(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say one")
    async with engine_at(place) as engine:
        fork = await engine.fork(session.id, CWD)
        assert texts(await history(engine, fork)) == ["one"]
        assert engine.get(session.id).id == session.id


async def test_a_fork_in_another_directory_is_refused() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        with pytest.raises(InvalidParams, match="works in"):
            await engine.fork(session.id, "/other")


async def test_a_fork_of_a_session_that_never_got_a_prompt_is_not_listed_either() -> None:
    async with engine_at(":memory:") as engine:
        fork = await engine.fork((await engine.create(CWD)).id, CWD)
        assert (await engine.list()).sessions == ()
        assert await history(engine, fork) == []
        await run(engine, fork, "say hi")
        assert [it.id for it in (await engine.list()).sessions] == [fork.id]


async def test_what_the_agent_remembers_in_the_middle_of_a_turn_is_not_in_a_fork() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "remember n 1")
        turn = begin(engine, session, "remember n 2", "remember odd object()", "wait gate", "remember odd 3")
        await agent.at("gate")
        fork = await engine.fork(session.id, CWD)
        agent.gates["gate"].set()
        assert (await ended(turn)).reason == "end_turn"
        assert fork.state.memory == {"n": 1}
        assert session.state.memory == {"n": 2, "odd": 3}
