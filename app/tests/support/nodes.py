"""Nodes: `holdfast serve` in processes of their own, on one PostgreSQL, and clients that connect to any of them."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from app.tests.support.remote_process import ServeProcess
from core.tests.support.acp import Client
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    import signal
    from collections.abc import AsyncGenerator
    from pathlib import Path

SECRET = "only the nodes of these tests know it"

AGENT = """
import asyncio, os
from holdfast import Agent

agent = Agent("shared")


@agent.prompt
async def answer(turn):
    with open("performed", "a") as performed:
        performed.write(turn.text + "\\n")
    count, _, then = turn.text.partition(" ")
    async with turn.tool("Count"):
        for number in range(int(count)):
            await turn.say(f"{number} ")
            await asyncio.sleep(0.001)
    if then == "wait":
        await asyncio.Event().wait()
    if then == "read":
        await turn.say(await turn.client.read_text(os.getcwd() + "/unsaved"))
    if then == "ask":
        async with turn.tool("Dig", kind="execute") as call:
            await turn.say("yes" if await turn.allow("May I dig?", call) else "no")
"""


class Node(ServeProcess):
    """A node in a process of its own."""

    def __init__(self, place: Path, name: str, store: str, secret: str = SECRET, *, source: str = AGENT) -> None:
        """Prepare one that works in `place` and keeps its own files in a directory of that name."""
        own = place / name
        own.mkdir()
        agent = place / "shared.py"
        agent.write_text(source)
        environment = {"HOLDFAST_NODE_SECRET": secret, "XDG_DATA_HOME": str(own), "HOME": str(own)}
        super().__init__(own, str(agent), store=store, env=environment, cwd=place)
        self._options = ("--no-auth", "--grace", "0", "--node-url", self.base)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    @asynccontextmanager
    async def client(self, version: int = 1, name: str = "test", **capabilities: Any) -> AsyncGenerator[Client]:
        """Connect a client over a WebSocket; it takes notices."""
        transport = await connect_websocket(self.url)
        try:
            client = Client(transport, version)
            about: dict[str, Any] = {"clientInfo" if version == 1 else "info": {"name": name, "version": "0"}}
            offers: dict[str, Any] = {"session": {"notices": {}}, **capabilities}
            about["clientCapabilities" if version == 1 else "capabilities"] = offers
            await client.ask("initialize", {"protocolVersion": version, **about})
            yield client
        finally:
            await transport.close(0.2)
