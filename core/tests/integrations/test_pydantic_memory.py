"""What a model remembers of a session: after a restart, a fork, an upgrade."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import Agent, ModelMessage, ModelRequest, ModelResponse, ThinkingPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import DeltaThinkingPart

from core.tests.support.acp import CWD, Client, conversation, patiently, serving
from core.tests.support.scripted import Script, allow, call
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
        for entry in await turn.session.kept():
            for kept in entry["pydantic_ai"].values():
                kept["messages"] = [{"kind": "from another time"}]
            await turn.keep(entry)
        turn.session.live.clear()  # as if the session had just come back to life
        await turn.say("Spoiled.")

    async with serving(made, tmp_path / "s.db") as host:
        client = await host.client(1)
        session = await client.new()
        for prompt in ("Count", "/spoil", "On"):
            assert await client.prompt(session, prompt) == "end_turn"
    assert script.contents() == ["You count.", "Count", "One.", "/spoil", "Spoiled.", "On"]
    assert isinstance(script.asked[-1][1], ModelResponse)


@pytest.mark.parametrize("system_prompt", ["You count.", ""])
async def test_a_system_prompt_that_the_history_lacks_is_there_in_every_turn(system_prompt: str) -> None:
    script = Script(["One."], ["Two."], ["Three."])
    made = acp_agent(Agent(script.model, system_prompt=system_prompt or ()))

    @made.command("begin", "Begin without the model")
    async def begin(turn: Turn) -> None:
        await turn.say("Begun.")

    async with serving(made) as host:
        client = await host.client(1)
        session = await client.new()
        said = [system_prompt] * bool(system_prompt) + ["/begin", "Begun."]
        assert await client.prompt(session, "/begin") == "end_turn"
        for prompt, answer in (("a", "One."), ("b", "Two."), ("c", "Three.")):
            assert await client.prompt(session, prompt) == "end_turn"
            assert script.contents() == [*said, prompt]
            said += [prompt, answer]


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


def valid(messages: list[ModelMessage]) -> bool:
    """Whether every call has its result in the message behind it, and every result its call, as providers want it."""
    calls: set[str] = set()
    for it in messages:
        results = {part.tool_call_id for part in it.parts if isinstance(part, ToolReturnPart)}
        if results != calls:
            return False
        calls = {part.tool_call_id for part in it.parts if isinstance(part, ToolCallPart)}
    return not calls and isinstance(messages[-1], ModelRequest)


@pytest.mark.requirement("C5")
async def test_cancelled_after_any_update_the_next_turn_has_messages_that_a_provider_takes() -> None:
    agent, script = Agent(), Script()

    @agent.tool_plain
    async def look() -> str:
        await current_call().text("looking")
        await asyncio.sleep(0)
        return "stars"

    @agent.tool_plain(requires_approval=True)
    async def launch() -> str:
        await asyncio.sleep(0)
        return "flies"

    async with serving(acp_agent(agent, models={"it": script.model})) as host:
        client = await host.client(2)
        allow(client)
        for count in range(1, 100):
            script.replies[:] = [
                [{0: DeltaThinkingPart(content="Hm.")}, "Wait. ", call("look", at=1), call("launch", at=2)],
                ["Now ", call("look", at=1)],
                ["Done", "."],
            ]
            client.forget()
            if await cancelled_after(client, session := await client.new(), count):
                return end_what_pydantic_ai_leaves()  # it was over by then
            shown = conversation(client.updates(session=session))
            script.replies[:] = [["Still here."]]
            assert await client.prompt(session, "again") == "end_turn", (count, client.updates("state_update")[-1])
            assert valid(script.asked[-1]), (count, script.asked[-1])
            said = "".join(str(it) for it in script.contents())
            assert all(it["content"][0]["text"] in said for it in shown if it["sessionUpdate"] == "agent_message")
    raise AssertionError("it was never cancelled late enough to be over")


@pytest.mark.requirement("C5")
async def test_cancelled_at_any_moment_the_model_remembers_what_was_shown() -> None:
    agent, script = Agent(), Script()

    @agent.tool_plain
    async def look() -> str:
        return "stars"

    async with serving(acp_agent(agent, models={"it": script.model})) as host:
        client = await host.client(2)
        for count in range(1, 1_000):
            script.replies[:] = [["Now ", call("look", at=1)], ["Done", "."]]
            client.forget()
            session = await client.new()
            prompted = client.begin_prompt(session, "go")
            await client.until(lambda at=session: client.updates(session=at))
            for _ in range(count):
                await asyncio.sleep(0)
            over = bool(client.ends(session))
            client.tell("session/cancel", {"sessionId": session})
            await patiently(prompted)
            await client.until(lambda at=session: client.ends(at))
            if over:
                return end_what_pydantic_ai_leaves()
            shown = conversation(client.updates(session=session))
            script.replies[:] = [["Still here."]]
            assert await client.prompt(session, "again") == "end_turn"
            assert valid(script.asked[-1]), (count, script.asked[-1])
            said = "".join(str(it) for it in script.contents())
            assert all(it["content"][0]["text"] in said for it in shown if it["sessionUpdate"] == "agent_message")
    raise AssertionError("it was never cancelled late enough to be over")


def end_what_pydantic_ai_leaves() -> None:
    """End tasks of Pydantic AI's (2.66) that stay where a run is cancelled at the very beginning of a request."""
    for task in asyncio.all_tasks():
        if "ScopedTask" in str(task.get_coro()):
            task.cancel()


async def cancelled_after(client: Client, session: str, updates: int) -> bool:
    """Prompt, and cancel the turn after so many updates; say whether it was over by itself then."""
    prompted = client.begin_prompt(session, "go")
    await client.until(lambda: len(client.updates(session=session)) >= updates or client.ends(session))
    over = bool(client.ends(session))
    client.tell("session/cancel", {"sessionId": session})
    await patiently(prompted)
    await client.until(lambda: client.ends(session))
    return over


async def test_whatever_a_turn_without_a_model_has_shown_becomes_messages_that_a_provider_takes() -> None:
    script = Script()
    made = acp_agent(Agent(script.model))

    @made.command("act", "Do things at random")
    async def act(turn: Turn) -> None:
        chance = Random(turn.text)
        for n in range(chance.randrange(8)):
            await anything(turn, chance, n)
        if chance.random() < 0.3:
            raise RuntimeError("broken off")

    async with serving(made) as host:
        client = await host.client(2)
        session = await client.new()
        for seed in range(40):  # the last of which the model is asked about
            await client.prompt(session, f"/act {seed}")
            if seed % 3 == 0:
                script.replies[:] = [["I see."]]
                assert await client.prompt(session, f"What was that, {seed}?") == "end_turn"
                assert valid(script.asked[-1])
        said = "".join(str(it) for it in script.contents())
        told = conversation(client.updates(session=session))[:-2]
        for it in told:
            if it["sessionUpdate"] == "agent_message":
                assert it["content"][0]["text"] in said
        shown_calls = [it for it in told if it["sessionUpdate"] == "tool_call_update"]
        assert len(script.parts(ToolReturnPart)) == len(shown_calls) > 20


async def anything(turn: Turn, chance: Random, n: int) -> None:
    match chance.randrange(6):
        case 0:
            await turn.say(f"said {n}. ")
        case 1:
            await turn.think("hm")
        case 2:
            async with turn.tool("Übung: 1 + 1?", input=[1, 1]) as call:
                await call.output(2)
        case 3:
            async with turn.tool("Fail", name="fail", input={"n": n}) as call:
                await call.fail("it failed")
        case 4:
            turn.tool("Left open", name="left_open", pending=chance.random() < 0.5).start()
        case _:
            await turn.plan(["one", "two"])


async def test_what_an_earlier_version_kept_in_the_state_is_moved_to_private_entries(tmp_path: Path) -> None:
    script = Script(["One."], ["Two."], ["Three."])
    made = acp_agent(Agent(script.model))

    @made.command("back", "Keep as an earlier version did")
    async def back(turn: Turn) -> None:
        (entry,) = await turn.session.kept()
        for kept in entry["pydantic_ai"].values():
            kept["messages"][-1]["parts"][0]["content"] = "Uno."  # what counts is what was kept, not what is shown
        turn.session.state["pydantic_ai"]["turns"] = entry["pydantic_ai"]
        turn.session.live.clear()

    @made.command("look", "Tell what is kept")
    async def look(turn: Turn) -> None:
        await turn.say(f"{'turns' in turn.session.state['pydantic_ai']} {len(await turn.session.kept())}")

    async with serving(made, tmp_path / "s.db") as host:
        client = await host.client(1)
        session = await client.new()
        for prompt in ("Count", "/back", "On", "/look"):
            client.forget()
            assert await client.prompt(session, prompt) == "end_turn"
    assert client.said() == "False 3"
    assert "One." in script.contents() or "Uno." in script.contents()
