"""Forks of wrapped sessions: they have a session of the agent's own, and their agent is told what it does not know."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.commands import sessions
from app.tests.support.wrapping import wrapping
from core.tests.support.acp import Refused, patiently

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.acp import Client

TORN = "The agent was stopped before it had finished."


def birds(client: Client) -> set[str]:
    return set(re.findall("heron|egret|stork", client.said("agent_message")))


async def tear(client: Client, session: str) -> None:
    """Let the agent die in the middle of a turn."""
    with pytest.raises(Refused):
        await patiently(client.begin_prompt(session, "die"))


async def fork(client: Client, session: str, cwd: str) -> str:
    params: dict[str, Any] = {"sessionId": session, "cwd": cwd, "mcpServers": []}
    return (await client.ask("session/fork", params))["sessionId"]


@pytest.mark.timeout(120)
@pytest.mark.requirement("G6", "G9", "B15")
@pytest.mark.parametrize("habits", [(), ("no resume",), ("no fork",), ("replays forks late",)])
@pytest.mark.parametrize("cut", [False, True])
async def test_a_fork_that_is_made_by_the_command_line_has_an_agents_session_of_its_own(
    tmp_path: Path, habits: tuple[str, ...], cut: bool
) -> None:
    cwd, store = str(tmp_path), str(tmp_path / "sessions.db")
    async with wrapping(tmp_path, *habits) as wrapped:
        client = await wrapped.client(1)
        session = await client.new(cwd)
        await client.prompt(session, "remember heron")
        await tear(client, session)
        await client.prompt(session, "remember egret")
    at = ("--at", "2") if cut else ()
    done = await asyncio.to_thread(sessions, "fork", session, *at, "--json", "--store", store)
    made = done.json["session"]["sessionId"]
    ours = {"heron"} if cut else {"heron", "egret"}
    for known in (ours, ours | {"stork"}):
        async with wrapping(tmp_path, *habits) as wrapped:
            client = await wrapped.client(1)
            await client.load(made, cwd)
            client.forget()
            await client.prompt(made, "recall")
            assert TORN not in client.said()
            assert birds(client) == known
            await client.prompt(made, "remember stork")
    async with wrapping(tmp_path, *habits) as wrapped:
        client = await wrapped.client(1)
        await client.load(session, cwd)
        client.forget()
        await client.prompt(session, "recall")
        assert birds(client) == {"heron", "egret"}


@pytest.mark.timeout(120)
@pytest.mark.requirement("G6", "G9", "B15")
async def test_a_fork_is_not_told_that_a_turn_was_stopped_long_ago(tmp_path: Path) -> None:
    """The user has sent the same prompt again, and the agent replays its fork from the middle."""
    cwd = str(tmp_path)
    async with wrapping(tmp_path, "replays forks late") as wrapped:
        client = await wrapped.client(1)
        session = await client.new(cwd)
        await client.prompt(session, "say same")
        await tear(client, session)
        await client.prompt(session, "say same")
        made = await fork(client, session, cwd)
        client.forget()
        await client.prompt(made, "say more")
        assert client.said() == "more"
        client.forget()
        await client.load(made, cwd)
        assert client.said("user_message") == "say samediesay samesay more"
