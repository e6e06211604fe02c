"""`holdfast wrap` without a command: a component of a chain, whose successor a conductor starts (G10)."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.wrapping import agent_command
from core.tests.support.acp import Client, Refused
from holdfast.server import ClientConnection, Host
from holdfast.transport import memory_pair, spawn
from holdfast_app.wrap import Launch, ProxyPort

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from holdfast.errors import ConnectionLost
    from holdfast.transport import Line, ProcessTransport, Transport

Message = dict[str, Any]


class Conductor(Client):
    """A client, and a conductor that carries messages between the proxy and the agent behind it."""

    def __init__(self, proxy: Transport, agent: ProcessTransport, version: int) -> None:
        super().__init__(proxy, version)
        self.carried: list[str] = []
        self._agent = agent
        self._waiting: dict[int, object] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        agent.open(FromAgent(self))

    def lines_received(self, lines: Sequence[Line]) -> None:
        super().lines_received(lines)
        for line in lines:
            assert isinstance(line, bytes)
            message: Message = json.loads(line)
            if message.get("method") == "proxy/successor" and "id" not in message:
                self.to_agent(message["params"])

    def _hear_request(self, message: Message) -> None:
        if message["method"] != "proxy/successor":
            super()._hear_request(message)
            return
        inner: Message = message["params"]
        self.carried.append(inner["method"])
        number = len(self.carried)
        self._waiting[number] = message["id"]
        self.to_agent({"id": number, **inner})

    def to_agent(self, message: Message) -> None:
        self._agent.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def from_agent(self, message: Message) -> None:
        if "method" not in message:
            self.say({**message, "id": self._waiting.pop(message["id"])})
        elif "id" in message:
            task = asyncio.get_running_loop().create_task(self._ask_proxy(message))
            self._tasks.add(task)
        else:
            self.tell("proxy/successor", {"method": message["method"], "params": message["params"]})

    async def _ask_proxy(self, message: Message) -> None:
        try:
            answer = {"result": await self.ask("proxy/successor", {key: message[key] for key in ("method", "params")})}
        except Refused as e:
            answer = {"error": {"code": e.code, "message": e.message}}
        self.to_agent({"id": message["id"], **answer})

    async def introduce(self, **capabilities: object) -> Message:
        name = "clientCapabilities" if self.version == 1 else "capabilities"
        about = {"clientInfo" if self.version == 1 else "info": {"name": "conductor", "version": "0"}}
        params = {"protocolVersion": self.version, name: capabilities, **about}
        return await self.ask("proxy/initialize", params)


class FromAgent:
    """What the agent sends goes to the conductor."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor

    def lines_received(self, lines: Sequence[Line]) -> None:
        for line in lines:
            assert isinstance(line, bytes)
            self._conductor.from_agent(json.loads(line))

    def input_ended(self, reason: ConnectionLost | None) -> None:
        """Nothing more comes of it."""


@asynccontextmanager
async def chain(tmp_path: Path, version: int, *habits: str) -> AsyncGenerator[Conductor]:
    """Put the proxy before an agent that the conductor has started."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    agent = await spawn(*agent_command(*habits), env={**os.environ, "AGENT_HOME": str(home)}, patience=0.3)
    near, far = memory_pair()
    async with ProxyPort(Launch(())) as port:
        host = Host(port, store=str(tmp_path / "sessions.db"), in_chain=True)
        serving = asyncio.get_running_loop().create_task(ClientConnection(host, near).run())
        try:
            yield Conductor(far, agent, version)
        finally:
            await far.close(0)
            await serving
            await host.shut_down(0.2)
            await agent.close(0.1)


@pytest.mark.requirement("G10")
@pytest.mark.parametrize(("version", "habits"), [(1, ()), (2, ("v2",))])
async def test_a_conductor_puts_it_before_an_agent(tmp_path: Path, version: int, habits: tuple[str, ...]) -> None:
    cwd = str(tmp_path)
    async with chain(tmp_path, version, *habits) as conductor:
        answer = await conductor.introduce()
        assert answer["protocolVersion"] == version
        assert conductor.carried == ["initialize"]
        session = await conductor.new(cwd)
        assert await conductor.prompt(session, "remember heron") == "end_turn"
        assert conductor.said() == "Noted."
        turn = conductor.begin_prompt(session, "propose")
        (await conductor.question()).select("yes")
        await asyncio.wait_for(turn, 30)
        await conductor.until(
            lambda: version == 1 or conductor.states()[-3:] == ["requires_action", "running", "end_turn"]
        )
    async with chain(tmp_path, version, *habits) as conductor:
        await conductor.introduce()
        await conductor.load(session, cwd)
        assert conductor.said().startswith("Noted.")
        conductor.forget()
        assert await conductor.prompt(session, "recall") == "end_turn"
        assert conductor.said() == "heron"


@pytest.mark.requirement("G10")
async def test_it_answers_in_the_version_of_the_agent_behind_it(tmp_path: Path) -> None:
    async with chain(tmp_path, 2) as conductor:
        assert (await conductor.introduce())["protocolVersion"] == 1


@pytest.mark.requirement("G10", "A6")
async def test_without_a_conductor_there_is_nobody_to_wrap(tmp_path: Path) -> None:
    async with chain(tmp_path, 1) as conductor:
        refusal = await conductor.refusal("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        assert "holdfast wrap -- COMMAND" in refusal.message
