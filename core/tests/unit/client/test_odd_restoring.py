"""How real agents restore sessions, one habit at a time: the history is whole, or the caller hears that it is not."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from core.tests.support.clients import folded, odd, said
from core.tests.support.wire import until
from holdfast.errors import InvalidAnswer, MessageLost, RemoteError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

REPLAYED = [("user_message", "Who are you?"), ("agent_message", "I am odd.")]


@pytest.mark.usefixtures("patient")
async def test_a_replay_that_goes_on_after_the_answer_is_over_when_load_returns() -> None:
    async with odd("replays late") as agent:
        session = await agent.load("old")
        assert said(session.history) == REPLAYED


@pytest.mark.usefixtures("patient")
async def test_the_next_turn_has_nothing_of_a_replay_that_came_late() -> None:
    async with odd("replays late") as agent:
        session = await agent.load("old")
        updates = [update async for update in session.prompt("say hello")]
        assert said(folded(updates)) == [("user_message", "say hello"), ("agent_message", "hello")]
        assert said(session.history) == [*REPLAYED, ("user_message", "say hello"), ("agent_message", "hello")]


async def test_a_program_that_is_held_up_while_it_loads_has_the_whole_replay_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks at what came while it did something else, and waits for the rest, though it is late by then."""
    monkeypatch.setattr("holdfast.client.open_session.QUIET_SECONDS", 2.0)
    gate, passed = tmp_path / "gate", tmp_path / "passed"

    def hold_up() -> None:
        time.sleep(2.5)
        gate.touch()
        until(passed.exists)

    async with odd("replays late", env={"GATE": str(gate)}) as agent:
        asyncio.get_running_loop().call_later(0.2, hold_up)
        session = await agent.load("old")
        assert said(session.history) == REPLAYED


async def test_a_replay_that_never_ends_does_not_hold_up_load_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.client.open_session.REPLAY_SECONDS", 3.0)
    async with odd("replays for ever") as agent:
        session = await agent.load("old")
        assert said(session.history)[0][1].startswith("still ")


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_an_agent_that_replays_although_nobody_asked_tells_the_history(version: str) -> None:
    async with odd(version) as agent:
        session = await agent.resume("old")
        assert said(session.history) == REPLAYED
        assert not session.running


@pytest.mark.requirement("P11")
async def test_a_session_that_is_not_there_is_an_error_or_has_no_history() -> None:
    async with odd() as agent:
        with pytest.raises(RemoteError, match="Internal error") as caught:
            await agent.load("missing")
        assert caught.value.code == -32603
        assert said((await agent.load("there")).history) == REPLAYED
    async with odd("has everything") as agent:
        assert len((await agent.load("missing")).history) == 0


@pytest.mark.requirement("P11")
async def test_a_session_that_was_begun_anew_instead_of_loaded_is_an_error() -> None:
    async with odd("begins anew") as agent:
        with pytest.raises(InvalidAnswer, match="names another session"):
            await agent.load("old")


@pytest.mark.requirement("P11")
@pytest.mark.parametrize("habit", ["refuses what is open", "begins anew", "replays bytes"])
async def test_a_session_that_cannot_be_loaded_again_stays_open(habit: str) -> None:
    async with odd(habit) as agent:
        session = await agent.new_session()
        await session.ask_text("say hello")
        with pytest.raises((RemoteError, MessageLost)):
            await agent.load(session.id)
        assert not session.closed
        assert await session.ask_text("say more") == "more"
        assert [text for _, text in said(session.history)] == ["say hello", "hello", "say more", "more"]


async def test_a_refusal_to_load_says_why() -> None:
    async with odd("refuses what is open") as agent:
        session = await agent.new_session()
        with pytest.raises(RemoteError, match=r"Invalid params \(-32602\): Session is already open"):
            await agent.load(session.id)
        await session.close()
        assert said((await agent.load(session.id)).history) == REPLAYED


async def test_an_agent_that_tells_everything_twice_of_what_was_open_does_not_of_what_was_closed() -> None:
    async with odd("doubles what is open") as agent:
        session = await agent.new_session()
        assert await session.ask_text("say one") == "one"
        await session.close()
        with pytest.raises(UsageError, match="closed"):
            await session.ask_text("say two")
        again = await agent.load(session.id)
        assert said(again.history) == REPLAYED
        assert await again.ask_text("say two") == "two"


async def test_of_prompts_that_have_no_ids_and_got_no_answer_every_word_is_in_the_history() -> None:
    async with odd("has prompts without answers") as agent:
        session = await agent.load("old")
        kinds = [kind for kind, _ in said(session.history)]
        assert kinds == ["user_message", "agent_message"]
        assert said(session.history)[0][1] == "OneTwoWho are you?"


# Forks


async def test_a_fork_that_the_agent_says_nothing_of_has_the_past_of_its_parent() -> None:
    async with odd("forks silently") as agent:
        parent = await agent.new_session()
        await parent.prompt("tool")
        fork = await parent.fork()
        assert [list(entry.updates()) for entry in fork.history] == [list(entry.updates()) for entry in parent.history]
        await fork.prompt("say more")
        assert said(fork.history)[-1] == ("agent_message", "more")
        assert ("agent_message", "more") not in said(parent.history)
        await parent.prompt("say less")
        assert ("agent_message", "less") not in said(fork.history)


async def test_a_fork_that_the_agent_tells_has_the_past_it_tells() -> None:
    async with odd() as agent:
        parent = await agent.new_session()
        await parent.prompt("say hello")
        assert said((await parent.fork()).history) == REPLAYED
