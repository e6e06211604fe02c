"""Of a long past a client is sent no more than it reads, and no more is read for it (P7)."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from core.tests.support.acp import CWD, Gates, serving
from core.tests.support.links import PATIENCE
from core.tests.support.sessions import eventually
from holdfast import Agent, Turn
from holdfast.server import ClientConnection
from holdfast.transport.descriptors import PipeTransport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from core.tests.support.acp import Serving

pytestmark = pytest.mark.requirement("P7")

MIB = 1 << 20


def talking_agent(entries: int, size: int) -> tuple[Agent, Gates]:
    """An agent that says so much in a turn, and then waits in it until the test lets it end."""
    agent, gates = Agent("talking"), Gates()

    @agent.prompt
    async def answer(turn: Turn) -> None:
        for n in range(entries // 2):
            await turn.say(f"{n:08}" * (size // 8))
            async with turn.tool(f"Look at {n}", kind="read") as call:
                await call.text(f"{n:08}" * (size // 8))
        await gates.wait()

    return agent, gates


@asynccontextmanager
async def loading(served: Serving, session: str, output: int) -> AsyncGenerator[PipeTransport]:
    """Load a session in a connection that writes to a descriptor; the test may read what is sent, or not."""
    theirs, ours = os.pipe()
    transport = PipeTransport(theirs, output)
    running = asyncio.create_task(ClientConnection(served.host, transport).run())
    os.write(ours, b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
    named = f'"sessionId":"{session}","cwd":"{CWD}","mcpServers":[]'
    os.write(ours, b'{"jsonrpc":"2.0","id":2,"method":"session/load","params":{%s}}\n' % named.encode())
    try:
        yield transport
    finally:
        os.close(ours)
        running.cancel()
        await asyncio.wait({running}, timeout=PATIENCE)


@pytest.mark.parametrize("is_running", [False, True], ids=["sealed", "running"])
async def test_a_client_that_does_not_read_what_it_loads_is_sent_little_of_it(is_running: bool) -> None:
    agent, gates = talking_agent(entries=400, size=64 << 10)  # 25 MiB
    async with serving(agent) as served:
        client = await served.client(1)
        session = await client.new()
        ended = client.begin_prompt(session, "go")
        await gates.reached()
        if not is_running:
            gates.open()
            await ended
        read, write = os.pipe()
        async with loading(served, session, write) as transport:
            await eventually(lambda: transport.unsent > MIB)
            await asyncio.sleep(0.3)  # what must not happen has no event to wait for
            assert transport.unsent < 4 * MIB
            os.close(read)
        gates.open()
