"""Holdfast as a client. Each argument is the text of a prompt; the agent answers ``updates 20000`` with as many."""

from __future__ import annotations

import asyncio
import sys

from meter import Meter
from ours_types import (
    AgentMessageChunk,
    InitializeRequest,
    InitializeResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    PromptResponse,
    SessionNotification,
    TextContent,
)

from holdfast.peer import Peer, Routes
from holdfast.transport import open_stdio


class Client:
    def __init__(self) -> None:
        self.handled = 0

    async def session_update(self, params: SessionNotification) -> None:
        if isinstance(params.update, AgentMessageChunk):
            self.handled += 1


async def main(prompts: list[str]) -> None:
    client, meter, routes = Client(), Meter(), Routes()
    routes.notification("session/update", client.session_update, SessionNotification)
    async with Peer(open_stdio(), routes) as peer:
        await peer.request("initialize", InitializeRequest(1), result=InitializeResponse)
        session = await peer.request("session/new", NewSessionRequest("/", []), result=NewSessionResponse)
        for prompt in prompts:
            client.handled = 0
            meter.lap(prompt)
            await peer.request(
                "session/prompt", PromptRequest(session.session_id, [TextContent(prompt)]), result=PromptResponse
            )
            meter.lap(None)
            assert client.handled == int(prompt.partition(" ")[2])  # all of them, before the answer
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
