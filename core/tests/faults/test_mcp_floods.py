"""Servers that say far too much (E3): the agent's memory stays as it is, everybody else is served, the reason is seen.

The agent is a process of its own, so that the most memory it ever had is that of the flood and of nothing before it.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.support.acp import running
from core.tests.support.links import PATIENCE
from core.tests.support.mcp import all_dead, wire
from core.tests.support.wire import memory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from core.tests.support.acp import Client

pytestmark = pytest.mark.requirement("E3", "P7")

MEGABYTES = 20

TOO_LONG = "it sent a message of more than 16777216 bytes"

AGENT = """
import asyncio, json
from holdfast import Agent
from holdfast.errors import McpError

agent = Agent("flooded")

@agent.prompt
async def answer(turn):
    if turn.text == "hello":
        await turn.say("hello")
        return
    wanted = json.loads(turn.text)
    if wanted.pop("alone", False):
        await turn.call_tool("flooder", "flood", wanted)
        return
    flood = asyncio.ensure_future(turn.call_tool("flooder", "flood", wanted))
    echoes = 0
    while not flood.done():
        echoes += (await turn.session.mcp.call("it", "echo", {"text": "hi"})).text == "hi"
    try:
        end = (await flood).text
    except McpError as e:
        end = f"{type(e).__name__}: {e}"
    await turn.say(json.dumps([echoes, end, [[it.name, it.state] for it in turn.session.mcp.servers]]))
"""


@asynccontextmanager
async def flooded(tmp_path: Path) -> AsyncGenerator[tuple[Client, str]]:
    """Start an agent that has loaded and done before all that it will do; give a client of it, and a quiet session."""
    file, marks = tmp_path / "agent.py", tmp_path / "marks"
    file.write_text(AGENT)
    async with running(tmp_path / "store.db", str(file), session={"notices": {}}) as client:
        other = await client.new(str(tmp_path))
        await flood(client, await new(client, tmp_path), other, "nothing")
        forget_peak(agent_of(client))
        yield client, other
    assert all_dead(marks) >= 4


async def new(client: Client, tmp_path: Path, *manners: str) -> str:
    """Make a session with a server that can flood and one that is well-behaved."""
    marks = str(tmp_path / "marks")
    servers = [wire(*manners, name="flooder", MARKS=marks), wire(name="it", MARKS=marks)]
    return await client.new(str(tmp_path), mcpServers=servers)


def agent_of(client: Client) -> int:
    """The agent's pid; the transport has that of its guard."""
    guard: int = vars(client.transport)["_child"].pid
    (agent,) = Path(f"/proc/{guard}/task/{guard}/children").read_text().split()
    return int(agent)


def forget_peak(pid: int) -> int:
    """Let the kernel forget how much memory a process once had; give how much it has."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return memory(pid, "VmHWM")


def processor_time(pid: int) -> float:
    """How many seconds a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def flood(client: Client, session: str, other: str, of: str) -> tuple[int, int, str, dict[str, str]]:
    """Let it flood. Give how often each of the two others were served meanwhile, its end, and how the servers are."""
    client.forget()
    turn = client.begin_prompt(session, json.dumps({"of": of, "megabytes": MEGABYTES}))
    served = 0
    async with asyncio.timeout(4 * PATIENCE):
        while not turn.done():
            served += await client.prompt(other, "hello") == "end_turn"
        assert (await turn)["stopReason"] == "end_turn"
    echoes, end, servers = json.loads(client.said().replace("hello", ""))
    return echoes, served, end, dict(servers)


def check_memory(client: Client, before: int, most: int) -> None:
    grown = memory(agent_of(client), "VmHWM") - before
    assert grown < most, f"it grew by {grown >> 20} MiB"


@pytest.mark.parametrize("of", ["garbage", "messages", "progress", "answers", "requests", "stderr"])
async def test_a_flood_in_lines_is_borne(of: str, tmp_path: Path) -> None:
    async with flooded(tmp_path) as (client, other):
        session = await new(client, tmp_path)
        before = forget_peak(agent_of(client))
        echoes, served, end, servers = await flood(client, session, other, of)
        check_memory(client, before, 8 << 20)
        assert end == "flooded"
        assert servers == {"flooder": "ready", "it": "ready"}
        assert echoes > 1
        assert served > 1
        assert not client.updates("notice")
        assert all(len(update.get("title", "")) < 1_000 for update in client.updates("tool_call_update"))


@pytest.mark.parametrize("of", ["short notifications", "short requests", "short lines", "messages", "stderr"])
async def test_a_flood_takes_little_of_the_time_that_others_need(of: str, tmp_path: Path) -> None:
    """Counted in processor time: a busy machine does not change how much of that a prompt takes."""
    prompts = 30
    async with flooded(tmp_path) as (client, other):
        session = await new(client, tmp_path)
        agent = agent_of(client)

        async def time_prompts() -> float:
            before = processor_time(agent)
            async with asyncio.timeout(4 * PATIENCE):
                for _ in range(prompts):
                    assert await client.prompt(other, "hello") == "end_turn"
            return processor_time(agent) - before

        at_rest = await time_prompts()
        client.begin_prompt(session, json.dumps({"of": of, "megabytes": 100_000, "alone": True}))
        await client.until(lambda: client.updates("tool_call", session=session))
        before = forget_peak(agent)
        await time_prompts()  # at first it may say something quickly
        beside = await time_prompts()
        check_memory(client, before, 8 << 20)
        client.tell("session/cancel", {"sessionId": session})
        assert beside < 4 * at_rest + 0.1, f"{beside:.3f} s beside the flood, {at_rest:.3f} s at rest"


async def test_a_flood_without_an_end_of_line_is_cut_off_and_the_reason_is_seen(tmp_path: Path) -> None:
    async with flooded(tmp_path) as (client, other):
        session = await new(client, tmp_path)
        before = forget_peak(agent_of(client))
        echoes, _, end, servers = await flood(client, session, other, "one line")
        check_memory(client, before, 40 << 20)  # 16 MiB are there twice for a moment
        assert end.startswith("ServerUnavailable")
        assert TOO_LONG in end
        assert servers == {"flooder": "failed", "it": "ready"}
        assert echoes > 0
        (notice,) = client.updates("notice")
        assert notice["title"] == "MCP server flooder is not available"
        assert TOO_LONG in notice["description"]
        assert client.updates("tool_call_update")[-1]["status"] == "failed"
        assert TOO_LONG in json.dumps(client.updates("tool_call_update"))


async def test_a_flood_before_the_first_answer_is_borne(tmp_path: Path) -> None:
    async with flooded(tmp_path) as (client, other):
        before = forget_peak(agent_of(client))
        session = await new(client, tmp_path, "gush")
        _, served, end, servers = await flood(client, session, other, "nothing")
        check_memory(client, before, 8 << 20)
        assert end == "flooded"
        assert served > 1
        assert servers == {"flooder": "ready", "it": "ready"}
