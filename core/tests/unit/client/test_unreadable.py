"""What an agent sends and nobody can read: whoever waits for it hears so, and what was readable is all there."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import holdfast
from core.tests.support.clients import odd, said
from core.tests.support.links import PATIENCE
from holdfast import Agent, Turn
from holdfast.errors import InvalidAnswer, MessageLost, RemoteError

if TYPE_CHECKING:
    from holdfast.client.handshake import ProtocolChoice

BIG = 20 << 20
LIMIT = 1 << 20


@pytest.mark.requirement("A4", "P11")
@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_message_of_20_megabytes_is_there_live_and_after_load(protocol: ProtocolChoice) -> None:
    speaker = Agent("speaker", version="1")

    @speaker.prompt
    async def answer(turn: Turn) -> None:
        for _ in range(BIG // (1 << 18)):
            await turn.say("x" * (1 << 18))

    async with holdfast.connect(speaker, protocol=protocol) as agent, asyncio.timeout(4 * PATIENCE):
        session = await agent.new_session()
        assert len(await session.ask_text("go on")) == BIG
        loaded = await agent.load(session.id)
        assert [len(text) for kind, text in said(loaded.history) if kind == "agent_message"] == [BIG]


@pytest.mark.requirement("A4", "P7")
@pytest.mark.parametrize("way", ["say", "think", "message", "rewrite", "text"])
async def test_what_an_author_says_at_once_may_be_more_than_a_client_may_leave_unread(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.transport.memory.MAX_UNSENT_BYTES", 16 << 20)
    speaker = Agent("speaker", version="1")

    @speaker.prompt
    async def answer(turn: Turn) -> None:
        async with turn.message() as message, turn.tool("Show") as call:
            ways = {"say": turn.say, "think": turn.think, "message": message.say, "rewrite": turn.rewrite}
            await ways.get(way, call.text)("x" * BIG)

    async with holdfast.connect(speaker, protocol=2) as agent, asyncio.timeout(4 * PATIENCE):
        session = await agent.new_session()
        await session.prompt("go on")
        loaded = await agent.load(session.id)
        for history in (session.history, loaded.history):
            assert sum(entry.text().count("x") for entry in history) == BIG


@pytest.mark.requirement("A4")
async def test_a_line_of_more_than_16_megabytes_from_somebody_else_is_read() -> None:
    async with odd() as agent, asyncio.timeout(4 * PATIENCE):
        session = await agent.new_session()
        assert len(await session.ask_text(f"long {BIG}")) == BIG


@pytest.mark.requirement("A4", "P11")
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_who_prompted_hears_that_a_line_was_too_long(version: str) -> None:
    async with odd(version, max_line_bytes=LIMIT) as agent:
        session, other = await agent.new_session(), await agent.new_session()
        turn = session.prompt(f"long {2 * LIMIT}")
        watching = session.updates()
        with pytest.raises(MessageLost, match=f"A message may be {LIMIT} bytes long") as caught:
            await turn
        assert len(caught.value.reasons) == 1
        await session.close()
        seen = [str(update) async for update in watching]
        assert turn.stop_reason == "end_turn"
        assert any(line.startswith("notice: A message of the agent could not be read") for line in seen)
        assert seen[-1] == "state_update: idle (end_turn)"
        assert await other.ask_text("say fine") == "fine"


@pytest.mark.requirement("A2", "P11")
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_who_prompted_hears_that_a_line_was_not_utf_8(version: str) -> None:
    async with odd(version) as agent:
        session = await agent.new_session()
        watching = session.updates()
        with pytest.raises(MessageLost, match="Invalid UTF-8"):
            await session.ask_text("bytes")
        assert said(session.history)[-1] == ("agent_message", "And on.")
        kinds = [(await anext(watching)).kind for _ in range(4)]
        assert "notice" in kinds
        assert await session.ask_text("say fine") == "fine"


@pytest.mark.requirement("P11")
async def test_a_history_that_could_not_be_read_whole_is_not_loaded() -> None:
    async with odd("replays bytes") as agent:
        with pytest.raises(MessageLost, match="Invalid UTF-8"):
            await agent.load("old")


@pytest.mark.requirement("A2")
async def test_an_answer_that_cannot_be_read_fails_its_request() -> None:
    async with odd() as agent, asyncio.timeout(4 * PATIENCE):
        session = await agent.new_session()
        with pytest.raises(InvalidAnswer, match="The answer cannot be read: Invalid UTF-8"):
            await session.prompt("answer badly")
        assert await session.ask_text("say fine") == "fine"


async def test_so_does_the_answer_to_initialize() -> None:
    with pytest.raises(InvalidAnswer, match="The answer cannot be read"):
        async with odd("answers badly", timeout=4 * PATIENCE):
            pass


@pytest.mark.requirement("A2")
async def test_half_an_emoji_hangs_nobody() -> None:
    async with odd() as agent, asyncio.timeout(4 * PATIENCE):
        session = await agent.new_session()
        with suppress(MessageLost):
            await session.prompt("emoji")
        turn = session.prompt("answer with half an emoji")
        with suppress(RemoteError):
            await turn
        assert turn.stop_reason in ("end_turn", "error")
        assert await session.ask_text("say fine") == "fine"


@pytest.mark.requirement("C3")
async def test_a_turn_whose_end_cannot_be_read_ends() -> None:
    async with odd("v2") as agent, asyncio.timeout(4 * PATIENCE):
        session = await agent.new_session()
        with pytest.raises(MessageLost):
            await session.prompt("end badly")
