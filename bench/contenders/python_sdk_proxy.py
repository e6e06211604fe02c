"""The official Python SDK as a proxy: a connection to the agent and one to the client, and nothing is stored."""

# pyright: reportAbstractUsage=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import asyncio
import sys
from typing import Any

from acp import Agent, Client, run_agent, spawn_agent_process


class ToClient(Client):
    """What the agent speaks to."""

    client: Client

    async def session_update(self, session_id: str, update: Any, **_others: Any) -> None:
        await self.client.session_update(session_id, update)


class ToAgent(Agent):
    """What the client speaks to."""

    def __init__(self, agent: Agent, to_client: ToClient) -> None:
        self._agent, self._to_client = agent, to_client

    def on_connect(self, conn: Client) -> None:
        self._to_client.client = conn

    async def initialize(self, protocol_version: int, **_others: Any) -> Any:
        return await self._agent.initialize(protocol_version)

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_others: Any) -> Any:
        return await self._agent.new_session(cwd=cwd, mcp_servers=mcp_servers or [])

    async def prompt(self, prompt: list[Any], session_id: str, **_others: Any) -> Any:
        return await self._agent.prompt(prompt=prompt, session_id=session_id)


async def main(_store: str, *command: str) -> None:
    to_client = ToClient()
    async with spawn_agent_process(to_client, *command) as (agent, _):
        await run_agent(ToAgent(agent, to_client))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
