"""Agents written with Pydantic AI, served over ACP: what their user sees and what their model is told."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    BinaryContent,
    CallDeferred,
    ModelMessage,
    ModelResponse,
    ModelRetry,
    NativeToolCallPart,
    NativeToolReturnPart,
    RunContext,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UsageLimits,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from core.tests.support.acp import CWD, patiently, serving
from core.tests.support.scripted import Part, Script, allow, call, calls, statuses
from holdfast.engine import EngineLimits
from holdfast.integrations.pydantic_ai import acp_agent, current_call, current_turn, tool_display

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


VERSIONS = pytest.mark.parametrize("version", [1, 2])


@VERSIONS
async def test_text_thoughts_usage_and_the_tools_of_the_provider_are_shown(version: int) -> None:
    search = NativeToolCallPart("web_search", {"query": "weather"}, "n1")
    found = NativeToolReturnPart("web_search", "21 °C", "n1")
    script = Script([{0: DeltaThinkingPart(content="Well")}, {1: search}, {2: found}, "It is ", "21 °C."])
    async with serving(acp_agent(Agent(script.model))) as host:
        client = await host.client(version)
        assert await client.prompt(await client.new(), "How warm is it?") == "end_turn"
        assert client.said("agent_thought") == "Well"
        assert client.said() == "It is 21 °C."
        (shown_call,) = calls(client)
        assert (shown_call["name"], shown_call["rawInput"]) == ("web_search", {"query": "weather"})
        assert statuses(client) == ["pending", "in_progress", "completed"]
        (usage,) = client.updates("usage_update")
        assert usage["size"] == 1000
        assert usage["used"] > 0


@pytest.mark.requirement("C8")
@pytest.mark.parametrize("answer", ["allow_once", "reject_once"])
@VERSIONS
async def test_deferred_tools_are_permission_questions(version: int, answer: str) -> None:
    script = Script([call("launch", '{"target": "moon"}'), call("look", at=1)], ["Done."])
    agent, done = Agent(script.model), list[str]()

    @agent.tool_plain(requires_approval=True, metadata=tool_display(kind="execute", title="Launch to the {target}"))
    async def launch(target: str) -> str:
        done.append(target)
        return "It flies."

    @agent.tool_plain
    def look() -> str:
        done.append("looked")
        return "Stars."

    async with serving(acp_agent(agent)) as host:
        client = await host.client(version)
        session = await client.new()
        prompted = asyncio.ensure_future(client.prompt(session, "go"))
        asked = await client.question()
        assert (asked.params["toolCall"] if version == 1 else asked.params)["title"] == "Launch to the moon"
        assert statuses(client, 0) == ["pending"]
        assert calls(client)[0]["kind"] == "execute"
        assert done == ["looked"]
        asked.select(answer)
        assert await patiently(prompted) == "end_turn"
        allowed = answer == "allow_once"
        assert statuses(client, 0) == (["pending", "in_progress", "completed"] if allowed else ["pending", "failed"])
        assert ("moon" in done) == allowed
        results = {it.tool_name: (it.content, it.outcome) for it in script.parts(ToolReturnPart)}
        assert results["look"] == ("Stars.", "success")
        assert results["launch"][1] == ("success" if allowed else "denied")


@VERSIONS
async def test_a_tool_may_ask_when_it_sees_its_arguments_and_others_nobody_can_run(version: int) -> None:
    script = Script([call("spend", '{"amount": 100}'), call("elsewhere", at=1)], ["Done."])
    agent = Agent(script.model)

    @agent.tool
    async def spend(ctx: RunContext, amount: int) -> str:
        if amount > 10 and not ctx.tool_call_approved:
            raise ApprovalRequired
        return "Spent."

    @agent.tool_plain
    async def elsewhere() -> str:
        raise CallDeferred

    async with serving(acp_agent(agent)) as host:
        client = await host.client(version)
        asked = allow(client)
        assert await client.prompt(await client.new(), "go") == "end_turn"
        assert len(asked) == 1
        assert statuses(client, 0)[-3:] == ["pending", "in_progress", "completed"]
        assert statuses(client, 1)[-1] == "failed"


@VERSIONS
async def test_what_tools_give_is_shown_and_may_be_more_than_text(version: int) -> None:
    names = ("table", "picture", "nothing", "shy", "picky", "own")
    script = Script([call(name, at=at) for at, name in enumerate(names)], ["Done."])
    agent = Agent(script.model)

    @agent.tool_plain
    def table() -> dict[str, Any]:
        return {"celsius": 21, "wind": None}

    @agent.tool_plain
    def picture() -> list[Any]:
        return ["a dot", BinaryContent(b"\x89PNG", media_type="image/png")]

    @agent.tool_plain
    def nothing() -> None:
        return None

    @agent.tool_plain
    def shy() -> str:
        return "half of a character: \ud83d"

    @agent.tool_plain
    def picky() -> str:
        raise ModelRetry("say please")

    @agent.tool_plain
    async def own() -> str:
        await current_call().diff("a.py", "old", "new")
        return f"changed in {current_turn().session.cwd}"

    async with serving(acp_agent(agent)) as host:
        client = await host.client(version)
        session = await client.new()
        assert await client.prompt(session, "go") == "end_turn"
        shown_calls = dict(zip(names, calls(client), strict=True))
        assert shown_calls["table"]["rawOutput"] == {"celsius": 21, "wind": None}
        assert [it["content"]["type"] for it in shown_calls["picture"]["content"]] == ["image", "text"]
        assert shown_calls["shy"]["content"][0]["content"]["text"] == "half of a character: \ufffd"
        assert shown_calls["picky"]["status"] == "failed"
        assert [it["type"] for it in shown_calls["own"]["content"]] == ["diff"]
        assert shown_calls["own"]["rawOutput"] == f"changed in {CWD}"
        assert {it["status"] for name, it in shown_calls.items() if name != "picky"} == {"completed"}
        script.replies.append(["Still here."])
        assert await client.prompt(session, "and?") == "end_turn"
        assert {it.tool_name for it in script.parts(ToolReturnPart)} == set(names)


@VERSIONS
async def test_model_thinking_and_dependencies_are_chosen_for_each_turn(version: int) -> None:
    one, two = Script(["one"]), Script(["two"])
    agent = Agent(deps_type=str)

    @agent.instructions
    def instruct(ctx: RunContext[str]) -> str:
        return f"You serve {ctx.deps}"

    made = acp_agent(agent, models={"One": one.model, "Two": two.model}, thinking=True, deps=lambda turn: turn.text)
    async with serving(made) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "first")
        for option, value in (("model", "Two"), ("thinking", "high")):
            params = {"sessionId": session, "configId": option, "value": value}
            await client.ask("session/set_config_option", params)
        await client.prompt(session, "second")
        assert client.said() == "onetwo"
        assert one.infos[0].model_request_parameters.thinking is None
        assert one.infos[0].instructions == "You serve first"
        assert two.infos[0].model_request_parameters.thinking == "high"
        assert two.infos[0].instructions == "You serve second"
        assert [part.content for part in two.parts(UserPromptPart)] == ["first", "second"]


@VERSIONS
async def test_an_answer_that_is_no_text_is_said_as_json(version: int) -> None:
    class Forecast(BaseModel):
        celsius: int

    script = Script([call("final_result", '{"celsius": 21}')])
    async with serving(acp_agent(Agent(script.model, output_type=Forecast))) as host:
        client = await host.client(version)
        assert await client.prompt(await client.new(), "go") == "end_turn"
        assert client.said() == '```json\n{\n  "celsius": 21\n}\n```'
        assert not calls(client)


@VERSIONS
async def test_limits_end_a_turn_with_their_reason(version: int) -> None:
    script = Script(*([call("step")] for _ in range(9)))
    agent = Agent(script.model)

    @agent.tool_plain
    def step() -> str:
        return "on we go"

    for limits, reason in (
        (UsageLimits(request_limit=2), "max_turn_requests"),
        (UsageLimits(output_tokens_limit=1), "max_tokens"),
    ):
        async with serving(acp_agent(agent, limits=limits)) as host:
            client = await host.client(version)
            assert await client.prompt(await client.new(), "go") == reason


@pytest.mark.requirement("C4")
@VERSIONS
async def test_a_tool_that_breaks_ends_the_turn_and_the_conversation_goes_on(version: int) -> None:
    script = Script(["Wait. ", call("broken")], ["I remember."])
    agent = Agent(script.model)

    @agent.tool_plain
    def broken() -> str:
        raise RuntimeError("hunter2")

    async with serving(acp_agent(agent)) as host:
        client = await host.client(version)
        session = await client.new()
        if version == 1:
            params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
            assert "hunter2" not in (await client.refusal("session/prompt", params)).message
        else:
            assert await client.prompt(session, "go") == "error"
        assert statuses(client)[-1] == "failed"
        assert await client.prompt(session, "and?") == "end_turn"
        (result,) = script.parts(ToolReturnPart)
        assert (result.tool_name, result.outcome) == ("broken", "interrupted")
        assert "hunter2" not in str(client.heard)


@pytest.mark.requirement("C5")
async def test_a_tool_that_cannot_be_cancelled_is_left_behind_and_says_nothing_more() -> None:
    script = Script(["Wait. ", call("stuck")], ["Here I am."])
    agent, begun, leave = Agent(script.model), threading.Event(), threading.Event()

    @agent.tool_plain
    def stuck() -> str:
        begun.set()
        leave.wait(40)
        return "too late"

    async with serving(acp_agent(agent), limits=EngineLimits(cancel_grace=0.05)) as host:
        client = await host.client(1)
        session = await client.new()
        prompted = client.begin_prompt(session, "go")
        await asyncio.to_thread(begun.wait, 40)
        client.tell("session/cancel", {"sessionId": session})
        assert (await patiently(prompted))["stopReason"] == "cancelled"
        assert await client.prompt(session, "and?") == "end_turn"
        leave.set()
        assert [it.outcome for it in script.parts(ToolReturnPart)] == ["interrupted"]
        assert "too late" not in str(client.heard)


async def test_sessions_side_by_side_do_not_mix() -> None:
    agent = Agent(Script().model)

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Part]:
        if len(messages) == 1:
            yield call("where")
        else:
            (result,) = [it for it in messages[-1].parts if isinstance(it, ToolReturnPart)]
            yield str(result.content)

    @agent.tool_plain
    async def where() -> str:
        await asyncio.sleep(0)
        await current_call().text("looking")
        return current_turn().session.id

    async with serving(acp_agent(agent, models={"it": FunctionModel(stream_function=stream)})) as host:
        client = await host.client(1)
        sessions = [await client.new() for _ in range(5)]
        await asyncio.gather(*(client.prompt(it, "Where?") for it in sessions))
        for it in sessions:
            assert "".join(u["content"]["text"] for u in client.updates("agent_message_chunk", session=it)) == it


@pytest.mark.parametrize(
    "arguments", ["[1, 2]", '{"x": ', "null", '"x"', '{"x": "\\ud83d"}', "{}", '{"x": 1, "y": NaN}'], ids=str
)
@VERSIONS
async def test_whatever_a_model_gives_to_a_tool_is_shown_or_refused_and_the_turn_goes_on(
    version: int, arguments: str
) -> None:
    script = Script([call("look", arguments), call("no_such_tool" * 100, at=1)], ["Sorry."])
    agent = Agent(script.model, retries=3)

    @agent.tool_plain(metadata=tool_display(title="Look at {x}", path="x"))
    def look(x: str = "it") -> str:
        return f"seen: {x}"

    async with serving(acp_agent(agent)) as host:
        client = await host.client(version)
        session = await client.new()
        assert await client.prompt(session, "go") == "end_turn"
        assert all(it["status"] in ("completed", "failed") for it in calls(client))
        assert len(calls(client)) == 2
        script.replies.append(["Again."])
        assert await client.prompt(session, "again") == "end_turn"
        assert len(script.parts(ToolReturnPart)) == 2


async def test_two_calls_with_one_id_are_refused_and_the_conversation_goes_on() -> None:
    script = Script([{at: DeltaToolCall("look", "{}", tool_call_id="same")} for at in (0, 1)], ["Fine."])
    agent = Agent(script.model)

    @agent.tool_plain
    def look() -> str:
        return "seen"

    async with serving(acp_agent(agent)) as host:
        client = await host.client(2)
        session = await client.new()
        assert await client.prompt(session, "go") == "error"
        assert "unique" in client.updates("state_update")[-1]["error"]["message"]
        assert {it["status"] for it in calls(client)} == {"failed"}
        assert await client.prompt(session, "again") == "end_turn"
        assert {it.outcome for it in script.parts(ToolReturnPart)} == {"interrupted"}


@VERSIONS
async def test_a_model_that_does_not_stream_is_shown_all_the_same(version: int) -> None:
    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if isinstance(messages[-1].parts[-1], ToolReturnPart):
            return ModelResponse([TextPart("It is 21 °C.")])
        return ModelResponse([TextPart("Let me see. "), ToolCallPart("look", {"place": "sky"})])

    agent = Agent(FunctionModel(answer))

    @agent.tool_plain
    def look(place: str) -> str:
        return f"the {place} is blue"

    async with serving(acp_agent(agent)) as host:
        client = await host.client(version)
        assert await client.prompt(await client.new(), "How warm is it?") == "end_turn"
        assert client.said() == "Let me see. It is 21 °C."
        (shown,) = calls(client)
        assert (shown["name"], shown["rawInput"], shown["status"]) == ("look", {"place": "sky"}, "completed")
