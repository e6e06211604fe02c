"""The official Python SDK's client, protocol version 2: the 1.0 pre-release has it, and only its environment."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acp.experimental.v2 import connect_to_agent, schema
from story import Notes, run

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from pydantic import BaseModel


class Told:
    """The client's side."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    async def session_update(self, session_id: str, update: BaseModel, **_: Any) -> None:
        self._notes.told(session_id, plain(update))

    async def request_permission(self, session_id: str, title: str, options: list[Any], **_: Any) -> Any:
        chosen = self._notes.choose(title, [plain(it) for it in options])
        return schema.RequestPermissionResponse.model_validate({"outcome": {"outcome": "selected", "optionId": chosen}})

    async def create_elicitation(self, message: str, **_: Any) -> Any:
        return schema.AcceptElicitationResponse(action="accept", content=dict(self._notes.fill(message)))


class Version2:
    """How version 2 does each step."""

    def __init__(self, notes: Notes, process: Process) -> None:
        self._notes = notes
        self._agent = connect_to_agent(Told(notes), process.stdin, process.stdout)

    async def initialize(self) -> int:
        can = schema.ClientCapabilities.model_validate(self._notes.capabilities)
        me = schema.Implementation(name="interop", version="1")
        return (await self._agent.initialize(2, info=me, capabilities=can)).protocol_version

    async def new(self, cwd: str) -> tuple[str, dict[str, Any]]:
        answer = await self._agent.new_session(cwd=cwd)
        return answer.session_id, values(answer)

    async def prompt(self, session: str, text: str) -> str:
        mark = self._notes.mark()
        answer = await self._agent.prompt(session_id=session, prompt=[schema.TextContentBlock(type="text", text=text)])
        await self._notes.until(mark, session, lambda told: any(it.get("state") == "idle" for it in told))
        told = self._notes.since(mark, session)
        assert [it["messageId"] for it in told if it["sessionUpdate"] == "user_message"] == [answer.message_id]
        (end,) = (it for it in told if it.get("state") == "idle")
        assert "secret" not in str(end)
        return end["stopReason"]

    async def cancel(self, session: str) -> None:
        await self._agent.cancel_session(session_id=session)

    async def set_mode(self, session: str, mode: str) -> None:
        await self.set_option(session, "mode", mode)

    async def set_option(self, session: str, option: str, value: str | bool) -> dict[str, Any]:
        return values(await self._agent.set_config_option(config_id=option, session_id=session, value=value))

    async def list(self, cursor: str | None) -> tuple[list[str], str | None]:
        answer = await self._agent.list_sessions(cursor=cursor)
        return [it.session_id for it in answer.sessions], answer.next_cursor

    async def close(self, session: str) -> None:
        await self._agent.close_session(session_id=session)

    async def load(self, session: str, cwd: str) -> dict[str, Any]:
        start = schema.ReplayFromStartVariant(type="start")
        return values(await self._agent.resume_session(session_id=session, cwd=cwd, replay_from=start))

    async def resume(self, session: str, cwd: str) -> dict[str, Any]:
        return values(await self._agent.resume_session(session_id=session, cwd=cwd))

    async def fork(self, session: str, cwd: str) -> str:
        return (await self._agent.fork_session(session_id=session, cwd=cwd)).session_id

    async def delete(self, session: str) -> None:
        await self._agent.delete_session(session_id=session)

    async def leave(self) -> None:
        await self._agent.close()


def plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, exclude_none=True, mode="json")


def values(answer: BaseModel) -> dict[str, Any]:
    return {it["configId"]: it["currentValue"] for it in plain(answer).get("configOptions", ())}


if __name__ == "__main__":
    run(Version2)
