"""An agent of this process, served over a transport in memory. The one module of the client that knows a server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.agent.port import AuthorAgent
from holdfast.server import ClientConnection, Host
from holdfast.transport import MAX_LINE_BYTES
from holdfast.transport.memory import MemoryTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.agent import Agent
    from holdfast.transport import Transport

GRACE = 1.0
"""Turns that are running when the client leaves have this many seconds to end."""


def serve_in_process(agent: Agent, store: str, max_line_bytes: int) -> tuple[Transport, Callable[[], Awaitable[None]]]:
    """Serve an agent; return the client's end of the line, and a function that waits for the agent's end."""
    ours, theirs = MemoryTransport(max_line_bytes), MemoryTransport(MAX_LINE_BYTES)
    ours.link(theirs)
    theirs.link(ours)
    host = Host(AuthorAgent(agent), store=store)
    connection = ClientConnection(host, theirs, is_only=True)
    serving = asyncio.get_running_loop().create_task(connection.run(), name=f"agent {agent.name}")

    async def finish() -> None:
        await serving
        await host.shut_down(GRACE)

    return ours, finish
