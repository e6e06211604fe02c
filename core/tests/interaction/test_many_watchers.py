"""Many clients of one session: what is made once for all of them is what each would have been told alone (F4)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import Client, Serving
from holdfast import Agent, Turn
from holdfast.agent.port import AuthorAgent
from holdfast.server import Host
from holdfast.server.shared_lines import SharedLines

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

pytestmark = pytest.mark.requirement("F4")

agent = Agent("many")


@agent.prompt
async def answer(turn: Turn) -> None:
    for n in range(20):
        await turn.say(f"word {n} ")
        await asyncio.sleep(0)
    async with turn.tool("Look", kind="read") as call:
        await turn.say("meanwhile ")
        await call.text("half")
        for n in range(20):
            await turn.say(f"more {n} ")
    await turn.say("the end")


class Counted(SharedLines):
    """Counts how often lines were made, and how often they were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = self.made = 0

    def get(self, key: Hashable, events: Any, before: Any, make: Callable[[], bytes]) -> bytes:
        def counted() -> bytes:
            self.made += 1
            return make()

        self.asked += 1
        return super().get(key, events, before, counted)


async def test_all_hear_the_same_in_their_version_and_lines_are_made_once() -> None:
    host = Host(AuthorAgent(agent), store=":memory:")
    counted = host.shared_lines = Counted()
    serving = Serving(host)
    try:
        prompting = await serving.client(1)
        session = await prompting.new()
        watchers: list[Client] = []
        for version in (1, 2, 1, 2, 1, 2):
            watcher = await serving.client(version)
            await watcher.resume(session)
            watchers.append(watcher)
        with_positions = serving.connect(2)
        meta = {"holdfast/positions": True}
        await with_positions.ask("initialize", {"protocolVersion": 2, "capabilities": {}, "_meta": meta})
        await with_positions.resume(session)
        await prompting.prompt(session, "go")
        everyone = [prompting, *watchers, with_positions]
        for client in everyone:
            await client.until(lambda client=client: client.said().endswith("the end"))
        assert len({client.said() for client in everyone}) == 1
        for version in (1, 2):
            alike = [client.updates() for client in watchers if client.version == version]
            assert alike[0] == alike[1] == alike[2]
        told = with_positions.updates("agent_message_chunk")
        assert told == watchers[1].updates("agent_message_chunk")
        heard = [it["params"] for it in with_positions.heard if it.get("method") == "session/update"]
        at = [it["_meta"]["holdfast/at"] for it in heard if it["update"] in told]
        assert len(set(at)) == len(at) == len(told) == 42
        assert counted.made * 2 < counted.asked
    finally:
        await serving.close()
