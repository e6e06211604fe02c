"""Holdfast as an agent. The prompt says what to do: ``burst 20000``, ``tick 5000``, ``ask 3000`` or ``nothing``."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

from meter import Meter
from ours_types import (
    AgentMessageChunk,
    InitializeRequest,
    InitializeResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    PromptResponse,
    ReadTextFileRequest,
    ReadTextFileResponse,
    SessionNotification,
    TextContent,
)

from holdfast.peer import Peer, Routes
from holdfast.transport import open_stdio

BURST = 256
TEXT = "a few words of an answer, say 32"


class Agent:
    def __init__(self, peer: Peer, meter: Meter) -> None:
        self.peer = peer
        self.meter = meter

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        return InitializeResponse(params.protocol_version)

    async def new_session(self, _params: NewSessionRequest) -> NewSessionResponse:
        return NewSessionResponse("sess_0123456789abcdef")

    async def prompt(self, params: PromptRequest) -> PromptResponse:
        block = params.prompt[0]
        assert isinstance(block, TextContent)
        if block.text == "nothing":
            return PromptResponse("end_turn")
        self.meter.lap(block.text)
        what, _, count = block.text.partition(" ")
        if what == "burst":
            await self.burst(params.session_id, int(count))
        elif what == "tick":
            await self.tick(params.session_id, int(count))
        elif what == "ask":
            await self.ask(params.session_id, int(count))
        return PromptResponse("end_turn")

    async def burst(self, session: str, count: int) -> None:
        for _ in range(count // BURST):
            for _ in range(BURST):
                self.peer.notify("session/update", SessionNotification(session, AgentMessageChunk(TextContent(TEXT))))
            await self.peer.drain()
            await asyncio.sleep(0)

    async def tick(self, session: str, count: int) -> None:
        for _ in range(count):
            self.peer.notify("session/update", SessionNotification(session, AgentMessageChunk(TextContent(TEXT))))
            await self.peer.drain()
            await asyncio.sleep(0)

    async def ask(self, session: str, count: int) -> None:
        took: list[float] = []
        for _ in range(count):
            asked = time.perf_counter()
            answer = await self.peer.request(
                "fs/read_text_file", ReadTextFileRequest(session, "/notes.txt"), result=ReadTextFileResponse
            )
            took.append(time.perf_counter() - asked)
            assert answer.content
        self.meter.more[f"p50 of {count}"] = statistics.median(took)


async def main() -> None:
    routes = Routes()
    peer = Peer(open_stdio(), routes)
    agent = Agent(peer, Meter())
    routes.request("initialize", agent.initialize, InitializeRequest)
    routes.request("session/new", agent.new_session, NewSessionRequest)
    routes.request("session/prompt", agent.prompt, PromptRequest)
    await peer.run()
    agent.meter.report()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
