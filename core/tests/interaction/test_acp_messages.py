"""Where a message ends and the next begins, in both versions (C7)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.support.acp import Update, conversation, serving
from holdfast import Agent, Turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

VERSIONS = pytest.mark.parametrize("version", [1, 2])

pytestmark = pytest.mark.requirement("C7")


async def told(version: int, act: Callable[[Turn], Awaitable[object]]) -> list[tuple[str, str]]:
    """Let an agent act in a turn; return the kinds and texts of what is replayed, which is what was told live."""
    agent = Agent("talking")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await act(turn)

    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        assert await client.prompt(session, "go") == "end_turn"
        live = [
            update for update in client.updates() if update["sessionUpdate"] not in ("state_update", "user_message")
        ]
        replay = [
            update
            for update in await client.replayed(session)
            if not update["sessionUpdate"].startswith("user_message")
        ]
        shown = texts(conversation(update for update in replay if update["sessionUpdate"] != "state_update"))
        assert shown == texts(conversation(live))
        return shown


def texts(entries: list[Update]) -> list[tuple[str, str]]:
    kinds = ("agent_message", "agent_thought")
    return [
        (entry["sessionUpdate"].removeprefix("agent_"), "".join(block["text"] for block in entry["content"]))
        if entry["sessionUpdate"] in kinds
        else ("call", entry["title"])
        for entry in entries
    ]


async def talk(turn: Turn, words: str = "one sentence in many pieces") -> None:
    for word in words.split():
        await turn.say(f"{word} ")
        await asyncio.sleep(0)


async def work(turn: Turn, title: str = "Work") -> None:
    async with turn.tool(title) as call:
        for n in range(8):
            await call.text(f"{n}")
            await asyncio.sleep(0)


@VERSIONS
async def test_text_said_while_a_tool_works_in_another_task_is_one_message(version: int) -> None:
    async def act(turn: Turn) -> None:
        await asyncio.gather(talk(turn), work(turn), work(turn, "More work"))

    assert ("message", "one sentence in many pieces ") in await told(version, act)


@VERSIONS
async def test_a_tool_started_while_one_talks_does_not_cut_what_is_said(version: int) -> None:
    async def act(turn: Turn) -> None:
        await turn.say("here: ")
        working = asyncio.create_task(work(turn))
        await talk(turn)
        await working

    assert ("message", "here: one sentence in many pieces ") in await told(version, act)


@VERSIONS
async def test_output_of_a_tool_between_two_pieces_does_not_cut_a_message(version: int) -> None:
    async def act(turn: Turn) -> None:
        async with turn.tool("Work") as call:
            for word in ("one ", "sentence"):
                await turn.say(word)
                await call.text("output")

    assert await told(version, act) == [("call", "Work"), ("message", "one sentence")]


@VERSIONS
@pytest.mark.parametrize("how", ["here", "in tasks"])
async def test_what_is_said_after_tools_is_a_message_of_its_own(version: int, how: str) -> None:
    async def act(turn: Turn) -> None:
        await turn.say("before")
        await (work(turn, "Work") if how == "here" else asyncio.gather(work(turn, "Work")))
        await turn.say("after")

    assert await told(version, act) == [("message", "before"), ("call", "Work"), ("message", "after")]


@VERSIONS
async def test_a_task_for_each_piece_makes_no_message_of_each(version: int) -> None:
    async def act(turn: Turn) -> None:
        for word in ("a", "b", "c"):
            await asyncio.create_task(turn.say(word))
        await work(turn)
        await turn.say("d")

    assert await told(version, act) == [("message", "abc"), ("call", "Work"), ("message", "d")]


@VERSIONS
async def test_thoughts_beside_an_answer_cut_neither(version: int) -> None:
    async def think(turn: Turn) -> None:
        for piece in ("I ", "wonder"):
            await turn.think(piece)
            await asyncio.sleep(0)

    async def act(turn: Turn) -> None:
        await asyncio.gather(talk(turn, "a b c"), think(turn))

    assert sorted(await told(version, act)) == [("message", "a b c "), ("thought", "I wonder")]


@VERSIONS
async def test_tasks_that_talk_at_once_can_each_begin_a_message_by_hand(version: int) -> None:
    ids: list[str] = []

    async def tell(turn: Turn, words: str, *, thought: bool = False) -> None:
        async with turn.message(thought=thought) as message:
            ids.append(message.id)
            for word in words.split():
                await message.say(word)
                await asyncio.sleep(0)

    async def act(turn: Turn) -> None:
        await turn.say("both: ")
        await asyncio.gather(tell(turn, "a b c"), tell(turn, "1 2 3"), tell(turn, "x y", thought=True))
        await turn.say("done")

    assert await told(version, act) == [
        ("message", "both: "), ("message", "abc"), ("message", "123"), ("thought", "xy"), ("message", "done"),
    ]  # fmt: skip
    assert len(set(ids)) == 3


@VERSIONS
async def test_a_message_begun_by_hand_can_be_rewritten_and_show_blocks(version: int) -> None:
    agent = Agent("rewriting")
    image = {"type": "image", "mimeType": "image/png", "data": "aGk="}

    @agent.prompt
    async def answer(turn: Turn) -> None:
        async with turn.message() as message:
            await message.say("wrong")
            await message.rewrite("right")
            await message.show(image)

    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        assert await client.prompt(session, "go") == "end_turn"
        (entry,) = [e for e in conversation(await client.replayed(session)) if e["sessionUpdate"] == "agent_message"]
        assert entry["content"] == [{"type": "text", "text": "right"}, image]
