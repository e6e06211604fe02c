"""Agents written with other SDKs, driven by our client: stream, tool call, permission, cancellation, load."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

import holdfast
from app.tests.support.peers import PATIENCE, SDK1, node
from core.tests.support.clients import comparable, said
from core.tests.support.schemas import ROOT, lacking

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast import Connection

AGENTS = ROOT / "app" / "tests" / "interop" / "agents"


class Made(NamedTuple):
    """An agent: the version it speaks, the script that it is, and what runs it."""

    version: int
    script: str
    runtime: str

    def command(self) -> list[str]:
        """Say how to start it."""
        if self.runtime == "node":
            return [node(), str(AGENTS / self.script)]
        if self.runtime == "sdk1" and not SDK1.is_file():
            lacking("the Python SDK's pre-release is not installed: `make test` does it")
        return [str(SDK1) if self.runtime == "sdk1" else sys.executable, str(AGENTS / self.script)]


MADE = {
    "python-0.12-v1": Made(1, "python_v1.py", "python"),
    "python-1.0-v1": Made(1, "python_v1.py", "sdk1"),
    "python-1.0-v2": Made(2, "python_v2.py", "sdk1"),
    "typescript-v1": Made(1, "typescript_v1.mjs", "node"),
    "typescript-v2": Made(2, "typescript_v2.mjs", "node"),
}

TOLD = [("user_message", "story"), ("agent_message", "Let me look. "), ("agent_message", "Done.")]


@pytest.mark.requirement("A8", "C2", "C3", "C5", "C8", "C11")
@pytest.mark.parametrize("name", MADE)
async def test_an_agent_made_with_another_sdk_can_be_driven(name: str, tmp_path: Path) -> None:
    made = MADE[name]
    (tmp_path / "notes.txt").write_text("it is warm")
    async with holdfast.connect(*made.command(), permissions="allow", files=True) as agent:
        assert agent.protocol == made.version
        assert agent.agent.version == "1"
        async with asyncio.timeout(PATIENCE):
            session = await agent.new_session(tmp_path)
            await tells_a_story(session)
            await is_cancelled(session)
            if made.version == 1:
                assert await session.ask_text(f"read {tmp_path / 'notes.txt'}") == "it is warm"
            await is_loaded(agent, session)


async def tells_a_story(session: holdfast.ClientSession) -> None:
    turn = session.prompt("story")
    updates = [update async for update in turn]
    assert turn.stop_reason == "end_turn"
    assert [update.text for update in updates if update.kind == "agent_message_chunk"] == [
        "Let me ",
        "look. ",
        "Do",
        "ne.",
    ]
    assert updates[-1].update()["state"] == "idle"
    assert said(session.history) == TOLD
    (call,) = [entry for entry in session.history if entry.entity == "tool_call_update"]
    assert (call.members["title"], call.members["status"], call.text()) == ("Read thermometer", "completed", "21 °C")
    assert [entry.entity for entry in session.history].index("tool_call_update") == 2


async def is_cancelled(session: holdfast.ClientSession) -> None:
    async with session.prompt("wait") as turn:
        async for update in turn:
            if update.text == "waiting":
                break
    assert turn.stop_reason == "cancelled"


async def is_loaded(agent: Connection, session: holdfast.ClientSession) -> None:
    """What is loaded is what was watched; in version 1 messages have no ids here, so each makes its own."""
    before = session.history
    assert agent.can("load")
    loaded = await agent.load(session.id, session.cwd)
    if agent.protocol == 2:
        assert comparable(loaded.history) == comparable(before)
    assert said(loaded.history) == said(before)
    assert [entry.entity for entry in loaded.history] == [entry.entity for entry in before]


@pytest.mark.requirement("C8")
@pytest.mark.parametrize("name", ["typescript-v1", "typescript-v2"])
async def test_without_permission_it_does_nothing(name: str) -> None:
    async with holdfast.connect(*MADE[name].command()) as agent:
        session = await agent.new_session()
        await session.prompt("story")
        (call,) = [entry for entry in session.history if entry.entity == "tool_call_update"]
        assert (call.members["status"], call.text()) == ("failed", "not allowed")
