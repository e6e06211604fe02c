"""Hosts on one store, each with an engine and a socket of its own, as a process has; all serve the same agent."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from core.tests.support.acp import serving
from holdfast import Agent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from core.tests.support.acp import Client, Serving
    from holdfast import Turn

MIXED = pytest.mark.parametrize(("ours", "theirs"), [(1, 2), (2, 1), (1, 1), (2, 2)])


class Shared:
    """An agent that does what prompts say, in every host alike; `gates` are what a ``wait`` waits for."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.performed: list[str] = []

    def gate(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    def agent(self) -> Agent:
        agent = Agent("shared")
        agent.option("units", name="Units", values={"c": "Celsius", "f": "Fahrenheit"}, default="c")

        @agent.prompt
        async def answer(turn: Turn) -> None:
            self.performed.append(turn.text)
            verb, _, rest = turn.text.partition(" ")
            if verb == "wait":
                async with turn.tool("Wait"):
                    await turn.say("waiting ")
                    await self.gate(rest).wait()
                await turn.say("done")
            elif verb == "ask":
                async with turn.tool("Dig", kind="execute") as call:
                    await turn.say("yes" if await turn.allow(f"May I {rest}?", call) else "no")
            elif verb == "read":
                assert turn.client is not None
                await turn.say(await turn.client.read_text(rest))
            elif verb == "roots":
                await turn.say(",".join(turn.session.roots))
            else:
                for word in turn.text.split():
                    await turn.say(f"{word} ")

        return agent


@asynccontextmanager
async def hosts(place: Path, count: int = 2) -> AsyncGenerator[tuple[Shared, list[Serving]]]:
    """Serve the same agent on one store by several hosts, each of which stands for a process."""
    shared = Shared()
    async with AsyncExitStack() as stack:
        yield shared, [await stack.enter_async_context(serving(shared.agent(), place)) for _ in range(count)]


async def named(host: Serving, name: str, version: int, **capabilities: object) -> Client:
    client = host.connect(version)
    about: dict[str, Any] = {"clientInfo" if version == 1 else "info": {"name": name, "version": "0"}}
    about["clientCapabilities" if version == 1 else "capabilities"] = capabilities
    await client.ask("initialize", {"protocolVersion": version, **about})
    return client


async def join(client: Client, session: str) -> None:
    if client.version == 1:
        await client.load(session)
    else:
        await client.resume(session, replayFrom={"type": "start"})


class FollowedTurn(NamedTuple):
    """A turn that waits for its gate, ``gate``: prompted by a client that follows the session from another host."""

    shared: Shared
    near: Serving
    far: Serving
    owner: Client
    follower: Client
    session: str
    answer: asyncio.Future[Any]


@asynccontextmanager
async def followed_turn(place: Path, ours: int, theirs: int) -> AsyncGenerator[FollowedTurn]:
    """Let a client with the version `theirs` prompt a session of one with the version `ours` in another host."""
    async with hosts(place) as (shared, (near, far)):
        owner, follower = await named(near, "Zed", ours), await named(far, "Neovim", theirs)
        session = await owner.new()
        await join(follower, session)
        answer = follower.begin_prompt(session, "wait gate")
        await follower.until(lambda: "waiting" in follower.said())
        yield FollowedTurn(shared, near, far, owner, follower, session, answer)
