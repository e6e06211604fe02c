"""What agent code can look back at, and tool calls that wait before they begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, conversation, patiently, serving
from holdfast import Agent, Turn

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("version", [1, 2])


def remembering() -> Agent:
    """Make an agent that says how many entries there are before it speaks, and what was said."""
    agent = Agent("remembering")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        history = await turn.history()
        said = [it.text() for it in history if it.entity in ("user_message", "agent_message")]
        async with turn.tool("Look back", name="look", input={"n": len(said)}) as call:
            await call.text("done")
        await turn.say(" ".join(said))

    return agent


@VERSIONS
async def test_a_turn_can_look_back_at_all_that_its_user_sees(version: int, tmp_path: Path) -> None:
    async with serving(remembering(), tmp_path / "s.db") as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "one")
        await client.prompt(session, "two")
        assert client.said() == "oneone one two"
    async with serving(remembering(), tmp_path / "s.db") as host:
        client = await host.client(version)
        await client.resume(session)
        await client.prompt(session, "three")
        assert client.said() == "one one two one one two three"
        again = [it for it in conversation(await client.replayed(session)) if it["sessionUpdate"] == "tool_call_update"]
        assert [(it["name"], it["rawInput"]) for it in again] == [("look", {"n": n}) for n in (1, 3, 5)]


@VERSIONS
async def test_a_fork_looks_back_at_what_it_was_forked_from_and_no_further(version: int) -> None:
    async with serving(remembering()) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "one")
        await client.prompt(session, "two")
        first = conversation(await client.replayed(session))[0]["messageId"]
        params: dict[str, Any] = {"sessionId": session, "cwd": CWD, "mcpServers": [], "_meta": {"holdfast/upTo": first}}
        fork = (await client.ask("session/fork", params))["sessionId"]
        client.forget()
        await client.prompt(fork, "three")
        assert client.said() == "one three"


@pytest.mark.requirement("C7", "C8")
@pytest.mark.parametrize(
    ("option", "statuses"),
    [("allow_once", ["pending", "in_progress", "completed"]), ("reject_once", ["pending", "failed"])],
)
@VERSIONS
async def test_a_tool_call_may_wait_for_permission_before_it_begins(
    version: int, option: str, statuses: list[str]
) -> None:
    agent = Agent("patient")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        async with turn.tool("Something", kind="edit", pending=True) as call:
            assert call.is_empty
            await call.describe("Write a.txt", input={"path": "a.txt"}, locations=["a.txt", ("b.txt", 3)])
            if await turn.allow(call.title, call):
                await call.begin()
                await call.text("written")
                assert not call.is_empty
            else:
                await call.fail("not allowed")

    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        prompted = client.begin_prompt(session, "go")
        asked = await client.question()
        told = client.updates("tool_call", "tool_call_update")
        assert [it["status"] for it in told if "status" in it] == ["pending"]
        about = asked.params["toolCall"] if version == 1 else asked.params
        assert about["title"] == "Write a.txt"
        asked.select(option)
        await patiently(prompted)
        await client.until(lambda: version == 1 or client.ends(session))
        told = client.updates("tool_call", "tool_call_update")
        assert [it["status"] for it in told if "status" in it] == statuses
        (call,) = [it for it in conversation(client.updates()) if it["sessionUpdate"] == "tool_call_update"]
        assert call["locations"] == [{"path": f"{CWD}/a.txt"}, {"path": f"{CWD}/b.txt", "line": 3}]
