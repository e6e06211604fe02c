"""An agent on the official Python SDK, protocol version 1: it tells a story, waits, or reads a file."""

# pyright: basic, reportAttributeAccessIssue=false, reportAbstractUsage=false, reportIncompatibleMethodOverride=false
# The SDK calls an agent by keyword and does without the methods it lacks; its types do not say so.

from __future__ import annotations

import asyncio
from typing import Any

from acp import Agent, run_agent, schema


def text(words: str) -> Any:
    return schema.TextContentBlock(type="text", text=words)


class Session:
    def __init__(self, client: Any, id_: str) -> None:
        self.client = client
        self.id = id_
        self.past: list[Any] = []
        self.cancelled = asyncio.Event()

    async def tell(self, update: Any) -> None:
        self.past.append(update)
        await self.client.session_update(self.id, update)

    async def say(self, *words: str) -> None:
        for word in words:
            await self.tell(schema.AgentMessageChunk(session_update="agent_message_chunk", content=text(word)))

    async def story(self) -> None:
        await self.say("Let me ", "look. ")
        call: dict[str, Any] = {"tool_call_id": f"call-{len(self.past)}", "title": "Read thermometer", "kind": "read"}
        await self.tell(schema.ToolCallStart(session_update="tool_call", status="pending", **call))
        answer = await self.client.request_permission(
            session_id=self.id,
            tool_call=schema.ToolCallUpdate(**call),
            options=[
                schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
                schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
            ],
        )
        allowed = getattr(answer.outcome, "option_id", None) == "yes"
        shown = schema.ContentToolCallContent(type="content", content=text("21 °C" if allowed else "not allowed"))
        await self.tell(
            schema.ToolCallProgress(
                session_update="tool_call_update",
                tool_call_id=call["tool_call_id"],
                status="completed" if allowed else "failed",
                content=[shown],
            )
        )
        await self.say("Do", "ne.")


class Teller(Agent):
    client: Any

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, **_: Any) -> Any:
        return schema.InitializeResponse(
            protocol_version=1,
            agent_info=schema.Implementation(name="python-v1", version="1"),
            agent_capabilities=schema.AgentCapabilities(load_session=True),
        )

    async def new_session(self, **_: Any) -> Any:
        session = Session(self.client, f"s{len(self.sessions)}")
        self.sessions[session.id] = session
        return schema.NewSessionResponse(session_id=session.id)

    async def load_session(self, session_id: str, **_: Any) -> Any:
        for update in self.sessions[session_id].past:
            await self.client.session_update(session_id, update)
        return schema.LoadSessionResponse()

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> Any:
        session = self.sessions[session_id]
        session.cancelled.clear()
        session.past.append(schema.UserMessageChunk(session_update="user_message_chunk", content=prompt[0]))
        what, _, path = prompt[0].text.partition(" ")
        if what == "story":
            await session.story()
        elif what == "read":
            answer = await self.client.read_text_file(session_id=session_id, path=path)
            await session.say(answer.content)
        elif what == "wait":
            await session.say("waiting")
            await session.cancelled.wait()
            return schema.PromptResponse(stop_reason="cancelled")
        return schema.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.sessions[session_id].cancelled.set()


if __name__ == "__main__":
    asyncio.run(run_agent(Teller()))
