"""Creating, finding, restoring and ending sessions, as the engine does it."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from core.tests.support.sessions import (
    CWD,
    PATIENCE,
    ScriptedAgent,
    begin,
    ended,
    engine_at,
    found,
    history,
    run,
    texts,
    watch,
)
from holdfast.errors import InvalidParams, SessionNotFound
from holdfast.model import Page

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.requirement("B1")
async def test_a_session_that_never_got_a_prompt_is_there_after_a_restart(place: Path) -> None:
    async with engine_at(place) as engine:
        created = (await engine.create(CWD)).id
    async with engine_at(place) as engine:
        assert (await engine.restore(created, CWD)).id == created


@pytest.mark.requirement("B1")
async def test_ids_of_sessions_are_long_and_differ() -> None:
    async with engine_at(":memory:") as engine:
        ids = {(await engine.create(CWD)).id for _ in range(50)}
    assert len(ids) == 50
    assert all(re.fullmatch(r"sess_[0-9a-f]{32,}", it) for it in ids)


@pytest.mark.requirement("B1", "B3")
@pytest.mark.parametrize("cwd", ["", ".", "project", "../x", "~", None, 3, b"/x", ["/x"], "/x\0y"])
async def test_a_working_directory_that_is_no_absolute_path_is_refused(cwd: object) -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        for refused in (engine.create(cwd), engine.restore(session.id, cwd), engine.fork(session.id, cwd)):
            with pytest.raises(InvalidParams):
                await refused


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("additional", ["/a", [""], ["a"], [3], [None], None, {"/a": 1}, ["/a", "./b"]])
async def test_additional_directories_that_are_no_absolute_paths_are_refused(additional: object) -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        refusals = (
            engine.create(CWD, additional),
            engine.restore(session.id, CWD, additional),
            engine.fork(session.id, CWD, additional),
        )
        for refused in refusals:
            with pytest.raises(InvalidParams):
                await refused


@pytest.mark.requirement("B3")
async def test_additional_directories_keep_their_order_without_duplicates_and_without_the_working_directory() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD, ["/z", "/a", "/z", CWD, "/z/"])
        assert session.roots == (CWD, "/z", "/a", "/z/")


@pytest.mark.requirement("B3")
async def test_additional_directories_are_the_ones_named_last_and_never_come_back_from_the_store(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD, ["/a", "/b"])
        await run(engine, session, "say hi")
        assert (await engine.list()).sessions[0].additional == ("/a", "/b")
    async with engine_at(place) as engine:
        session = await engine.restore(session.id, CWD, ["/c"])
        assert session.additional == ("/c",)
        assert (await engine.list()).sessions[0].additional == ("/c",)
        fork = await engine.fork(session.id, CWD)
        assert fork.additional == ()
        assert (await engine.restore(session.id, CWD)).additional == ()
        assert [it.additional for it in (await engine.list()).sessions] == [(), ()]


@pytest.mark.requirement("B4")
async def test_sessions_are_listed_by_their_latest_activity_and_by_directory() -> None:
    async with engine_at(":memory:") as engine:
        first, second, other = [await engine.create(it) for it in (CWD, CWD, "/other")]
        for session in (first, second, other, first):
            await run(engine, session, "say hi")
        assert [it.id for it in (await engine.list()).sessions] == [first.id, other.id, second.id]
        assert [it.id for it in (await engine.list(cwd=CWD)).sessions] == [first.id, second.id]
        assert (await engine.list(cwd=f"{CWD}/")).sessions == ()
        assert [it.messages for it in (await engine.list(cwd=CWD)).sessions] == [4, 2]


@pytest.mark.requirement("B4")
async def test_pages_show_every_session_once_while_sessions_change_and_after_a_restart(place: Path) -> None:
    async with engine_at(place) as engine:
        sessions = [await engine.create(CWD) for _ in range(7)]
        for session in sessions:
            await run(engine, session, "say hi")
        newest_first = [it.id for it in reversed(sessions)]
        page = await engine.list(limit=3)
        seen = [it.id for it in page.sessions]
        assert seen == newest_first[:3]
        await run(engine, sessions[0], "say again")  # moves from the last page to the first
        await engine.delete(sessions[1].id)
    async with engine_at(place) as engine:
        while page.cursor is not None:
            page = await engine.list(limit=3, cursor=page.cursor)
            seen += [it.id for it in page.sessions]
        assert seen == newest_first[:5]
        for bad in ("", "x", "AAAA", page.sessions[0].id):
            with pytest.raises(InvalidParams):
                await engine.list(cursor=bad)


@pytest.mark.requirement("B4")
async def test_a_page_has_fifty_sessions_unless_said_otherwise() -> None:
    async with engine_at(":memory:") as engine:
        for _ in range(51):
            await run(engine, await engine.create(CWD), "say hi")
        page = await engine.list()
        assert len(page.sessions) == 50 and page.cursor
        assert len((await engine.list(cursor=page.cursor)).sessions) == 1


@pytest.mark.requirement("B5")
async def test_sessions_without_a_prompt_are_not_listed_and_can_be_loaded() -> None:
    async with engine_at(":memory:") as engine:
        blank = await engine.create(CWD)
        refused = begin(engine, blank, "say hi")
        blank.cancel()  # before it was stored
        assert (await ended(refused)).reason == "cancelled"
        assert (await engine.list()) == Page((), None)
        await engine.close(blank.id)
        assert (await history(engine, await engine.restore(blank.id, CWD))) == []


@pytest.mark.requirement("B10")
async def test_a_session_is_not_restored_in_another_directory_nor_when_there_is_none(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        for opened in (True, False):
            with pytest.raises(InvalidParams, match="works in"):
                await engine.restore(session.id, "/other")
            if opened:
                await engine.close(session.id)
        for operation in (engine.restore("sess_none", CWD), engine.fork("sess_none", CWD)):
            with pytest.raises(SessionNotFound) as refused:
                await operation
            assert refused.value.data == {"sessionId": "sess_none"}
        with pytest.raises(SessionNotFound):
            engine.get("sess_none")


@pytest.mark.requirement("B10")
async def test_restoring_changes_nothing_about_the_last_activity(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say hi")
        before = (await engine.list()).sessions[0]
    async with engine_at(place) as engine:
        session = await engine.restore(session.id, CWD)
        await watch(engine, session)
        await session.set_option("units", "f")
        await engine.close(session.id)
        assert (await engine.list()).sessions[0] == before


@pytest.mark.requirement("B13")
async def test_closing_ends_the_turn_as_cancelled_before_the_watcher_is_let_go() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn, waiting = begin(engine, session, "call c Read", "wait gate"), begin(engine, session, "say later")
        await agent.at("gate")
        await engine.close(session.id)
        assert (await ended(turn)).reason == (await ended(waiting)).reason == "cancelled"
        assert recorder.states() == ["running", "cancelled"]
        assert [it.get("status") for it in recorder.updates("tool_call_update")] == ["in_progress", "cancelled"]
        assert recorder.drops == []
        assert agent.told[-1] == ("closed", session.id)
        with pytest.raises(SessionNotFound):
            engine.get(session.id)
        seen = len(recorder.events)
        again = await engine.restore(session.id, CWD)
        assert recorder.history() == await history(engine, again)
        await run(engine, again, "say more")
        assert len(recorder.events) == seen  # whoever was let go is shown nothing more


@pytest.mark.requirement("B13")
async def test_closing_what_is_not_open_succeeds(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await engine.close(session.id)
        await engine.close(session.id)
        await engine.close("sess_none")
        assert await engine.restore(session.id, CWD)


@pytest.mark.requirement("B13")
async def test_prompts_that_come_while_a_session_closes_are_refused_and_do_not_hold_it_up() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        begin(engine, session, "swallow gate", "wait second")
        await agent.at("gate")
        closing = asyncio.ensure_future(engine.close(session.id))
        await agent.at("second")  # it has swallowed the cancellation and goes on
        with pytest.raises(SessionNotFound):
            begin(engine, session, "say late")
        agent.gates["second"].set()
        async with asyncio.timeout(PATIENCE):
            await closing
        assert len(agent.performed) == 1


@pytest.mark.requirement("B14")
async def test_a_deleted_session_is_gone_and_its_forks_stay_whole(place: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say first")
        fork = await engine.fork(session.id, CWD)
        begin(engine, session, "say second", "wait gate")
        await agent.at("gate")
        await engine.delete(session.id)
        assert agent.told[-1] == ("closed", session.id)
        await engine.delete(session.id)
        await engine.delete("sess_none")
        with pytest.raises(SessionNotFound):
            await engine.restore(session.id, CWD)
        assert [it.id for it in (await engine.list()).sessions] == [fork.id]
    async with engine_at(place) as engine:
        with pytest.raises(SessionNotFound):
            await engine.restore(session.id, CWD)
        assert texts(await history(engine, await engine.restore(fork.id, CWD))) == ["first"]
        assert {it.session.id for it in await found(engine, "first")} == {fork.id}


@pytest.mark.requirement("B16")
async def test_archived_sessions_are_listed_only_where_asked_for_and_go_on_working(place: Path) -> None:
    async with engine_at(place) as engine:
        kept, away = await engine.create(CWD), await engine.create(CWD)
        for session in (kept, away):
            await run(engine, session, "say hi")
        await engine.archive(away.id, archived=True)
        assert [it.id for it in (await engine.list()).sessions] == [kept.id]
        with pytest.raises(SessionNotFound):
            engine.get(away.id)  # as if it had been closed (B16)
        await run(engine, await engine.restore(away.id, CWD), "say more")
    async with engine_at(place) as engine:
        listed = [it.id for it in (await engine.list(archived="include")).sessions]
        assert listed == [away.id, kept.id]
        assert [it.id for it in (await engine.list(archived="only")).sessions] == [away.id]
        await engine.archive(away.id, archived=False)  # also when it is not open
        assert [it.id for it in (await engine.list()).sessions] == [away.id, kept.id]
        with pytest.raises(SessionNotFound):
            await engine.archive("sess_none", archived=True)
