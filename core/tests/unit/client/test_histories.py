"""A client that watched and one that loads later hold the same history: with the real agent, in both versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import holdfast
from core.tests.support.clients import comparable, demo, said
from core.tests.support.updates import encoded
from holdfast import Agent, Turn
from holdfast.testing.demo_agent import agent as demo_agent

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import Connection
    from holdfast.client.handshake import ProtocolChoice
    from holdfast.model import Elicitation

EVERYTHING = [
    *("hello \U0001f600", "/help", "/stream 50", "/think", "/tool", "/diff", "/terminal", "/plan", "/ask", "/form"),
    *("/usage", "/title A title", "/mode auto", "/notice", "/image", "/files", "/mcp", "/history"),
]

versions = pytest.mark.parametrize("protocol", [1, 2])


async def fill_in(_: object, question: Elicitation) -> dict[str, str]:
    return {"name": "Ada"}


async def play(agent: Connection, cwd: Path) -> tuple[list[bytes], str]:
    """Let an agent do all it can; give what was seen of it, and the id of the session."""
    session = await agent.new_session(cwd)
    for prompt in EVERYTHING:
        assert await session.prompt(prompt) == "end_turn"
    with pytest.raises(holdfast.HoldfastError, match="The agent failed"):
        await session.prompt("/fail")
    async with session.prompt("/sleep 600") as turn:
        async for update in turn:
            if update.kind == "agent_message_chunk":
                break
    assert turn.stop_reason == "cancelled"
    assert (await session.prompt("and now?")) == "end_turn"
    assert session.title == "A title"
    assert session.mode == "auto"
    assert session.usage is not None and session.usage["used"] == 53_000
    return watched(agent, session), session.id


def watched(agent: Connection, session: holdfast.ClientSession) -> list[bytes]:
    state = (session.title, session.options, session.commands, session.usage)
    history = comparable(session.history, user_ids=agent.protocol == 2)  # version 1 does not tell who prompts their ids
    return [*history, encoded(state)]


@pytest.mark.requirement("B6", "B8", "B11")
@versions
async def test_who_watched_and_who_loads_later_hold_the_same_history(protocol: ProtocolChoice, tmp_path: Path) -> None:
    async with demo(
        "--store", str(tmp_path / "db"), protocol=protocol, permissions="allow", questions=fill_in
    ) as agent:
        live, session_id = await play(agent, tmp_path)
        again = await agent.load(session_id, tmp_path)
        assert watched(agent, again) == live
    async with holdfast.connect(demo_agent, store=tmp_path / "db", protocol=protocol) as agent:
        loaded = await agent.load(session_id, tmp_path)
        assert watched(agent, loaded) == live
        assert ("agent_message", "hello \U0001f600") in said(loaded.history)
        assert ("agent_message", "Hello, Ada.") in said(loaded.history)


@versions
async def test_a_question_that_is_about_no_tool_call_leaves_none_behind(protocol: ProtocolChoice) -> None:
    asking = Agent("asking", version="1")

    @asking.prompt
    async def answer(turn: Turn) -> None:
        await turn.say(str(await turn.allow("May I?")))

    async with holdfast.connect(asking, protocol=protocol, permissions="allow") as agent:
        session = await agent.new_session()
        assert await session.ask_text("go on") == "True"
        assert [entry.entity for entry in session.history] == ["user_message", "agent_message"]
        assert watched(agent, await agent.load(session.id)) == watched(agent, session)


@pytest.mark.requirement("B19")
async def test_in_the_other_version_the_conversation_is_the_same(tmp_path: Path) -> None:
    async with holdfast.connect(demo_agent, store=tmp_path / "db", protocol=1, permissions="allow") as agent:
        _, session_id = await play(agent, tmp_path)
    told: list[list[tuple[str, str]]] = []
    for protocol in (1, 2):
        async with holdfast.connect(demo_agent, store=tmp_path / "db", protocol=protocol) as agent:
            loaded = await agent.load(session_id, tmp_path)
            told.append(said(loaded.history))
            assert "Tool: Read thermometer (read, completed)" in loaded.history.markdown()
    assert told[0] == told[1]


@versions
async def test_a_fork_and_a_session_that_goes_on_have_the_same_past(protocol: ProtocolChoice, tmp_path: Path) -> None:
    async with holdfast.connect(demo_agent, protocol=protocol) as agent:
        session = await agent.new_session(tmp_path)
        await session.prompt("one")
        fork = await session.fork()
        assert fork.id != session.id
        assert said(fork.history) == said(session.history)
        await fork.prompt("two")
        await session.prompt("three")
        assert [text for _, text in said(fork.history)] == ["one", "one", "two", "two"]
        assert watched(agent, await agent.load(fork.id, tmp_path)) == watched(agent, fork)
        assert said((await agent.load(session.id, tmp_path)).history) == said(session.history)


@versions
async def test_a_session_that_was_resumed_has_no_past_but_a_present(protocol: ProtocolChoice, tmp_path: Path) -> None:
    async with holdfast.connect(demo_agent, store=tmp_path / "db", protocol=protocol) as agent:
        session = await agent.new_session(tmp_path)
        await session.set("mode", "auto")
        await session.prompt("one")
    async with holdfast.connect(demo_agent, store=tmp_path / "db", protocol=protocol) as agent:
        resumed = await agent.resume(session.id, tmp_path)
        assert len(resumed.history) == 0
        assert resumed.mode == "auto"
        await resumed.prompt("two")
        assert said(resumed.history) == [("user_message", "two"), ("agent_message", "two")]
        loaded = await agent.load(session.id, tmp_path)
        assert [text for _, text in said(loaded.history)] == ["one", "one", "two", "two"]
