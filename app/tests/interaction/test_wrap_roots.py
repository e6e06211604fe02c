"""Which directories and MCP servers a wrapped agent works with (E1, F3, G1, G2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.wrapping import wrapping
from core.tests.support.acp import Refused, patiently

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.support.acp import Client

CLOCK: dict[str, Any] = {"name": "clock", "command": "/bin/clock", "args": [], "env": []}
OTHERS = "Yours apply when it is opened the next time"


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return request.param


def habits(version: int, *others: str) -> tuple[str, ...]:
    """Return habits, and that the agent speaks the version of the client."""
    return ("v2", *others) if version == 2 else others


async def heard(client: Client, session: str, *methods: str) -> list[dict[str, Any]]:
    """Ask the agent which requests it has heard; return what they named."""
    found: list[dict[str, Any]] = []
    for method in methods:
        client.forget()
        await client.prompt(session, f"heard {method}")
        found += [message["params"] for message in json.loads(client.said())]
    return found


async def restore(client: Client, session: str, cwd: str, **params: Any) -> None:
    """Load a session."""
    if client.version == 1:
        await client.load(session, cwd, **params)
    else:
        await client.resume(session, cwd, replayFrom={"type": "start"}, **params)


def session_abilities(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what an agent says in `initialize` that it can do with sessions."""
    if answer["protocolVersion"] == 2:
        return answer["capabilities"]["session"]
    return answer["agentCapabilities"]["sessionCapabilities"]


@pytest.mark.requirement("G1", "B3")
async def test_additional_directories_are_advertised_only_if_the_agent_takes_them(tmp_path: Path, version: int) -> None:
    cwd, other = str(tmp_path), str(tmp_path / "other")
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = wrapped.connect(version)
        assert "additionalDirectories" not in session_abilities(await client.initialize())
        with pytest.raises(Refused, match="takes no additionalDirectories") as refused:
            await client.new(cwd, additionalDirectories=[other])
        assert refused.value.code == -32602
        session = await client.new(cwd, additionalDirectories=[cwd])  # which is no other one
        with pytest.raises(Refused, match="takes no additionalDirectories"):
            await restore(client, session, cwd, additionalDirectories=[other])
    async with wrapping(tmp_path, *habits(version, "takes directories")) as wrapped:
        client = wrapped.connect(version)
        assert session_abilities(await client.initialize())["additionalDirectories"] == {}
        session = await client.new(cwd, additionalDirectories=[other])
        (opened,) = await heard(client, session, "session/new")
        assert opened["additionalDirectories"] == [other]


@pytest.mark.requirement("E1", "G2")
@pytest.mark.parametrize("kind", ["http", "sse", "_custom"])
async def test_mcp_servers_of_a_kind_that_the_agent_lacks_are_refused(tmp_path: Path, version: int, kind: str) -> None:
    cwd = str(tmp_path)
    server: dict[str, Any] = {"type": kind, "name": "clock", "url": "http://localhost/mcp", "headers": []}
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(cwd, mcpServers=[CLOCK])
        for opening in (
            client.new(cwd, mcpServers=[CLOCK, server]),
            restore(client, session, cwd, mcpServers=[server]),
            client.resume(session, cwd, mcpServers=[server]),
        ):
            with pytest.raises(Refused, match=f"'clock': this agent does not connect MCP servers of type '{kind}'; "
                               "it connects: stdio") as refused:  # fmt: skip
                await opening
            assert refused.value.code == -32602
        (opened,) = await heard(client, session, "session/new")
        assert opened["mcpServers"] in ([CLOCK], [{"type": "stdio", **CLOCK}])


@pytest.mark.requirement("F3", "G4")
@pytest.mark.parametrize("again", ["the same client", "another client, later"])
async def test_other_roots_of_the_only_client_take_effect_at_once(tmp_path: Path, version: int, again: str) -> None:
    cwd, other = str(tmp_path), str(tmp_path / "other")
    async with wrapping(tmp_path, *habits(version, "takes directories")) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(cwd)
        await client.prompt(session, "remember heron")
        if again == "another client, later":
            await wrapped.disconnect(client)
            client = await wrapped.client(version)
        await restore(client, session, cwd, additionalDirectories=[other], mcpServers=[CLOCK])
        assert OTHERS not in str(client.updates())
        client.forget()
        await client.prompt(session, "recall")
        assert client.said() == "heron"
        (closed,) = await heard(client, session, "session/close")
        opened = [call for call in await heard(client, session, "session/load", "session/resume")
                  if call["sessionId"] == closed["sessionId"]]  # fmt: skip
        assert [call["additionalDirectories"] for call in opened] == [[other]]
        assert [server["name"] for server in opened[0]["mcpServers"]] == ["clock"]
        await restore(client, session, cwd, additionalDirectories=[other], mcpServers=[CLOCK])
        assert len(await heard(client, session, "session/close")) == 1


@pytest.mark.requirement("F3")
async def test_other_roots_of_one_of_several_clients_wait(tmp_path: Path) -> None:
    cwd, other = str(tmp_path), str(tmp_path / "other")
    async with wrapping(tmp_path, "takes directories") as wrapped:
        first, second = await wrapped.client(1), await wrapped.client(1, session={"notices": {}})
        session = await first.new(cwd)
        await second.load(session, cwd, additionalDirectories=[other])
        await second.until(lambda: OTHERS in str(second.updates()))
        assert await heard(first, session, "session/close") == []


@pytest.mark.requirement("F3")
async def test_other_roots_wait_for_the_end_of_a_turn(tmp_path: Path) -> None:
    cwd, other = str(tmp_path), str(tmp_path / "other")
    async with wrapping(tmp_path, "takes directories") as wrapped:
        client = await wrapped.client(1, session={"notices": {}})
        session = await client.new(cwd)
        turn = client.begin_prompt(session, "wait")
        await client.until(lambda: "waiting" in client.said())
        await client.load(session, cwd, additionalDirectories=[other])
        await client.until(lambda: OTHERS in str(client.updates()))
        client.tell("session/cancel", {"sessionId": session})
        assert (await patiently(turn))["stopReason"] == "cancelled"
        assert await heard(client, session, "session/close") == []


@pytest.mark.requirement("F3", "G4")
@pytest.mark.parametrize("habit", ["no close", "refuses to close"])
async def test_a_session_that_the_agent_does_not_close_keeps_its_roots(tmp_path: Path, habit: str) -> None:
    cwd, other = str(tmp_path), str(tmp_path / "other")
    async with wrapping(tmp_path, "takes directories", habit) as wrapped:
        client = await wrapped.client(1, session={"notices": {}})
        session = await client.new(cwd)
        await client.prompt(session, "remember heron")
        await client.load(session, cwd, additionalDirectories=[other])
        await client.until(lambda: OTHERS in str(client.updates()))
        client.forget()
        await client.prompt(session, "recall")
        assert client.said() == "heron"
        loaded = await heard(client, session, "session/load", "session/resume")
        assert [call for call in loaded if "additionalDirectories" in call] == []
