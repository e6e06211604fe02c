"""An agent on the official Python SDK that stores nothing and cannot load anything: something to wrap.

    holdfast wrap -- python examples/forgetful.py

It knows what it was told in the session at hand, and nothing else.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import os
import re
import uuid
from pathlib import Path
from typing import Any, cast

from acp import Agent, Client, run_agent, schema


class Forgetful:
    """What the official SDK wants of an agent, and not more."""

    def __init__(self) -> None:
        self._client: Client
        self._told: dict[str, str] = {}

    def on_connect(self, conn: Client) -> None:
        """Note the client."""
        self._client = conn

    async def initialize(self, **_: Any) -> schema.InitializeResponse:
        """Answer that nothing can be loaded."""
        me = schema.Implementation(name="forgetful", version="1")
        return schema.InitializeResponse(protocol_version=1, agent_info=me)

    async def new_session(self, **_: Any) -> schema.NewSessionResponse:
        """Begin a session that is forgotten when the process ends."""
        session_id = uuid.uuid4().hex
        self._told[session_id] = ""
        return schema.NewSessionResponse(session_id=session_id)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        """Answer from what was told."""
        self._told[session_id] += "\n".join(getattr(block, "text", "") for block in prompt)
        text = prompt[0].text  # the user's words stand first
        if "Count" in text:
            for number in range(1, 1000):
                await self._say(session_id, f"{number} ")
                await asyncio.sleep(0.05)
        elif "What was the word" in text:
            found = re.search(r"The word is (\w+)", self._told[session_id])
            await self._say(session_id, f"It was {found[1]}." if found else "You have told me no word.")
        else:
            await self._say(session_id, "I will remember that, until I am killed.")
        return schema.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Go on."""

    async def _say(self, session_id: str, text: str) -> None:
        block = schema.TextContentBlock(type="text", text=text)
        said = schema.AgentMessageChunk(session_update="agent_message_chunk", content=block)
        await self._client.session_update(session_id, said)


if __name__ == "__main__":
    if place := os.environ.get("FORGETFUL_PID"):
        Path(place).write_text(str(os.getpid()))
    asyncio.run(run_agent(cast("Agent", Forgetful())))
