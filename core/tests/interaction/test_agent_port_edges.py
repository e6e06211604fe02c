"""What a port of one's own may do that an author's agent never does: speak while it opens, late, or of ended calls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.interaction.test_third_agent_port import (
    ScriptPort,
    ScriptSession,
    command_names,
    connected,
    is_commands,
    said,
    served,
)
from holdfast.errors import TurnOver

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine import LiveSession, Origin, SessionClient


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return request.param


class Greeter(ScriptPort):
    async def open(self, session: LiveSession, client: SessionClient | None, origin: Origin) -> ScriptSession:
        opened = await super().open(session, client, origin)
        session.emit_update(said("w", "Welcome"))
        return opened


async def test_what_is_said_in_open_makes_nothing_come_twice(place: Path, tmp_path: Path, version: int) -> None:
    async with served(Greeter(), place) as host, connected(host, version) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        await client.prompt(session_id, "again")  # at once
        await asyncio.sleep(0.5)
        chunks = [u["content"]["text"] for u in client.updates if u["sessionUpdate"] == "agent_message_chunk"]
        assert chunks == ["Welcome", "No"]


class EarlyChanger(ScriptPort):
    async def open(self, session: LiveSession, client: SessionClient | None, origin: Origin) -> ScriptSession:
        opened = await super().open(session, client, origin)
        session.options_changed()
        return opened


async def test_options_may_change_in_open(place: Path, tmp_path: Path, version: int) -> None:
    async with served(EarlyChanger(), place) as host, connected(host, version) as client:
        await client.new_session(tmp_path)


async def test_a_client_that_closes_leaves_once_and_before_the_close(place: Path, tmp_path: Path, version: int) -> None:
    port = ScriptPort()
    async with served(port, place) as host, connected(host, version) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        await client.update(is_commands)
        await client.result("session/close", sessionId=session_id)
    assert port.sessions[session_id].life == ["new", "detached", "closed"]


async def test_commands_are_what_the_agent_session_has(place: Path, tmp_path: Path, version: int) -> None:
    port = ScriptPort()
    async with served(port, place) as host, connected(host, version) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        port.sessions[session_id].session.emit_update(
            {"sessionUpdate": "available_commands_update", "availableCommands": []}
        )
        await client.prompt(session_id, "again")
    async with served(ScriptPort(), place) as host, connected(host, version) as client:
        replayed, _ = await client.reopen(session_id, tmp_path)
        assert [command_names(u) for u in replayed if is_commands(u)] == [["dig"]]


async def test_what_is_said_late_does_not_lock_the_session(place: Path, tmp_path: Path, version: int) -> None:
    port = ScriptPort()
    async with served(port, place) as host, connected(host, version) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        await client.result("session/close", sessionId=session_id)
        with pytest.raises(TurnOver):
            port.sessions[session_id].session.emit_update(said("late", "Late"))
        await asyncio.sleep(0.1)
        await client.reopen(session_id, tmp_path)


async def test_a_finished_call_that_is_spoken_of_again_is_updated(place: Path, tmp_path: Path) -> None:
    class Later(ScriptPort):
        begins_entries = False

    port = Later()
    async with served(port, place) as host, connected(host, 1) as client:
        session_id = (await client.new_session(tmp_path))["sessionId"]
        await client.prompt(session_id, "dig")
        before = len(client.updates)
        port.sessions[session_id].session.emit_update(
            {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "title": "Dug"}
        )
        update = await client.update(lambda u: "toolCallId" in u, after=before)
        assert update["sessionUpdate"] == "tool_call_update"
