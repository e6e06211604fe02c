"""Options: set by the user and by the agent, kept with the session (D1, D2, D6)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.sessions import (
    CWD,
    ScriptedAgent,
    begin,
    disk_as_of_now,
    ended,
    engine_at,
    run,
    watch,
)
from holdfast.errors import InvalidParams
from holdfast.model import Choice, Option

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import LiveSession
    from holdfast.model import OptionValue, Update


def values(session: LiveSession) -> dict[str, Any]:
    return {it["configId"]: it["currentValue"] for it in session.options_update()["configOptions"]}


def values_in(update: Update) -> dict[str, Any]:
    return {it["configId"]: it["currentValue"] for it in update["configOptions"]}


DEFAULTS = {"units": "c", "model": "small", "loud": False}


@pytest.mark.requirement("D1")
async def test_every_option_has_its_default_in_the_order_of_the_agent() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        assert values(session) == DEFAULTS
        assert list(values(session)) == ["units", "model", "loud"]


@pytest.mark.requirement("D1", "D2")
async def test_what_was_set_comes_back_after_restart_and_in_forks_and_stays_apart(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await session.set_option("units", "f")
        await session.set_option("model", "big")
        await session.set_option("loud", True)
    async with engine_at(place) as engine:
        session = await engine.restore(session.id, CWD)
        assert values(session) == {"units": "f", "model": "big", "loud": True}
        fork = await engine.fork(session.id, CWD)
        await fork.set_option("units", "c")
        await session.set_option("model", "small")
        assert values(session) == {"units": "f", "model": "small", "loud": True}
        assert values(fork) == {"units": "c", "model": "big", "loud": True}


@pytest.mark.requirement("D2")
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("units", "k"), ("units", ""), ("units", True), ("units", None), ("units", ["c"]), ("units", 1),
        ("model", "All"), ("model", "g"), ("loud", "true"), ("loud", 1), ("loud", None),
        ("none", "c"), ("", "c"), ("Units", "c"),
    ],
)  # fmt: skip
async def test_what_was_not_offered_is_refused_and_changes_nothing(option: str, value: object) -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        with pytest.raises(InvalidParams):
            await session.set_option(option, value)
        assert values(session) == DEFAULTS
        assert recorder.events == []
        assert agent.told == [("opened", session.id)]


@pytest.mark.requirement("D2")
async def test_setting_an_option_is_shown_whole_and_told_to_the_agent() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        first, second = await watch(engine, session), await watch(engine, session)
        await session.set_option("units", "f")
        for recorder in (first, second):
            (update,) = recorder.updates("config_option_update")
            assert values_in(update) == {**DEFAULTS, "units": "f"}
        assert agent.told[-1] == ("option_set", "units", "f")
        await session.set_option("units", "f")  # again: nothing happens
        assert len(first.events) == 1
        assert agent.told.count(("option_set", "units", "f")) == 1


@pytest.mark.requirement("D2")
async def test_the_agent_may_adjust_other_options_when_it_is_told() -> None:
    agent = ScriptedAgent()

    async def adjust(session: LiveSession, option: str, value: OptionValue) -> None:
        if (option, value) == ("model", "big"):
            await session.adjust_option("loud", True)

    agent.option_set = adjust
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await session.set_option("model", "big")
        assert values(session) == {"units": "c", "model": "big", "loud": True}
        assert [values_in(it) for it in recorder.updates()] == [
            {"units": "c", "model": "big", "loud": False},
            {"units": "c", "model": "big", "loud": True},
        ]


@pytest.mark.requirement("D2")
async def test_an_option_is_set_even_if_the_agent_fails_to_react(caplog: pytest.LogCaptureFixture) -> None:
    agent = ScriptedAgent()
    agent.refuse.add("option_set")
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        await session.set_option("units", "f")
        assert values(session)["units"] == "f"
        assert "secret" in caplog.text


@pytest.mark.requirement("D6")
async def test_the_agent_may_change_options_while_a_turn_runs_and_it_is_shown_in_order() -> None:
    agent = ScriptedAgent()
    async with engine_at(":memory:", agent) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await run(engine, session, "say before", "option units f", "say after")
        kinds = [it.kind for it in recorder.events][3:]
        assert kinds == ["agent_message_chunk", "config_option_update", "agent_message_chunk", "state_update"]
        assert values(session)["units"] == "f"
        assert ("option_set", "units", "f") not in agent.told  # it knows


@pytest.mark.requirement("D6")
async def test_the_agent_cannot_set_what_it_does_not_offer() -> None:
    async with engine_at(":memory:") as engine:
        session = await engine.create(CWD)
        assert (await run(engine, session, "option units k")).reason == "error"
        assert values(session) == DEFAULTS


@pytest.mark.requirement("D1", "D6")
async def test_an_option_set_while_a_turn_runs_survives_a_kill(place: Path, tmp_path: Path) -> None:
    agent = ScriptedAgent()
    async with engine_at(place, agent) as engine:
        session = await engine.create(CWD)
        turn = begin(engine, session, "option units f", "wait gate")
        await agent.at("gate")
        await session.set_option("loud", True)
        left = disk_as_of_now(place, tmp_path / "left")
        agent.gates["gate"].set()
        await ended(turn)
    async with engine_at(left) as engine:
        assert values(await engine.restore(session.id, CWD)) == {"units": "f", "model": "small", "loud": True}


@pytest.mark.requirement("D2")
async def test_options_set_at_the_same_time_are_all_set_and_never_shown_before_they_are_stored(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        recorder = await watch(engine, session)
        await asyncio.gather(
            session.set_option("units", "f"),
            session.set_option("model", "big"),
            session.set_option("loud", True),
        )
        shown = [values_in(it) for it in recorder.updates()]
        assert shown == [
            {"units": "f", "model": "small", "loud": False},
            {"units": "f", "model": "big", "loud": False},
            {"units": "f", "model": "big", "loud": True},
        ]
    async with engine_at(place) as engine:
        assert values(await engine.restore(session.id, CWD)) == shown[-1]


@pytest.mark.requirement("D1")
async def test_a_value_that_a_newer_agent_no_longer_offers_is_its_default_again(place: Path) -> None:
    async with engine_at(place) as engine:
        session = await engine.create(CWD)
        await session.set_option("units", "f")
    fewer = (Option("units", "Units", "c", (Choice("c", "Celsius"),)),)
    async with engine_at(place, ScriptedAgent(fewer)) as engine:
        session = await engine.restore(session.id, CWD)
        assert values_in(session.options_update()) == {"units": "c"}
        await run(engine, session, "say hi")
    async with engine_at(place) as engine:  # and with the old agent it is what it was
        assert values(await engine.restore(session.id, CWD))["units"] == "f"
