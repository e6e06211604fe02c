"""`holdfast sessions fork`, `rename`, `archive` and `delete`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from app.tests.support.commands import ELSEWHERE, HERE, TOOLS, a_store, live_at, sessions
from core.tests.support.engines import engine_process
from core.tests.support.sessions import ScriptedAgent, begin, engine_at, history, run, texts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    live_at(tmp_path / "s.db", monkeypatch, tmp_path)
    return tmp_path / "s.db"


def make(place: Path, *turns: tuple[str, ...]) -> list[str]:
    return asyncio.run(a_store(place, *((HERE, it) for it in turns)))


def entries(session: str) -> list[tuple[str, str | None]]:
    return [(it["role"], it["id"]) for it in sessions("show", session, "--json").json["entries"]]


# fork


@pytest.mark.requirement("B15")
def test_a_session_is_forked_whole_or_up_to_an_entry_by_its_number_or_its_id(place: Path) -> None:
    (source,) = make(place, ("say one", "\n".join(TOOLS), "say three"))
    whole = entries(source)
    message = whole[4][1]
    assert message is not None
    for at, count in ((None, 12), ("2", 2), ("6", 6), ("c1", 6), (message, 5), ("12", 12)):
        arguments = ("fork", source) if at is None else ("fork", source, "--at", at)
        done = sessions(*arguments, "--json")
        forked = done.json["session"]
        assert done.json["forkedFrom"] == source
        notes = [("note", None)] if count < 12 else []
        assert entries(forked["sessionId"]) == whole[:count] + notes, at
        assert (forked["title"], forked["cwd"]) == ("say one (fork)", HERE)
    assert entries(source) == whole


def test_a_fork_says_its_id_and_goes_on_by_itself(place: Path) -> None:
    (source,) = make(place, ("say one", "say two"))
    done = sessions("fork", source, "--at", "2", "--title", "Another way")
    forked, _, count = done.out.partition(" ")
    newer = "The files are as they are now, not as they were then."
    assert count == "(2 messages)\n" and newer in done.err
    shown = sessions("show", forked).out
    assert f"forked from {source}" in shown and newer in shown

    async def go_on() -> list[str]:
        async with engine_at(place) as engine:
            session = await engine.restore(forked, HERE)
            assert session.title == "Another way"
            await run(engine, session, "say otherwise")
            return texts(await history(engine, session))

    assert asyncio.run(go_on()) == ["one", "otherwise"]
    assert len(entries(source)) == 4


def test_a_fork_at_what_is_not_there_or_cannot_be_ended_with_is_refused(place: Path) -> None:
    (source,) = make(place, ("say one\nplan Look",))
    assert "the last before it is 2" in sessions("fork", source, "--at", "3").err
    for at in ("0", "4", "nope", "-1"):
        done = sessions("fork", source, f"--at={at}")
        assert done.status == 1 and f"`holdfast sessions show {source[5:15]}` numbers them" in done.err
    assert len(sessions("list", "--all", "--json").json["sessions"]) == 1


async def test_a_session_in_use_is_forked_without_disturbing_anybody(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(HERE)
        await run(engine, session, "say before")
        idle = await asyncio.to_thread(sessions, "fork", session.id)
        assert (idle.status, idle.err) == (0, "")
        turn = begin(engine, session, "say half", "wait gate", "say whole")
        await agent.at("gate")
        busy = await asyncio.to_thread(sessions, "fork", session.id)
        assert busy.status == 0 and "not part of the fork" in busy.err
        assert len(await asyncio.to_thread(entries, busy.out.split()[0])) == 2
        agent.gates["gate"].set()
        assert (await turn.ended).reason == "end_turn"
        assert texts(await history(engine, session)) == ["before", "halfwhole"]


async def test_what_a_turn_had_said_that_broke_is_in_the_fork(place: Path) -> None:
    async with engine_process(place) as other:
        session = await other.do("create")
        await other.do("begin", session, "say half\nwait gate")
        await other.kill()
    done = await asyncio.to_thread(sessions, "fork", session)
    shown = (await asyncio.to_thread(sessions, "show", done.out.split()[0])).out
    assert "   2  Agent\n      half\n" in shown and "broken off" in shown


# rename and archive


@pytest.mark.requirement("B17")
async def test_a_session_is_renamed_while_it_is_open_elsewhere(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(HERE)
        await run(engine, session, "say one")
        done = await asyncio.to_thread(sessions, "rename", session.id[5:12], "  A title of mine ")
        assert (done.status, done.out, done.err) == (0, f"Renamed {session.id[5:15]} “A title of mine”.\n", "")
        await run(engine, session, "say two")
        (info,) = (await engine.list()).sessions
        assert info.title == "A title of mine"
    done = await asyncio.to_thread(sessions, "rename", session.id, "")
    assert done.out == f"{session.id[5:15]} has no title now.\n"
    done = await asyncio.to_thread(sessions, "rename", session.id, "", "--json")
    assert done.json["session"]["title"] is None


def test_sessions_are_put_away_and_taken_out_again(place: Path) -> None:
    one, two, three = make(place, ("say 1",), ("say 2",), ("say 3",))
    assert sessions("archive", one, two[5:20], one).status == 0
    assert [it["sessionId"] for it in sessions("list", "--all", "--json").json["sessions"]] == [three]
    assert len(sessions("list", "--all", "--archived", "--no-headings").out.splitlines()) == 2
    assert "archived" in sessions("show", one).out
    done = sessions("archive", "--undo", one, "--json")
    assert [(it["sessionId"], it["archived"]) for it in done.json["sessions"]] == [(one, False)]
    assert sessions("archive", one, "nope").status == 1
    assert len(sessions("list", "--all", "--no-headings").out.splitlines()) == 2


def test_the_last_one_that_was_put_away_is_taken_out_again(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = asyncio.run(a_store(place, (str(tmp_path), ("say 1",)), (str(tmp_path), ("say 2",))))
    refused = sessions("archive", "last", "--undo")
    assert refused.status == 1 and "there is no archived session of this directory" in refused.err
    assert sessions("archive", "last").out == f"Archived {two[5:15]} “say 2”.\n"
    assert sessions("archive", "last", "--undo").out == f"Took {two[5:15]} “say 2” out of the archive.\n"
    assert len(sessions("list", "--all", "--no-headings").out.splitlines()) == 2
    assert sessions("archive", "--undo", one).out == f"{one[5:15]} “say 1” was not archived.\n"
    sessions("archive", one)
    assert sessions("archive", one).out == f"{one[5:15]} “say 1” was archived already.\n"


# delete


@pytest.mark.requirement("B14")
def test_sessions_are_deleted_after_somebody_was_asked(place: Path) -> None:
    one, two, three = make(place, ("say 1",), ("say 2",), ("say 3",))
    fork = sessions("fork", one, "--json").json["session"]["sessionId"]
    refused = sessions("delete", one, stdin=b"y\n")
    assert refused.status == 1 and "--yes" in refused.err
    said_no = sessions("delete", one, two, stdin=b"n\n", terminal=True)
    assert said_no.status == 1 and said_no.err.endswith("Nothing was deleted.\n")
    assert one[5:15] in said_no.err and "say 2" in said_no.err and "Delete 2 sessions for good?" in said_no.err
    assert len(sessions("list", "--all", "--no-headings").out.splitlines()) == 4
    assert sessions("delete", one, stdin=b"y\n", terminal=True).status == 0
    assert sessions("delete", two[5:15], "--yes").out == "Deleted 1 session.\n"
    assert [it["sessionId"] for it in sessions("list", "--all", "--json").json["sessions"]] == [fork, three]
    assert "      1\n" in sessions("show", fork).out


def test_nothing_is_deleted_if_one_of_the_names_is_wrong(place: Path) -> None:
    (one,) = make(place, ("say 1",))
    assert sessions("delete", one, "nope", "--yes").status == 1
    assert sessions("delete", one, "--json").status == 1
    assert sessions("delete").status == 2
    assert len(entries(one)) == 2


@pytest.mark.requirement("P4")
async def test_a_session_whose_turn_runs_is_not_deleted_and_the_others_are(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        busy, idle = await engine.create(HERE), await engine.create(ELSEWHERE)
        await run(engine, idle, "say x")
        turn = begin(engine, busy, "wait gate", "say whole")
        await agent.at("gate")
        done = await asyncio.to_thread(sessions, "delete", busy.id, idle.id, "--yes", "--json")
        assert done.status == 1
        assert [it["sessionId"] for it in done.json["sessions"]] == [idle.id]
        assert "A turn of this session is running in process" in done.json["refused"][0]["reason"]
        assert done.json["refused"][0]["sessionId"] == busy.id
        assert "stop it, then try again" in done.err
        agent.gates["gate"].set()
        assert (await turn.ended).reason == "end_turn"


@pytest.mark.requirement("F2")
def test_a_session_is_handed_to_another_agent_with_its_conversation_alone(place: Path) -> None:
    (session,) = make(place, ("say hello",))
    assert sessions("list", "--agent", "nobody").status == 1
    done = sessions("hand-over", session[5:12], "--to", "claude", "--json")
    assert done.status == 0 and done.json["sessions"][0]["agent"] == "claude"
    assert [it["sessionId"] for it in sessions("list", "--all", "--agent", "claude", "--json").json["sessions"]] == [
        session
    ]
    shown = sessions("show", session).out
    assert "hello" in shown and "claude" in shown  # the boundary is visible
    forked = sessions("fork", session, "--agent", "gemini", "--json").json["session"]
    assert forked["agent"] == "gemini"
    moved = sessions("hand-over", "--all", "--from", "gemini", "--to", "claude")
    assert moved.status == 0 and "1 session" in moved.out
    listed = sessions("list", "--all", "--agent", "claude", "--json").json["sessions"]
    assert {it["sessionId"] for it in listed} == {session, forked["sessionId"]}
    for wrong in (("hand-over", "--to", "x"), ("hand-over", session, "--all", "--from", "claude", "--to", "x")):
        assert sessions(*wrong).status == 1
