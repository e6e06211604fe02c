"""A client on every face of Holdfast, and how the end of a prompt that was cancelled looks to it."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from app.tests.support.bridges import bridged
from core.tests.support.acp import Client, Refused, patiently, running, serving
from core.tests.support.relay_hosts import join
from core.tests.support.remote import served
from holdfast.testing.demo_agent import agent as demo
from holdfast.transport import spawn

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator
    from pathlib import Path

FACES = ("in process", "stdio", "wrapped", "websocket", "asgi websocket", "http", "relay", "bridge")

FOR_EVER = "/sleep 100000"
"""A prompt whose turn ends when it is cancelled, and not before."""


class Face:
    """A client of the demo agent, however it is connected."""

    def __init__(self, name: str, client: Client, owner: Client | None = None) -> None:
        self.name = name
        self.client = client
        self._owner = owner

    async def new(self) -> str:
        """Create a session and open it for the client; over the relay another process has it."""
        if self._owner is None:
            return await self.client.new()
        session = await self._owner.new()
        await join(self.client, session)
        return session

    async def close(self, session: str) -> None:
        for client in (self.client, self._owner):
            if client is not None:
                await client.ask("session/close", {"sessionId": session})


@asynccontextmanager
async def face(name: str, version: int, place: Path) -> AsyncGenerator[Face]:
    """Serve the demo agent on one of the `FACES`, and connect a client."""
    if name == "stdio":
        async with running(place / "s.db", version=version) as client:
            yield Face(name, client)
    elif name == "wrapped":
        demo_command = (sys.executable, "-m", "holdfast", "run", "demo", "--store", str(place / "inner.db"))
        wrap = (sys.executable, "-m", "holdfast", "wrap", "--store", str(place / "s.db"), "--", *demo_command)
        transport = await spawn(*wrap, env=dict(os.environ))
        try:
            client = Client(transport, version)
            await client.initialize()
            yield Face(name, client)
        finally:
            await transport.close(0.1)
    elif name == "in process":
        async with serving(demo) as host:
            yield Face(name, await host.client(version))
    elif name == "relay":
        async with serving(demo, place / "s.db") as near, serving(demo, place / "s.db") as far:
            yield Face(name, await far.client(version), await near.client(1))
    elif name == "bridge":
        async with served(demo, place / "s.db") as remote, bridged(remote, version) as bridge:
            await bridge.editor.initialize()
            yield Face(name, bridge.editor)
    else:
        async with served(demo, place / "s.db", way=name) as remote:
            yield Face(name, await remote.client(name, version))


async def end_of(client: Client, session: str, answer: asyncio.Future[Any]) -> str:
    """Wait for the end of a prompt; return why its turn ended, ``dropped`` where it never began."""
    try:
        answered = await patiently(answer)
    except Refused as e:
        return "dropped" if client.version == 2 and e.code == -32800 else f"refused: {e.message}"
    if client.version == 1:
        return answered["stopReason"]
    return await client.end_of_turn(session, answered["messageId"])
