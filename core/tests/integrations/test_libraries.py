"""Agents written with LangGraph and with the OpenAI Agents SDK: what their user sees and what their model is told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, Refused, patiently, serving
from core.tests.support.libraries import LIBRARIES, Tools, library_agent, library_host, told
from core.tests.support.scripted import allow, calls, statuses
from holdfast.errors import UsageError
from holdfast.testing.model_server import Fail, ModelServer, Say
from holdfast.testing.model_server import calls as calling

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.parametrize("library", LIBRARIES)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def test_text_tool_calls_and_usage_are_shown_as_they_come(library: str) -> None:
    script = [calling(("look", {"place": "up"}), text="Let me see. "), Say("Stars, ")]
    tools = Tools()
    async with library_host(library, script, tools) as (_, host):
        client = await host.client(2)
        assert await client.prompt(await client.new(), "What is there?") == "end_turn"
        assert client.said() == "Let me see. Stars, "
        (call,) = calls(client)
        assert (call["name"], call["kind"], call["rawInput"]) == ("look", "read", {"place": "up"})
        assert call["content"][0]["content"]["text"] == "look is done"
        assert statuses(client) == ["pending", "in_progress", "completed"]
        assert client.updates("usage_update")[-1]["size"] == 1000


@pytest.mark.requirement("C8")
@pytest.mark.parametrize("answer", ["allow_once", "reject_once"])
async def test_tools_that_need_approval_are_permission_questions(library: str, answer: str) -> None:
    script = [calling(("launch", {"target": "moon"}), ("look", {"place": "up"})), Say("Done.")]
    tools = Tools()
    async with library_host(library, script, tools) as (server, host):
        client = await host.client(2)
        prompted = asyncio.ensure_future(client.prompt(await client.new(), "go"))
        asked = await client.question()
        assert asked.params["title"] == "Launch to the moon"
        assert calls(client)[0]["rawInput"] == {"target": "moon"}
        assert statuses(client, 0) == ["pending"]
        asked.select(answer)
        assert await patiently(prompted) == "end_turn"
        allowed = answer == "allow_once"
        assert statuses(client, 0) == (["pending", "in_progress", "completed"] if allowed else ["pending", "failed"])
        assert ("launch moon" in tools.done) == allowed
        assert "look" in tools.done
        results = [said for who, said in told(server) if who == "result"]
        assert len(results) == 2
        assert any(("did not allow" in it) != allowed for it in results)


async def test_always_answers_the_next_question_too(library: str) -> None:
    script = [calling(("launch", {"target": target})) for target in ("moon", "mars")] + [Say("Done.")]
    tools = Tools()
    async with library_host(library, script, tools) as (_, host):
        client = await host.client(1)
        asked = allow(client, "allow_always")
        assert await client.prompt(await client.new(), "go") == "end_turn"
        assert tools.done == ["launch moon", "launch mars"]
        assert len(asked) == 1


async def test_the_model_remembers_after_a_restart_what_was_said_and_done(library: str, tmp_path: Path) -> None:
    script = [calling(("look", {"place": "up"}), text="Hm. "), Say("Stars."), Say("Still stars.")]
    async with ModelServer(script) as server:
        async with library_agent(library, server) as agent, serving(agent, tmp_path / "s.db") as host:
            client = await host.client(1)
            session = await client.new()
            await client.prompt(session, "Look")
        async with library_agent(library, server) as agent, serving(agent, tmp_path / "s.db") as host:
            client = await host.client(1)
            await client.load(session)
            await client.prompt(session, "Again")
        assert told(server) == [
            ("user", "Look"),
            ("assistant", "Hm. "),
            ("call", "look"),
            ("result", "look is done"),
            ("assistant", "Stars."),
            ("user", "Again"),
        ]


@pytest.mark.requirement("P11")
async def test_a_turn_cancelled_in_mid_answer_is_remembered_as_the_user_saw_it(library: str) -> None:
    script = [Say("Once upon a time", then="hang"), Say("A princess.")]
    async with library_host(library, script) as (server, host):
        client = await host.client(1)
        session = await client.new()
        prompted = client.begin_prompt(session, "Tell me")
        await client.until(lambda: client.said() == "Once upon a time")
        client.tell("session/cancel", {"sessionId": session})
        assert (await patiently(prompted))["stopReason"] == "cancelled"
        assert await client.prompt(session, "Go on") == "end_turn"
        assert told(server) == [("user", "Tell me"), ("assistant", "Once upon a time"), ("user", "Go on")]


async def test_a_tool_is_cancelled_with_its_turn_and_has_a_result_for_the_model(library: str) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def stay(_: Any, call: Any) -> str:
        await call.text("looking")
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    script = [calling(("look", {"place": "up"}), text="Wait. "), Say("Fine.")]
    async with library_host(library, script, Tools(look=stay)) as (server, host):
        client = await host.client(1)
        session = await client.new()
        prompted = client.begin_prompt(session, "Look")
        await begun.wait()
        client.tell("session/cancel", {"sessionId": session})
        assert (await patiently(prompted))["stopReason"] == "cancelled"
        await asyncio.wait_for(ended.wait(), 60)
        assert await client.prompt(session, "Go on") == "end_turn"
        who = [who for who, _ in told(server)]
        assert who == ["user", "assistant", "call", "result", "user"]


async def test_a_fork_knows_nothing_of_what_it_left_out(library: str) -> None:
    script = [Say("One."), Say("Two."), Say("Three.")]
    async with library_host(library, script) as (server, host):
        client = await host.client(2)
        session = await client.new()
        await client.prompt(session, "a")
        params: Any = {"sessionId": session, "cwd": CWD, "mcpServers": []}
        fork = (await client.ask("session/fork", params))["sessionId"]
        await client.prompt(session, "b")
        await client.prompt(fork, "c")
        assert told(server) == [("user", "a"), ("assistant", "One."), ("user", "c")]


async def test_a_model_is_told_that_a_fork_begins_in_the_past_once_and_again_after_a_restart(library: str) -> None:
    script = [Say("One."), Say("Two."), Say("Three."), Say("Four.")]
    async with library_host(library, script) as (server, host):
        client = await host.client(2)
        session = await client.new()
        await client.prompt(session, "a")
        answer = client.updates("agent_message_chunk")[0]["messageId"]
        await client.prompt(session, "b")
        params: Any = {"sessionId": session, "cwd": CWD, "mcpServers": [], "_meta": {"holdfast/upTo": answer}}
        fork = (await client.ask("session/fork", params))["sessionId"]
        await client.prompt(fork, "c")
        (first, second, (who, note), last) = told(server)
        assert [first, second, last] == [("user", "a"), ("assistant", "One."), ("user", "c")]
        assert who == "user" and "The files are as they are now, not as they were then." in note
        await client.ask("session/close", {"sessionId": fork})
        await client.load(fork)
        await client.prompt(fork, "d")
        assert told(server) == [first, second, (who, note), last, ("assistant", "Three."), ("user", "d")]


async def test_a_tool_shows_more_while_it_runs(library: str) -> None:
    async def look(turn: Any, call: Any) -> str:
        await call.diff("hello.txt", None, "hello\n")
        assert turn.text == "Look"
        return "seen"

    script = [calling(("look", {"place": "up"})), Say("Fine.")]
    async with library_host(library, script, Tools(look=look)) as (_, host):
        client = await host.client(2)
        await client.prompt(await client.new(), "Look")
        (call,) = calls(client)
        assert [it["type"] for it in call["content"]] == ["diff"]
        assert call["rawOutput"] == "seen"


@pytest.mark.parametrize(("status", "advice"), [(401, "check the API key"), (429, "slow down"), (500, "try again")])
async def test_a_failure_of_the_provider_says_what_to_do_and_forgets_nothing(
    library: str, status: int, advice: str
) -> None:
    script = [Fail(status, "sk-for-nobody is wrong"), Say("Here.")]
    async with library_host(library, script) as (server, host):
        client = await host.client(1)
        session = await client.new()
        with pytest.raises(Refused) as refused:
            await client.prompt(session, "Hello")
        said = str(refused.value.args)
        assert advice in said
        if status == 401:
            assert "sk-for-nobody" not in said
        assert await client.prompt(session, "Again") == "end_turn"
        assert told(server)[0] == ("user", "Hello")


async def test_an_image_reaches_the_model_now_and_in_later_turns(library: str) -> None:
    script = [Say("A dot."), Say("Red.")]
    async with library_host(library, script) as (server, host):
        client = await host.client(1)
        session = await client.new()
        image = {"type": "image", "mimeType": "image/png", "data": PIXEL}
        prompt = [{"type": "text", "text": "What is this?"}, image]
        await client.ask("session/prompt", {"sessionId": session, "prompt": prompt})
        assert PIXEL in str(server.requests[-1])
        await client.prompt(session, "Which colour?")
        assert PIXEL in str(server.requests[-1])


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_tokens"), ("content_filter", "refusal")])
async def test_a_model_that_stopped_early_says_why_the_turn_ends(library: str, finish: str, reason: str) -> None:
    if library == "openai_agents":
        finish = "max_output_tokens" if finish == "length" else finish
    async with library_host(library, [Say("Half of", finish=finish)]) as (_, host):
        client = await host.client(1)
        assert await client.prompt(await client.new(), "Say all") == reason


async def test_every_turn_tells_the_model_each_earlier_one_once(library: str) -> None:
    script = [Say(f"{number}.") for number in range(6)]
    async with library_host(library, script) as (server, host):
        agent_client = await host.client(1)
        session = await agent_client.new()
        for number in range(6):
            await agent_client.prompt(session, f"{number}?")
        users = [said for who, said in told(server) if who == "user"]
        assert users == [f"{number}?" for number in range(6)]


def test_outside_of_a_turn_there_is_no_call(library: str) -> None:
    module = pytest.importorskip(f"holdfast.integrations.{library}")
    with pytest.raises(UsageError, match="only while"):
        module.current_turn()
