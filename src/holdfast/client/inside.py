"""An agent of this process, served over a transport in memory. The one place here that knows a server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.agent.port import AuthorAgent
from holdfast.server import ClientConnection, Host
from holdfast.transport import memory_pair

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.agent import Agent
    from holdfast.transport import Transport

GRACE = 1.0
"""Turns that are running when the client leaves have so many seconds to end."""


def serve(agent: Agent, store: str) -> tuple[Transport, Callable[[], Awaitable[None]]]:
    """Serve an agent; give the client's end of the line, and what waits for the agent's end."""
    ours, theirs = memory_pair()
    host = Host(AuthorAgent(agent), store=store)
    serving = asyncio.get_running_loop().create_task(ClientConnection(host, theirs, is_only=True).run(), name=f"agent {agent.name}")

    async def finish() -> None:
        await serving
        await host.shut_down(GRACE)

    return ours, finish
