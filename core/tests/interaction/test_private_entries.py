"""Private entries: kept in a history, forked, cut and deleted with it, and never shown to a client."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from core.tests.support.acp import CWD, Client, serving
from core.tests.support.sessions import disk_as_of_now
from holdfast import Agent, Turn
from holdfast.model import LOCAL
from holdfast.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("F2")


def keeper() -> tuple[Agent, asyncio.Event]:
    """An agent that keeps every prompt, and tells what it has kept when it is asked ``what``."""
    agent, gate = Agent("keeper"), asyncio.Event()

    @agent.prompt
    async def answer(turn: Turn) -> None:
        if turn.text == "what":
            await turn.say(json.dumps([await turn.session.kept(), turn.session.cut]))
            return
        await turn.keep({"secret": turn.text})
        await turn.say(f"said {turn.text}")
        if turn.text == "wait":
            await gate.wait()

    return agent, gate


async def kept(client: Client, session: str) -> tuple[list[str], bool]:
    client.forget()
    assert await client.prompt(session, "what") == "end_turn"
    entries, cut = json.loads(client.said())
    return [entry["secret"] for entry in entries], cut


async def messages(client: Client, session: str) -> list[str]:
    replay = await client.replayed(session)
    return [update["messageId"] for update in replay if update["sessionUpdate"] in ("user_message", "agent_message")]


async def test_they_are_read_back_in_order_and_no_client_ever_sees_them(tmp_path: Path) -> None:
    agent, _ = keeper()
    async with serving(agent, tmp_path / "s.db") as host:
        client = await host.client(2)
        session = await client.new()
        for word in ("one", "two"):
            await client.prompt(session, word)
        seen = json.dumps(client.heard + await (await host.client(2)).replayed(session))
        assert "said one" in seen
        assert "secret" not in seen and "private" not in seen
        assert await kept(client, session) == (["one", "two"], False)
    async with serving(agent, tmp_path / "s.db") as host:
        client = await host.client(1)
        await client.load(session)
        assert await kept(client, session) == (["one", "two"], False)


async def test_forks_have_those_of_whole_turns_and_say_where_one_was_cut() -> None:
    agent, gate = keeper()
    async with serving(agent) as host:
        client = await host.client(2)
        session = await client.new()
        for word in ("one", "two"):
            await client.prompt(session, word)
        prompt_1, answer_1, prompt_2, _ = await messages(client, session)
        params = {"sessionId": session, "cwd": CWD}

        async def fork(up_to: str | None) -> tuple[list[str], bool]:
            meta = {"_meta": {"holdfast/upTo": up_to}} if up_to else {}
            return await kept(client, (await client.ask("session/fork", {**params, **meta}))["sessionId"])

        assert await fork(None) == (["one", "two"], False)
        assert await fork(answer_1) == (["one"], False)
        assert await fork(prompt_2) == (["one"], True)
        assert await fork(prompt_1) == ([], True)
        await client.begin_prompt(session, "wait")
        await client.until(lambda: "said wait" in client.said())
        assert await fork(None) == (["one", "two"], True)  # that of the running turn is not in it
        gate.set()


async def test_they_survive_a_kill_in_the_middle_of_their_turn(tmp_path: Path) -> None:
    agent, gate = keeper()
    place = tmp_path / "store" / "s.db"
    place.parent.mkdir()
    async with serving(agent, place) as host:
        client = await host.client(2)
        session = await client.new()
        await client.begin_prompt(session, "wait")
        await client.until(lambda: "said wait" in client.said())
        left = disk_as_of_now(place, tmp_path / "left")
        gate.set()
    async with serving(agent, left) as host:
        client = await host.client(2)
        await client.resume(session)
        assert await kept(client, session) == (["wait"], False)


async def test_another_agent_gets_the_conversation_without_them(tmp_path: Path) -> None:
    agent, _ = keeper()
    place = str(tmp_path / "s.db")
    async with serving(agent, place) as host:
        client = await host.client(2)
        session = await client.new()
        await client.prompt(session, "one")
    store = await open_store(place)
    try:
        await store.hand_over(session, "other")
        assert await store.agents(LOCAL) == ["other"]
        assert await store.read_private(session) == []
    finally:
        await store.close()
    other, _ = keeper()
    other.name = "other"
    async with serving(other, place) as host:
        client = await host.client(2)
        replay = await client.replayed(session)
        assert any(update["sessionUpdate"] == "_holdfast/hand_over" for update in replay)
        assert await kept(client, session) == ([], False)
