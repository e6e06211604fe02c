"""The official Python SDK as an agent that answers with five chunks, as `ours_short.py`, and stores nothing."""

# pyright: reportAbstractUsage=false, reportIncompatibleMethodOverride=false
# The SDK calls an agent by keyword and does without the methods it lacks; its types do not say so.

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from acp import Agent, InitializeResponse, NewSessionResponse, PromptResponse, run_agent, update_agent_message_text

if TYPE_CHECKING:
    from acp.interfaces import Client


class ShortAgent(Agent):
    client: Client

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_others: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, **_others: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="sess_0123456789abcdef")

    async def prompt(self, session_id: str, **_others: Any) -> PromptResponse:
        for _ in range(5):
            await self.client.session_update(session_id, update_agent_message_text("a few words of an answer, say 32"))
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(run_agent(ShortAgent()))
