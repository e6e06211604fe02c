"""A session with the coding agent, whose model says what a script tells it to."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from core.tests.support.acp import Client, conversation, serving
from holdfast.testing.model_server import ModelServer
from holdfast_app.code import CodeSettings, coding_agent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from core.tests.support.acp import Serving, Update
    from holdfast.testing.model_server import Reply


class Coding:
    """A session, and who takes part in it."""

    def __init__(self, server: ModelServer, host: Serving, client: Client, session: str, project: Path) -> None:
        self.server = server
        self.host = host
        self.client = client
        self.session = session
        self.project = project

    async def prompt(self, text: str) -> str:
        """Prompt, and give why the turn ended."""
        return await self.client.prompt(self.session, text)

    async def choose(self, option: str, value: str) -> None:
        """Set an option."""
        params = {"sessionId": self.session, "configId": option, "value": value}
        await self.client.ask("session/set_config_option", params)

    def answer(self, option: str) -> list[Update]:
        """Answer all permission questions in one way; give what was asked, as it is asked."""
        asked: list[Update] = []

        def choose(params: Update) -> Update:
            asked.append(params)
            return {"outcome": {"outcome": "selected", "optionId": option}}

        self.client.answers["session/request_permission"] = choose
        return asked

    async def fork(self, up_to: str | None = None) -> str:
        """Fork the session; give the id of the fork."""
        params: dict[str, Any] = {"sessionId": self.session, "cwd": str(self.project), "mcpServers": []}
        if up_to is not None:
            params["_meta"] = {"holdfast/upTo": up_to}
        return (await self.client.ask("session/fork", params))["sessionId"]

    def entries(self, kind: str) -> list[Update]:
        """What was shown so far, folded: all entries of a kind."""
        told = conversation(self.client.updates(session=self.session))
        return [it for it in told if it["sessionUpdate"] == kind]

    @property
    def calls(self) -> list[Update]:
        """The tool calls, as they are now."""
        return self.entries("tool_call_update")

    def statuses(self, call: int = 0) -> list[str]:
        """All that was said of the status of a tool call, in order."""
        key = self.calls[call]["toolCallId"]
        told = self.client.updates("tool_call", "tool_call_update", session=self.session)
        return [it["status"] for it in told if it["toolCallId"] == key and "status" in it]


@asynccontextmanager
async def coding(
    version: int,
    project: Path,
    *script: Reply,
    store: Path | str = ":memory:",
    pass_env: tuple[str, ...] = (),
    **more: Any,
) -> AsyncGenerator[Coding]:
    """Begin a session with the coding agent in a project."""
    async with ModelServer(script) as server:
        agent = coding_agent(CodeSettings(("small", "large"), server.url, pass_env))
        async with serving(agent, store) as host:
            client = await host.client(version)
            session = await client.new(str(project), **more)
            yield Coding(server, host, client, session, project)
