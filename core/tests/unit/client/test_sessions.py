"""Sessions as a client has them: begun, found, brought back, changed and ended, in both versions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

import holdfast
from core.tests.support.clients import odd, processes_with, said
from core.tests.support.links import PATIENCE
from holdfast import Agent, Turn
from holdfast.errors import RemoteError, UsageError
from holdfast.testing.demo_agent import agent as demo_agent

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client.handshake import ProtocolChoice

versions = pytest.mark.parametrize("protocol", [1, 2])


@versions
async def test_an_agent_says_what_it_is_and_what_it_can_do(protocol: ProtocolChoice) -> None:
    async with holdfast.connect(demo_agent, protocol=protocol) as agent:
        assert agent.agent == ("holdfast-demo", "1", "Holdfast demo")
        assert agent.protocol == protocol
        assert agent.auth_methods == ()
        for what in ("load", "resume", "fork", "list", "delete", "close", "image", "audio", "resource"):
            assert agent.can(what), what
        assert not agent.can("fly")
        assert f"protocol version {protocol}" in repr(agent)
    async with holdfast.connect(demo_agent) as agent:
        assert agent.protocol == 2


@versions
async def test_a_session_says_what_can_be_set_and_sets_it(protocol: ProtocolChoice, tmp_path: Path) -> None:
    async with holdfast.connect(demo_agent, protocol=protocol) as agent:
        session = await agent.new_session(tmp_path)
        assert (session.mode, session.modes) == ("ask", {"ask": "Ask", "auto": "Auto"})
        assert (session.model, session.models) == ("small", {"small": "Small", "large": "Large"})
        assert session.options["verbose"]["currentValue"] is False
        assert session.options["tone"]["options"][0]["groupId"] == "Serious"
        await session.set("mode", "auto")
        await session.set("model", "large")
        await session.set("verbose", True)
        await session.set("tone", "pirate")
        loaded = await agent.load(session.id, tmp_path)
        for each in (session, loaded):
            assert (each.mode, each.model) == ("auto", "large")
            assert each.options["verbose"]["currentValue"] is True
            assert each.options["tone"]["currentValue"] == "pirate"
        with pytest.raises(RemoteError) as caught:
            await loaded.set("mode", "fly")
        assert caught.value.code == -32602
        assert loaded.mode == "auto"


@versions
async def test_all_sessions_are_listed_page_by_page(protocol: ProtocolChoice, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    async with holdfast.connect(demo_agent, protocol=protocol) as agent:
        ids: list[str] = []
        for number in range(60):
            session = await agent.new_session(there if number % 3 else here, additional=[tmp_path])
            await session.prompt(f"number {number}")
            ids.append(session.id)
            await session.close()
        listed = [session async for session in agent.sessions()]
        assert [session.id for session in listed] == ids[::-1]
        assert [session.title async for session in agent.sessions(cwd=here)] == [
            f"number {session}" for session in range(57, -1, -3)
        ]
        assert listed[0].additional == (str(tmp_path),)
        newest, oldest = listed[0].updated_at, listed[-1].updated_at
        assert newest is not None and oldest is not None and newest > oldest
        loaded = await agent.load(listed[0])
        assert loaded.cwd == str(there)
        assert said(loaded.history)[0] == ("user_message", "number 59")
        await agent.delete(listed[0])
        with pytest.raises(UsageError, match="closed"):
            await loaded.prompt("still there?")
        with pytest.raises(RemoteError) as caught:
            await agent.load(listed[0])
        assert caught.value.code == -32002
        assert len([session async for session in agent.sessions()]) == 59


@versions
async def test_a_list_that_is_left_early_is_left(protocol: ProtocolChoice) -> None:
    async with holdfast.connect(demo_agent, protocol=protocol) as agent:
        await (await agent.new_session()).prompt("one")
        async for _ in agent.sessions():
            break


@versions
async def test_a_session_that_is_opened_again_takes_the_place_of_the_first(
    protocol: ProtocolChoice, tmp_path: Path
) -> None:
    async with holdfast.connect(demo_agent, protocol=protocol) as agent:
        first = await agent.new_session(tmp_path)
        await first.prompt("one")
        second = await agent.load(first.id, tmp_path)
        with pytest.raises(UsageError, match="closed"):
            await first.prompt("two")
        await second.prompt("two")
        assert len(first.history) == 2
        assert len(second.history) == 4


@versions
async def test_who_must_log_in_can(protocol: ProtocolChoice) -> None:
    agent_with_a_door = Agent("door", version="1")
    opened: list[str] = []

    @agent_with_a_door.auth("key", name="A key", required=True)
    async def log_in() -> None:
        opened.append("key")

    @agent_with_a_door.logout
    async def log_out() -> None:
        opened.clear()

    @agent_with_a_door.prompt
    async def answer(turn: Turn) -> None:
        await turn.say("welcome")

    async with holdfast.connect(agent_with_a_door, protocol=protocol) as agent:
        assert [(method["id"], method["name"]) for method in agent.auth_methods] == [("key", "A key")]
        with pytest.raises(RemoteError) as caught:
            await agent.new_session()
        assert caught.value.code == -32000
        await agent.authenticate("key")
        assert opened == ["key"]
        assert await (await agent.new_session()).ask_text("hello") == "welcome"
        await agent.logout()
        assert opened == []
        with pytest.raises(RemoteError):
            await agent.new_session()


async def test_connecting_to_nothing_says_what_to_do() -> None:
    for command, advice in (((), "connect to what"), (("no-such-agent",), "no such program on PATH")):
        with pytest.raises(UsageError, match=advice):
            async with holdfast.connect(*command):
                pass
    with pytest.raises(UsageError) as caught:
        async with holdfast.connect("gemini --acp"):
            pass
    assert "one by one" in caught.value.__notes__[0]


@pytest.mark.requirement("P8")
@pytest.mark.parametrize("moment", ["connecting", "prompting", "body"])
async def test_cancelled_or_not_the_process_is_gone(moment: str) -> None:
    token = uuid4().hex
    begun = asyncio.Event()

    def note(_: bytes) -> None:
        begun.set()

    async def story() -> None:
        habits = ["says nothing", "floods stderr"] if moment == "connecting" else []
        async with odd(token, *habits, stderr=note) as agent:
            session = await agent.new_session()
            if moment == "body":
                begun.set()
                await asyncio.Event().wait()
            async for update in session.prompt("wait"):
                if update.text == "waiting":
                    begun.set()

    telling = asyncio.create_task(story())
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
        assert processes_with(token)
        telling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await telling
    assert not processes_with(token)


async def test_a_login_in_a_terminal_is_nothing_a_program_can_do() -> None:
    locked = holdfast.Agent("locked")

    @locked.auth("paste", name="Paste a key", terminal=True)
    async def paste() -> None: ...

    @locked.prompt
    async def answer(turn: holdfast.Turn) -> None: ...

    async with holdfast.connect(locked) as agent:
        assert agent.auth_methods == ()  # this library has no terminal to offer
        agent.auth_methods = ({"type": "terminal", "id": "paste", "name": "Paste", "args": ["--login", "paste"]},)
        with pytest.raises(UsageError, match="in a terminal, with --login paste added"):
            await agent.authenticate("paste")
        with pytest.raises(RemoteError, match="need a client that starts it in a terminal"):
            await agent.new_session(cwd="/")
