"""Turns as both versions show them (C1-C6, C10)."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import Client, Gates, Refused, conversation, patiently, serving, text
from core.tests.support.links import PATIENCE
from holdfast import Agent, Turn
from holdfast.engine import EngineLimits
from holdfast.errors import InvalidParams
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from holdfast.model import StopReason

VERSIONS = pytest.mark.parametrize("version", [1, 2])

LINK = {"type": "resource_link", "name": "a", "uri": "file:///a"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
RESOURCE = {"type": "resource", "resource": {"uri": "file:///a", "text": "hi"}}


@pytest.mark.requirement("C1")
@VERSIONS
async def test_text_and_links_are_always_accepted_and_the_rest_as_the_agent_declares(version: int) -> None:
    plain, seeing = Agent("plain"), Agent("seeing", accepts={"image"})
    got: list[Any] = []
    for agent in (plain, seeing):

        @agent.prompt
        async def answer(turn: Turn) -> None:
            got.append(turn.prompt)

    for agent, accepted in ((plain, [text("x"), LINK]), (seeing, [text("x"), LINK, IMAGE])):
        async with serving(agent) as host:
            client = await host.client(version)
            session = await client.new()
            for block in (text("x"), LINK, IMAGE, AUDIO, RESOURCE):
                got.clear()
                answered = client.begin("session/prompt", {"sessionId": session, "prompt": [text("see"), block]})
                if block in accepted:
                    await patiently(answered)
                    await client.settle()
                    assert got == [[text("see"), block]]
                else:
                    assert await code_of(answered) == -32602
                    assert got == []


@pytest.mark.requirement("C1")
@VERSIONS
@pytest.mark.parametrize(
    "prompt",
    [
        [],
        None,
        "hello",
        [{"type": "text"}],
        [{"type": "text", "text": 3}],
        [{"text": "x"}],
        [{"type": "hologram", "text": "x"}],
        [{"type": "image", "data": "x"}],
        [{"type": "resource", "resource": {"uri": "file:///a"}}],
        [text("x"), None],
    ],
)
async def test_a_prompt_that_is_empty_or_malformed_is_refused_and_leaves_no_trace(version: int, prompt: Any) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        refused = await client.refusal("session/prompt", {"sessionId": session, "prompt": prompt})
        assert refused.code == -32602
        assert await client.ask("session/list") == {"sessions": []}


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal"])
async def test_version_1_answers_a_prompt_with_the_reason_its_turn_ended_and_does_not_echo_it(
    reason: StopReason,
) -> None:
    agent = Agent("stopping")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.say("done")
        turn.stop(reason)

    async with serving(agent) as host:
        client = await host.client(1)
        session = await client.new()
        assert await client.prompt(session, "question") == reason
        assert client.said() == "done"
        assert client.said("user_message") == ""
        await client.replayed(session)
        assert client.said("user_message") == "question"


@pytest.mark.requirement("C2", "C6")
async def test_version_1_repeats_no_prompt_to_its_author_although_several_wait() -> None:
    agent, gates = waiting_agent()
    async with serving(agent) as host:
        client, watcher = await host.client(1), await host.client(1)
        session = await client.new()
        await watcher.resume(session)
        asked = [client.begin_prompt(session, f"{n}") for n in range(3)]
        await gates.reached()
        await client.settle()
        gates.open()
        for it in asked:
            assert await patiently(it) == {"stopReason": "end_turn"}
        assert client.said("user_message") == ""
        assert watcher.said("user_message") == "012"


@pytest.mark.requirement("C3")
async def test_version_2_acknowledges_a_prompt_and_tells_the_whole_course_of_its_turn() -> None:
    agent, gates = waiting_agent()
    async with serving(agent) as host:
        client = await host.client(2)
        session = await client.new()
        answer = await patiently(client.begin_prompt(session, "question"))
        await gates.reached()
        (message,) = client.updates("user_message")
        assert message == {
            "sessionUpdate": "user_message",
            "messageId": answer["messageId"],
            "content": [text("question")],
        }
        assert client.states() == ["running"]
        gates.open()
        await client.until(lambda: client.states() == ["running", "end_turn"])
        kinds = [it["sessionUpdate"] for it in client.updates()]
        assert kinds[-2:] == ["agent_message_chunk", "state_update"]


@pytest.mark.requirement("C3")
async def test_version_2_tells_that_a_turn_waits_for_the_user_and_goes_on() -> None:
    async with serving(demo) as host:
        client = await host.client(2)
        session = await client.new()
        await patiently(client.begin_prompt(session, "/ask"))
        question = await client.question()
        assert client.states() == ["running", "requires_action"]
        question.select("allow_once")
        await client.until(lambda: client.states() == ["running", "requires_action", "running", "end_turn"])


@pytest.mark.requirement("C4")
@VERSIONS
async def test_a_handler_that_raises_ends_the_turn_with_an_error_without_internals(version: int, place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version)
        session = await client.new()
        if version == 1:
            with pytest.raises(Refused) as refused:
                await client.prompt(session, "/fail")
            error = {"code": refused.value.code, "message": refused.value.message}
        else:
            assert await client.prompt(session, "/fail") == "error"
            error = client.updates("state_update")[-1]["error"]
        assert error["code"] == -32603
        assert "secret" not in str(client.heard)
        assert await client.prompt(session, "go on") == "end_turn"
    async with serving(demo, place) as host:
        client = await host.client(2)
        replay = conversation(await client.replayed(session))
        assert client.said() == "This will not end well. go on"
        marks = [it for it in replay if it["sessionUpdate"] == "_holdfast/turn_end"]
        assert [it["reason"] for it in marks] == ["error"]
        assert replay.index(marks[0]) == 2


@pytest.mark.requirement("C4")
@VERSIONS
async def test_an_error_that_is_meant_for_the_user_is_told_as_it_is(version: int) -> None:
    agent = Agent("picky")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        raise InvalidParams("Say please")

    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        if version == 1:
            assert (await client.refusal("session/prompt", prompt_of(session, "x"))).message == "Say please"
        else:
            assert await client.prompt(session, "x") == "error"
            assert client.updates("state_update")[-1]["error"]["message"] == "Say please"


@pytest.mark.requirement("C5")
@VERSIONS
@pytest.mark.parametrize("habit", ["obeys", "swallows", "converts", "ignores"])
async def test_cancelling_ends_the_turn_as_cancelled_whatever_the_handler_makes_of_it(version: int, habit: str) -> None:
    agent, gates = Agent("stubborn"), Gates()

    @agent.prompt
    async def answer(turn: Turn) -> None:
        async with turn.tool("Work"):
            await turn.say("Working. ")
            while True:
                try:
                    await gates.wait()
                except asyncio.CancelledError:
                    if habit == "obeys":
                        raise
                    if habit == "converts":
                        raise RuntimeError("secret") from None
                    if habit == "ignores":
                        continue
                return

    async with serving(agent, limits=EngineLimits(cancel_grace=0.05)) as host:
        client = await host.client(version)
        session = await client.new()
        answer_ = client.begin_prompt(session, "go")
        await gates.reached()
        client.tell("session/cancel", {"sessionId": session, "reason": "I changed my mind"})
        await ended_cancelled(client, answer_)
        call = next(it for it in conversation(client.updates()) if it["sessionUpdate"] == "tool_call_update")
        final = "completed" if habit == "swallows" else "failed" if version == 1 or habit == "converts" else "cancelled"
        assert call["status"] == final
        gates.open()
        assert await client.prompt(session, "again") == "end_turn"
        await client.replayed(session)
        assert "Working. " in client.said()


@pytest.mark.requirement("P6")
@VERSIONS
@pytest.mark.parametrize("waits", [True, False])
async def test_a_handler_that_cancels_its_own_task_ends_its_turn_and_nothing_else(version: int, waits: bool) -> None:
    agent = Agent("restless")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.say(f"{turn.text} ")
        if turn.text == "stop":
            task = asyncio.current_task()
            assert task is not None
            for _ in range(3):
                task.cancel()
            if waits:
                await asyncio.sleep(0)

    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        stopping, next_ = client.begin_prompt(session, "stop"), client.begin_prompt(session, "go")
        await asyncio.wait({stopping, next_}, timeout=60)
        assert stopping.done() and next_.done() and next_.exception() is None
        if waits and version == 1:
            assert "cancelled itself" in str(stopping.exception())
        assert await client.prompt(session, "again") == "end_turn"
        await client.replayed(session)
        assert client.said() == "stop go again "


@pytest.mark.requirement("C5")
@VERSIONS
async def test_cancelling_an_idle_or_unknown_session_does_nothing(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        await client.settle()
        client.forget()
        for params in ({"sessionId": session}, {"sessionId": "sess_unknown"}, {}, [1]):
            client.tell("session/cancel", params)
        await client.settle()
        assert len(client.heard) == 1
        assert await client.prompt(session, "hello") == "end_turn"


@pytest.mark.requirement("C5")
@VERSIONS
async def test_a_cancel_written_right_behind_its_prompt_cancels_it(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        answer = client.begin_prompt(session, "/sleep 60")
        client.tell("session/cancel", {"sessionId": session})
        if version == 1:
            assert await patiently(answer) == {"stopReason": "cancelled"}
        else:
            assert await code_of(answer) == -32800
        assert await client.prompt(session, "hello") == "end_turn"


@pytest.mark.requirement("C5")
async def test_a_tool_call_or_terminal_that_does_not_offer_it_cannot_be_cancelled_alone() -> None:
    agent, gates = Agent("working"), Gates()

    @agent.prompt
    async def answer(turn: Turn) -> None:
        async with turn.tool("Work"):
            await gates.wait()

    async with serving(agent) as host:
        client = await host.client(2)
        session = await client.new()
        await patiently(client.begin_prompt(session, "go"))
        await gates.reached()
        await client.until(lambda: client.updates("tool_call_update"))
        (call,) = client.updates("tool_call_update")
        assert "capabilities" not in call
        for method, name in (("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")):
            refused = await client.refusal(method, {"sessionId": session, name: call["toolCallId"]})
            assert refused.code == -32602
        gates.open()
        await client.until(lambda: client.states() == ["running", "end_turn"])


@pytest.mark.requirement("C6")
@VERSIONS
async def test_prompts_wait_their_turn_and_are_answered_in_order(version: int) -> None:
    agent, gates = waiting_agent()
    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        asked = [client.begin_prompt(session, f"{n}") for n in range(5)]
        await gates.reached()
        gates.open()
        for it in asked:
            await patiently(it)
        await client.until(lambda: client.said() == "0 1 2 3 4 ")
        if version == 2:
            await client.until(lambda: client.states() == ["running", "end_turn"] * 5)


@pytest.mark.requirement("C6")
@VERSIONS
async def test_no_more_than_sixteen_prompts_wait_and_cancelling_drops_them(version: int) -> None:
    agent, gates = waiting_agent()
    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        running = client.begin_prompt(session, "running")
        await gates.reached()
        waiting = [client.begin_prompt(session, f"{n}") for n in range(16)]
        assert await code_of(client.begin_prompt(session, "too many")) == -32602
        client.tell("session/cancel", {"sessionId": session})
        await ended_cancelled(client, running)
        for it in waiting:
            if version == 1:
                assert await patiently(it) == {"stopReason": "cancelled"}
            else:
                assert await code_of(it) == -32800
        gates.open()
        await client.prompt(session, "after")
        await client.replayed(session)
        assert client.said("user_message") == "runningafter"


@pytest.mark.requirement("C10")
@VERSIONS
async def test_commands_are_told_after_a_session_is_made_and_with_every_restoring(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        for restore in (None, client.load, client.resume):
            if restore is not None:
                client.forget()
                await restore(session)
            await client.until(lambda: client.updates("available_commands_update"))
            (told,) = client.updates("available_commands_update")
            commands = {it["name"]: it for it in told["availableCommands"]}
            assert commands.keys() == demo.commands.keys()
            hint = {"hint": "N"} if version == 1 else {"type": "text", "hint": "N"}
            assert commands["stream"]["input"] == hint
            assert "input" not in commands["think"]
            assert ("type" in commands["think"]) == (version == 2)


@pytest.mark.requirement("C10")
@VERSIONS
@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("/greet", "Hi !"),
        ("/greet  Ann Lee ", "Hi Ann Lee!"),
        ("/greet\nAnn", "Hi Ann!"),
        ("/greeting", "plain /greeting"),
        ("say /greet", "plain say /greet"),
        ("/", "plain /"),
    ],
)
async def test_a_prompt_that_begins_with_a_command_reaches_its_handler(version: int, prompt: str, said: str) -> None:
    agent = Agent("greeter")

    @agent.command("greet", "Greets")
    async def greet(turn: Turn) -> None:
        await turn.say(f"Hi {turn.text}!")

    @agent.prompt
    async def answer(turn: Turn) -> AsyncIterator[str]:
        yield "plain "
        yield turn.text

    async with serving(agent) as host:
        client = await host.client(version)
        await client.prompt(await client.new(), prompt)
        assert client.said() == said


async def code_of(answer: asyncio.Future[Any]) -> int:
    with pytest.raises(Refused) as refused:
        await patiently(answer)
    return refused.value.code


async def ended_cancelled(client: Client, answer: asyncio.Future[Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        if client.version == 1:
            assert await answer == {"stopReason": "cancelled"}
        else:
            await client.until(lambda: client.states()[-1] == "cancelled")


def prompt_of(session: str, said: str) -> dict[str, Any]:
    return {"sessionId": session, "prompt": [text(said)]}


def waiting_agent() -> tuple[Agent, Gates]:
    """An agent that waits at a gate before it repeats the prompt."""
    agent, gates = Agent("waiting"), Gates()

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await gates.wait()
        await turn.say(f"{turn.text} ")

    return agent, gates


@VERSIONS
@pytest.mark.parametrize("kind", ["plain", "tool", "asks"])
async def test_nothing_of_a_turn_that_is_over_waits_for_the_garbage_collector(
    version: int, kind: str, tmp_path: Path
) -> None:
    agent, turns = Agent("tidy"), list[weakref.ref[Any]]()

    @agent.prompt
    async def answer(turn: Turn) -> None:
        turns.append(weakref.ref(turn._turn))  # pyright: ignore[reportPrivateUsage]
        await turn.say("a")
        if kind != "plain":
            async with turn.tool("Dig", kind="execute") as call:
                if kind == "asks":
                    await turn.allow("May I?", call)
                await call.text("dug")

    async with serving(agent, tmp_path / "s.db") as host:
        client = await host.client(version)
        session = await client.new()
        gc.disable()
        try:
            for count in range(1, 4):
                prompting = asyncio.create_task(client.prompt(session, "x"))
                if kind == "asks":
                    asked = await client.question(count)
                    option = asked.params["options"][0]["optionId"]
                    asked.answer({"outcome": {"outcome": "selected", "optionId": option}})
                assert await prompting == "end_turn"
                await client.settle()
            assert [turn() for turn in turns] == [None, None, None]
        finally:
            gc.enable()
