"""An agent on the official Python SDK's pre-release, protocol version 2: it tells a story or waits."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import asyncio
from typing import Any

from acp.experimental.v2 import run_agent, schema


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


class Session:
    def __init__(self, client: Any, id_: str) -> None:
        self.client = client
        self.id = id_
        self.past: list[dict[str, Any]] = []
        self.ids = 0
        self.cancelled = asyncio.Event()

    def mint(self, what: str) -> str:
        self.ids += 1
        return f"{what}-{self.ids}"

    async def tell(self, what: str, **members: Any) -> None:
        update = {"sessionUpdate": what, **members}
        if what != "state_update":
            self.past.append(update)
        await self.show(update)

    async def show(self, update: dict[str, Any]) -> None:
        told = schema.UpdateSessionNotification.model_validate({"sessionId": self.id, "update": update})
        await self.client.session_update(self.id, told.update)

    async def say(self, *words: str) -> None:
        message = self.mint("message")
        for word in words:
            await self.tell("agent_message_chunk", messageId=message, content=text(word))

    async def story(self) -> None:
        await self.say("Let me ", "look. ")
        call = {"toolCallId": self.mint("call"), "title": "Read thermometer", "kind": "read"}
        await self.tell("tool_call_update", status="pending", **call)
        options = [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        subject = {"type": "tool_call", "toolCall": call}
        asked = schema.RequestPermissionRequest.model_validate(
            {"sessionId": self.id, "title": "May I?", "options": options, "subject": subject}
        )
        answer = await self.client.request_permission(self.id, asked.title, asked.options, subject=asked.subject)
        allowed = getattr(answer.outcome, "option_id", None) == "yes"
        shown = {"type": "content", "content": text("21 °C" if allowed else "not allowed")}
        await self.tell("tool_call_content_chunk", toolCallId=call["toolCallId"], content=shown)
        await self.tell("tool_call_update", toolCallId=call["toolCallId"], status="completed" if allowed else "failed")
        await self.say("Do", "ne.")

    async def perform(self, message: str, prompt: list[Any]) -> None:
        content = [it.model_dump(by_alias=True, exclude_none=True, mode="json") for it in prompt]
        await self.tell("user_message", messageId=message, content=content)
        await self.tell("state_update", state="running")
        reason = "end_turn"
        if content[0]["text"] == "story":
            await self.story()
        elif content[0]["text"] == "wait":
            await self.say("waiting")
            await self.cancelled.wait()
            reason = "cancelled"
        await self.tell("state_update", state="idle", stopReason=reason)


class Teller:
    client: Any

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.work: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, **_: Any) -> Any:
        return schema.InitializeResponse.model_validate(
            {
                "protocolVersion": 2,
                "info": {"name": "python-v2", "version": "1"},
                "capabilities": {"session": {}},
            }
        )

    async def new_session(self, **_: Any) -> Any:
        session = Session(self.client, f"s{len(self.sessions)}")
        self.sessions[session.id] = session
        return schema.NewSessionResponse(session_id=session.id)

    async def resume_session(self, session_id: str, replay_from: Any = None, **_: Any) -> Any:
        for update in self.sessions[session_id].past if replay_from else ():
            await self.sessions[session_id].show(update)
        return schema.ResumeSessionResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> Any:
        session = self.sessions[session_id]
        session.cancelled.clear()
        message = session.mint("message")
        self.work.add(asyncio.create_task(session.perform(message, prompt)))
        return schema.PromptResponse(message_id=message)

    async def cancel_session(self, session_id: str, **_: Any) -> None:
        self.sessions[session_id].cancelled.set()


if __name__ == "__main__":
    asyncio.run(run_agent(Teller()))
