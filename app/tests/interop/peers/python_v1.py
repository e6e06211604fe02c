"""The official Python SDK's client, protocol version 1: works with 0.12.1 and with the 1.0 pre-release."""

# pyright: reportUnknownMemberType=false, reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from acp import RequestError, connect_to_agent, schema
from story import Notes, run

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from acp import Client
    from pydantic import BaseModel


class Told:
    """The client's side."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    async def session_update(self, session_id: str, update: BaseModel, **_: Any) -> None:
        self._notes.told(session_id, plain(update))

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **_: Any
    ) -> schema.RequestPermissionResponse:
        chosen = self._notes.choose(tool_call.title or "", [plain(it) for it in options])
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, **_: Any) -> schema.AcceptElicitationResponse:
        return schema.AcceptElicitationResponse(action="accept", content=dict(self._notes.fill(message)))


class Version1:
    """How version 1 does each step."""

    def __init__(self, notes: Notes, process: Process) -> None:
        self._notes = notes
        told = cast("Client", Told(notes))
        self._agent = connect_to_agent(told, process.stdin, process.stdout, use_unstable_protocol=True)

    async def initialize(self) -> int:
        can = schema.ClientCapabilities.model_validate(self._notes.capabilities)
        me = schema.Implementation(name="interop", version="1")
        return (await self._agent.initialize(1, client_capabilities=can, client_info=me)).protocol_version

    async def new(self, cwd: str) -> tuple[str, dict[str, Any]]:
        answer = await self._agent.new_session(cwd=cwd)
        assert answer.modes is not None
        assert values(answer).get("mode") == answer.modes.current_mode_id
        return answer.session_id, values(answer)

    async def prompt(self, session: str, text: str) -> str:
        try:
            block = schema.TextContentBlock(type="text", text=text)
            return (await self._agent.prompt(session_id=session, prompt=[block])).stop_reason
        except RequestError as e:
            return "error" if "secret" not in str(e) else "an error that tells secrets"

    async def cancel(self, session: str) -> None:
        await self._agent.cancel(session_id=session)

    async def set_mode(self, session: str, mode: str) -> None:
        await self._agent.set_session_mode(session_id=session, mode_id=mode)

    async def set_option(self, session: str, option: str, value: str | bool) -> dict[str, Any]:
        answer = await self._agent.set_config_option(config_id=option, session_id=session, value=value)
        return values(answer)

    async def list(self, cursor: str | None) -> tuple[list[str], str | None]:
        answer = await self._agent.list_sessions(cursor=cursor)
        return [it.session_id for it in answer.sessions], answer.next_cursor

    async def close(self, session: str) -> None:
        await self._agent.close_session(session_id=session)

    async def load(self, session: str, cwd: str) -> dict[str, Any]:
        return values(await self._agent.load_session(cwd=cwd, session_id=session))

    async def resume(self, session: str, cwd: str) -> dict[str, Any]:
        return values(await self._agent.resume_session(session_id=session, cwd=cwd))

    async def fork(self, session: str, cwd: str) -> str:
        return (await self._agent.fork_session(session_id=session, cwd=cwd)).session_id

    async def delete(self, session: str) -> None:
        # 0.12.1 has a name and shapes for it, but no method.
        await self._agent._conn.send_request("session/delete", {"sessionId": session})

    async def leave(self) -> None:
        await self._agent.close()


def plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, exclude_none=True, mode="json")


def values(answer: BaseModel) -> dict[str, Any]:
    return {it["id"]: it["currentValue"] for it in plain(answer).get("configOptions", ())}


if __name__ == "__main__":
    run(Version1)
