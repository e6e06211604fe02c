"""The official Python SDK's server, which stores nothing, on uvicorn: the port is on stdout. As `ours_remote.py`."""

# pyright: basic, reportAbstractUsage=false, reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from typing import Any

import uvicorn
from acp import Agent, InitializeResponse, NewSessionResponse, PromptResponse
from acp.http.asgi import create_asgi_app
from acp.schema import AgentMessageChunk, TextContentBlock

TEXT = "a few words of an answer, say 32"
BURST = 64


def update() -> AgentMessageChunk:
    content = TextContentBlock(type="text", text=TEXT)
    return AgentMessageChunk(session_update="agent_message_chunk", content=content)


class BenchAgent(Agent):
    def __init__(self) -> None:
        self.client: Any = None

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_others: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, **_others: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="sess_0123456789abcdef")

    async def prompt(self, prompt: list[Any], session_id: str, **_others: Any) -> PromptResponse:
        what, _, count = prompt[0].text.partition(" ")
        if what == "burst":
            for _ in range(int(count) // BURST):
                updates = (self.client.session_update(session_id, update()) for _ in range(BURST))
                await asyncio.gather(*updates)
        else:
            for _ in range(int(count)):
                await self.client.session_update(session_id, update())
                await asyncio.sleep(0)
        return PromptResponse(stop_reason="end_turn")


def main() -> None:
    def factory(connection: Any = None, *_: Any) -> BenchAgent:
        agent = BenchAgent()
        if connection is not None:
            agent.client = connection
        return agent

    listening = socket.create_server(("127.0.0.1", 0), backlog=4_096)
    server = uvicorn.Server(
        uvicorn.Config(create_asgi_app(factory), log_level="error", ws="websockets-sansio", ws_ping_interval=None)
    )
    print(listening.getsockname()[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), setattr(server, "should_exit", True)), daemon=True).start()
    server.run(sockets=[listening])


if __name__ == "__main__":
    main()
