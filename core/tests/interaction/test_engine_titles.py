"""B17: a title is made of the first prompt, and never in the place of one that somebody gave."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.support.sessions import (
    CWD,
    ScriptedAgent,
    begin,
    disk_as_of_now,
    ended,
    engine_at,
    found,
    run,
    watch,
)

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import Engine

pytestmark = pytest.mark.requirement("B17")


async def listed_title(engine: Engine) -> str | None:
    return (await engine.list()).sessions[0].title


async def test_a_title_is_made_of_the_first_prompt_announced_and_kept(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "\n  # say `Hello` **world**\nsay more")
        assert session.title == await listed_title(engine) == "say `Hello` **world**"
        assert [it["title"] for it in recorder.updates("session_info_update")] == ["say `Hello` **world**"]
        await run(engine, session, "say another")
        assert session.title == "say `Hello` **world**"
    async with engine_at(place) as engine:
        session = await engine.restore(session.id, CWD)
        assert session.title == "say `Hello` **world**"
        await run(engine, session, "say a third")
        assert await listed_title(engine) == "say `Hello` **world**"


async def test_a_long_prompt_makes_a_title_of_eighty_characters() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say " + "word " * 100)
        assert session.title is not None and len(session.title) <= 80 and session.title.endswith("…")


async def test_a_prompt_that_says_nothing_leaves_the_title_to_the_next() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        await ended(session.prompt([{"type": "image", "data": "", "mimeType": "image/png"}]))
        assert session.title is None
        await run(engine, session, "say b")
        assert session.title == "say b"


@pytest.mark.parametrize("title", ["Mine", None])
async def test_a_title_the_user_gave_or_took_away_is_not_replaced_by_a_prompt(place: Path, title: str | None) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await session.rename(title)
        assert recorder.updates() == [{"sessionUpdate": "session_info_update", "title": title}]
    async with engine_at(place) as engine:
        session = await engine.restore(session.id, CWD)
        await run(engine, session, "say hi")
        assert session.title == await listed_title(engine) == title


async def test_a_title_the_agent_gives_in_a_turn_replaces_the_one_made_of_the_prompt(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "title Weather", "say x")
        assert [it["title"] for it in recorder.updates("session_info_update")] == ["title Weather", "Weather"]
        assert session.title == await listed_title(engine) == "Weather"
        await run(engine, session, "say next")
        assert await listed_title(engine) == "Weather"
        await run(engine, session, "title ")
        assert session.title is None
        await run(engine, session, "say next")
        assert await listed_title(engine) is None


async def test_a_title_the_user_gives_while_a_turn_runs_is_not_undone_by_its_end(place: Path, tmp_path: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        turn = begin(engine, session, "title Agent's", "wait gate", "say x")
        await agent.at("gate")
        await session.rename("User's")
        left = disk_as_of_now(place, tmp_path / "left")
        assert [it["title"] for it in recorder.updates("session_info_update")][1:] == ["Agent's", "User's"]
        agent.gates["gate"].set()
        await ended(turn)
        assert session.title == await listed_title(engine) == "User's"
    async with engine_at(place) as engine:
        assert (await engine.restore(session.id, CWD)).title == "User's"
    async with engine_at(left) as engine:  # nor by a kill
        assert (await engine.restore(session.id, CWD)).title == "User's"
        assert await listed_title(engine) == "User's"


async def test_titles_given_at_the_same_time_end_with_the_one_that_was_shown_last(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        for ticks in range(24):
            turn = begin(engine, session, "tick", f"title Agent's {ticks}", "tick")
            await turn.accepted
            for _ in range(ticks // 2):
                await asyncio.sleep(0)
            await asyncio.gather(session.rename(f"User's {ticks}"), ended(turn))
            shown = recorder.updates("session_info_update")[-1]["title"]
            assert session.title == await listed_title(engine) == shown


async def test_a_title_the_agent_gave_in_a_turn_survives_a_kill(place: Path, tmp_path: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        turn = begin(engine, session, "title Weather", "usage 5", "wait gate")
        await agent.at("gate")
        await session.journal.shown()
        left = disk_as_of_now(place, tmp_path / "left")
        agent.gates["gate"].set()
        await ended(turn)
    async with engine_at(left) as engine:
        session = await engine.restore(session.id, CWD)
        assert session.title == await listed_title(engine) == "Weather"
        assert session.state.latest["usage_update"]["used"] == 5


async def test_a_session_can_be_renamed_by_its_id_whether_it_is_open_or_not(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "say hi")
        await engine.rename(session.id, "Open")
        assert session.title == await listed_title(engine) == "Open"
        await engine.close(session.id)
        await engine.rename(session.id, "Closed")
        assert await listed_title(engine) == "Closed"
        assert [it.text for it in await found(engine, "closed")] == ["Closed"]
        assert await found(engine, "open") == []
