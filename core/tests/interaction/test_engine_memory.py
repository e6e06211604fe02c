"""What an author's agent remembers with a session (`state.memory`), and what it must not be able to break by that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from core.tests.support.sessions import (
    CWD,
    Recorder,
    ScriptedAgent,
    begin,
    disk_as_of_now,
    ended,
    engine_at,
    history,
    run,
    texts,
    watch,
)

if TYPE_CHECKING:
    from pathlib import Path


async def test_what_the_agent_remembers_is_there_in_the_next_turn_and_after_a_restart(place: Path) -> None:
    value = {"list": [1, 2.5, None, True], "deep": {"a": {"b": "ü"}}, "big": 2**70}
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await run(engine, session, f"remember a {value!r}", "remember b 1")
        assert session.state.memory == {"a": value, "b": 1}
    async with engine_at(place) as engine:
        session = await engine.restore(session.id, CWD)
        assert session.state.memory == {"a": value, "b": 1}


async def test_what_the_agent_saves_in_a_turn_survives_a_kill_and_what_it_does_not_save_is_as_before(
    place: Path, tmp_path: Path
) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        await run(engine, session, "remember n 1")
        turn = begin(engine, session, "remember n 2", "wait save", "remember n 3", "wait gate")
        await agent.at("save")
        unsaved = disk_as_of_now(place, tmp_path / "unsaved")
        await session.save()
        agent.gates["save"].set()
        await agent.at("gate")
        saved = disk_as_of_now(place, tmp_path / "saved")
        agent.gates["gate"].set()
        await ended(turn)
    for left, value in ((unsaved, 1), (saved, 2), (place, 3)):
        async with engine_at(left) as engine:
            assert (await engine.restore(session.id, CWD)).state.memory == {"n": value}


@pytest.mark.parametrize(
    "value",
    [
        "object()",
        "lambda: 0",
        "{(1, 2): 3}",
        "[{'deep': [object()]}]",
        "(lambda it: it.append(it) or it)([])",
        "1j",
    ],
)
async def test_what_is_not_json_is_forgotten_the_turn_fails_and_nothing_else_is_lost(
    place: Path, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session, Recorder(always="allow_always"))
        await run(engine, session, "remember n 1")
        end = await run(engine, session, "say a", "ask write", "usage 5", f"remember n {value}", "remember m 2")
        assert end.reason == "error" and end.error and "not JSON" in end.error
        assert "object" not in end.error and "function" not in end.error
        assert "cannot be stored" in caplog.text
        stored = await history(engine, session)
        assert texts(stored) == ["a", "yes"]
        assert stored[-1]["sessionUpdate"] == "_holdfast/turn_end"
        assert recorder.history() == stored
        assert session.state.memory == {"n": 1}
        await session.set_option("units", "f")  # the session works as before
        assert (await run(engine, session, "remember k 3")).reason == "end_turn"
    async with engine_at(place) as engine:
        session = await engine.restore(session.id, CWD)
        assert session.state.memory == {"n": 1, "k": 3}
        assert session.state.permissions == {"write": True}
        assert session.state.latest["usage_update"]["used"] == 5


async def test_every_session_has_a_memory_of_its_own() -> None:
    async with engine_at(":memory:") as engine:
        first, second = await engine.create(CWD), await engine.create(CWD)
        await run(engine, first, "remember n 1")
        assert second.state.memory == {}
