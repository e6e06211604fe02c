"""Holdfast as an agent that answers `session/new` when the session's MCP servers are ready."""

from __future__ import annotations

import asyncio
import sys

from holdfast import Agent, Session, Turn
from holdfast.agent.port import AuthorAgent
from holdfast.server import Host, serve_stdio

agent = Agent("bench")


@agent.on_open
async def opened(session: Session) -> None:
    for status in await session.mcp.ready():
        assert status.state == "ready", status.reason


@agent.prompt
async def answer(turn: Turn) -> None:
    await turn.say("hello")


if __name__ == "__main__":
    asyncio.run(serve_stdio(Host(AuthorAgent(agent), store=sys.argv[1])))
