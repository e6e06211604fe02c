"""An agent that somebody else could have written: on the official Python SDK, with a login, storing nothing."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
from typing import Any, cast

from acp import Agent, Client, RequestError, run_agent, schema
from acp import helpers as say

OPTIONS = [
    schema.PermissionOption(option_id="yes-7", name="Yes, do it", kind="allow_once"),
    schema.PermissionOption(option_id="no-7", name="No", kind="reject_once"),
]


class Other:
    """The agent's side."""

    def __init__(self) -> None:
        self._client: Client
        self._logged_in = False

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        login = schema.AuthMethodAgent(id="key", name="With a key")
        me = schema.Implementation(name="other", version="7")
        return schema.InitializeResponse(protocol_version=1, auth_methods=[login], agent_info=me)

    async def authenticate(self, method_id: str, **_: Any) -> schema.AuthenticateResponse:
        self._logged_in = method_id == "key"
        return schema.AuthenticateResponse()

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        if not self._logged_in:
            raise RequestError.auth_required()
        modes = [schema.SessionMode(id="m1", name="Careful"), schema.SessionMode(id="m2", name="Bold")]
        state = schema.SessionModeState(available_modes=modes, current_mode_id="m1")
        return schema.NewSessionResponse(session_id="1", modes=state)

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> schema.SetSessionModeResponse:
        await self._client.session_update(session_id, say.update_current_mode(mode_id))
        return schema.SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        text = prompt[0].text
        tell = self._client.session_update
        await tell(session_id, say.update_agent_thought_text("Well, "))
        await tell(session_id, say.start_tool_call("c1", "Look around", kind="read", status="in_progress"))
        call = schema.ToolCallUpdate(tool_call_id="c1", title="Look around", raw_input={"command": "ls -l"})
        answer = await self._client.request_permission(session_id, call, OPTIONS)
        allowed = isinstance(answer.outcome, schema.AllowedOutcome) and answer.outcome.option_id == "yes-7"
        await tell(session_id, say.update_tool_call("c1", status="completed" if allowed else "failed"))
        await tell(session_id, say.update_agent_message_text(f"# {text}\n"))
        await tell(session_id, say.update_agent_message_text("That is all."))
        return schema.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        pass


if __name__ == "__main__":
    asyncio.run(run_agent(cast("Agent", Other())))
