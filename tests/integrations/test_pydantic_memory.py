"""What a model remembers of a session: after a restart, a fork, an upgrade."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic_ai import Agent, ModelRequest, ModelResponse, ThinkingPart, ToolReturnPart
from pydantic_ai.models.function import DeltaThinkingPart
from tests.support.acp import CWD, serving
from tests.support.scripted import Script, call

from holdfast.integrations.pydantic_ai import acp_agent, current_call

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast import Turn


async def test_all_that_a_model_said_comes_back_after_a_restart_as_it_was(tmp_path: Path) -> None:
    thought = {0: DeltaThinkingPart(content="Hm.", signature="signed")}
    script = Script([thought, call("look", at=1)], ["Stars."], ["Still stars."])
    agent = Agent(script.model, system_prompt="You look.", instructions="Now.")

    @agent.tool_plain
    def look() -> str:
        return "stars"

    async with serving(acp_agent(agent), tmp_path / "s.db") as host:
        client = await host.client(1)
        session = await client.new()
        await client.prompt(session, "Look")
    async with serving(acp_agent(agent), tmp_path / "s.db") as host:
        client = await host.client(1)
        await client.load(session)
        await client.prompt(session, "Again")
    assert script.contents() == ["You look.", "Look", "Hm.", "stars", "Stars.", "Again"]
    assert [part.signature for part in script.parts(ThinkingPart)] == ["signed"]
    assert [part.tool_call_id for part in script.parts(ToolReturnPart)] == ["c1"]
    last = script.asked[-1][-1]
    assert isinstance(last, ModelRequest)
    assert last.instructions == "Now."


async def test_what_is_kept_in_a_way_nobody_reads_any_more_is_read_from_what_is_shown(tmp_path: Path) -> None:
    script = Script(["One."], ["Two."])
    made = acp_agent(Agent(script.model, system_prompt="You count."))

    @made.command("spoil", "Spoil the memory")
    async def spoil(turn: Turn) -> None:
        for kept in turn.session.state["pydantic_ai"]["turns"].values():
            kept["messages"] = [{"kind": "from another time"}]
        await turn.say("Spoiled.")

    async with serving(made, tmp_path / "s.db") as host:
        client = await host.client(1)
        session = await client.new()
        for prompt in ("Count", "/spoil", "On"):
            assert await client.prompt(session, prompt) == "end_turn"
    assert script.contents() == ["You count.", "Count", "One.", "/spoil", "Spoiled.", "On"]
    assert isinstance(script.asked[-1][1], ModelResponse)


async def test_a_fork_of_a_running_turn_knows_what_is_finished_of_it() -> None:
    script = Script([call("look"), call("stay", at=1)], ["Never said."], ["Here."])
    agent, stay = Agent(script.model), asyncio.Event()

    @agent.tool_plain
    async def look() -> str:
        return "stars"

    @agent.tool_plain(sequential=True)
    async def stay_here() -> None: ...

    @agent.tool_plain(name="stay", sequential=True)
    async def stays() -> str:
        await current_call().text("staying")
        await stay.wait()
        return "stayed"

    async with serving(acp_agent(agent)) as host:
        client = await host.client(2)
        session = await client.new()
        client.begin_prompt(session, "Look")
        await client.until(lambda: "staying" in str(client.updates("tool_call_content_chunk")))
        fork = (await client.ask("session/fork", {"sessionId": session, "cwd": CWD, "mcpServers": []}))["sessionId"]
        script.replies.pop(0)
        assert await client.prompt(fork, "And?") == "end_turn"
        assert [(it.tool_name, it.content) for it in script.parts(ToolReturnPart)] == [("look", "stars")]
        client.tell("session/cancel", {"sessionId": session})
        await client.until(lambda: client.ends(session))
