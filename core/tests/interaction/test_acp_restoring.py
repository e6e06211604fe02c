"""Restoring sessions, in and across both versions (B6-B9, B11, B12, B19)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, Client, Gates, Update, conversation, patiently, serving
from holdfast import Agent, Turn
from holdfast.server.attached_client import AttachedClient
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("version", [1, 2])

SCRIPT = ["Hello, agent", "/think", "/tool", "/diff", "/plan", "/image", "/usage", "/terminal", "/files", "/fail"]
"""One of everything the conversation can hold."""


async def act(client: Client, session: str) -> None:
    """Let everything happen once."""
    for prompt in SCRIPT:
        if prompt != "/fail":
            assert await client.prompt(session, prompt) == "end_turn"
        elif client.version == 2:
            assert await client.prompt(session, prompt) == "error"
        else:
            await client.refusal("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]})


@pytest.mark.requirement("B6", "B11", "B19")
@pytest.mark.parametrize("opened_by", [1, 2])
@pytest.mark.parametrize("version", [1, 2])
async def test_who_watched_live_and_who_loads_later_hold_the_same_history(
    opened_by: int, version: int, tmp_path: Path
) -> None:
    place = tmp_path / "sessions.db"
    async with serving(demo, place) as host:
        actor, watcher = await host.client(opened_by), await host.client(version)
        session = await actor.new(str(tmp_path))
        await watcher.resume(session, str(tmp_path))
        watcher.forget()
        await act(actor, session)
        await watcher.settle()
        live = conversation(watcher.updates())
    async with serving(demo, place) as host:
        client = await host.client(version)
        await load(client, session, str(tmp_path))
        loaded = conversation(client.updates())
    assert [_unmarked(it) for it in loaded] == [_unmarked(it) for it in live]
    kinds = {it["sessionUpdate"] for it in loaded}
    assert {"user_message", "agent_message", "agent_thought", "tool_call_update", "plan_update"} <= kinds
    assert ("terminal_update" in kinds) == (version == 2)


@pytest.mark.requirement("B11")
@VERSIONS
async def test_a_replay_keeps_the_order_and_tells_everything_of_a_tool_call(version: int, place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "/tool")
        live = conversation(client.updates())
        ids = [it["toolCallId"] for it in live if it["sessionUpdate"] == "tool_call_update"]
    async with serving(demo, place) as host:
        client = await host.client(version)
        replay = [it for it in conversation(await client.replayed(session)) if it["sessionUpdate"] != "state_update"]
        kinds = ["user_message", "tool_call_update", "tool_call_update", "agent_message"]
        assert [it["sessionUpdate"] for it in replay] == kinds
        assert [it["toolCallId"] for it in replay[1:3]] == ids
        assert replay[1] == {
            "sessionUpdate": "tool_call_update",
            "toolCallId": ids[0],
            "title": "Read thermometer",
            "kind": "read",
            "status": "completed",
            "rawInput": {"place": "roof"},
            "rawOutput": {"celsius": 21},
            "locations": [{"path": "/project/sensor.txt", "line": 1}],
            "content": [{"type": "content", "content": {"type": "text", "text": "21 °C"}}],
        }
        assert replay[2]["status"] == "failed"
        assert replay[3] == live[-1]


@pytest.mark.requirement("B11", "B6")
async def test_version_1_replays_one_chunk_a_message_and_one_tool_call_each_in_its_final_state() -> None:
    async with serving(demo) as host:
        client = await host.client(1)
        session = await client.new()
        for prompt in ("/stream 50", "/think", "/tool", "/plan", "/diff"):
            await client.prompt(session, prompt)
        replay = await client.replayed(session)
        ids = [it["messageId"] for it in replay if "messageId" in it]
        assert len(ids) == len(set(ids)) == 11
        calls = [it for it in replay if it["sessionUpdate"].startswith("tool_call")]
        assert [it["sessionUpdate"] for it in calls] == ["tool_call"] * 3
        assert [it["status"] for it in calls] == ["completed", "failed", "completed"]
        assert [it["type"] for it in calls[2]["content"]] == ["diff", "diff"]
        assert [it["status"] for it in one(replay, "plan")["entries"]] == ["completed"] * 3


@pytest.mark.requirement("B11")
@VERSIONS
async def test_what_is_known_of_the_session_itself_comes_after_the_conversation_and_notices_do_not(
    version: int,
) -> None:
    async with serving(demo) as host:
        client = await host.client(version, session={"notices": {}})
        session = await client.new()
        for prompt in ("/usage", "/notice", "/mode auto", "last words"):
            await client.prompt(session, prompt)
        assert len(client.updates("notice")) == 1
        kinds = [it["sessionUpdate"] for it in await client.replayed(session)]
        assert "notice" not in kinds
        about = ["available_commands_update", "config_option_update", "session_info_update", "usage_update"]
        if version == 1:
            about.insert(2, "current_mode_update")
        else:
            about.append("state_update")
        assert kinds[-len(about) :] == about
        assert not set(kinds[: -len(about)]) & set(about)
        usage = client.updates("usage_update")[-1]
        assert usage["used"] == 53_000 and usage["cost"] == {"amount": 0.045, "currency": "USD"}


@pytest.mark.requirement("B6")
async def test_loading_in_version_1_answers_with_the_configuration_after_the_replay() -> None:
    async with serving(demo) as host:
        client = await host.client(1)
        session = await client.new()
        await client.prompt(session, "hello")
        await client.ask("session/set_mode", {"sessionId": session, "modeId": "auto"})
        client.forget()
        answer = await client.load(session)
        assert answer["modes"]["currentModeId"] == "auto"
        assert answer["models"]["currentModelId"] == "small"
        assert {it["id"] for it in answer["configOptions"]} == {"mode", "model", "tone"}
        assert client.said("user_message") == client.said() == "hello"


@pytest.mark.requirement("B7", "B8", "B9")
@VERSIONS
async def test_resuming_does_not_replay_and_the_conversation_goes_on(version: int, place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "hello")
    async with serving(demo, place) as host:
        client = await host.client(version)
        answer = await client.resume(session)
        assert answer["configOptions"]
        assert client.said() == client.said("user_message") == ""
        before = client.heard[1 : next(n for n, it in enumerate(client.heard) if it.get("id") == 2)]
        updates = [it["params"]["update"] for it in before]
        assert updates == ([] if version == 1 else [{"sessionUpdate": "state_update", "state": "idle"}])
        await client.settle()
        assert not client.updates("user_message", "user_message_chunk", "agent_message", "tool_call")
        await client.prompt(session, "again")
        assert client.said() == "again"


@pytest.mark.requirement("B8")
async def test_a_version_2_client_may_ask_for_the_replay_and_gets_the_state_behind_it() -> None:
    async with serving(demo) as host:
        client = await host.client(2)
        session = await client.new()
        await client.prompt(session, "hello")
        replay = await client.replayed(session)
        assert [it["sessionUpdate"] for it in replay[:2]] == ["user_message", "agent_message"]
        assert replay[-1] == {"sessionUpdate": "state_update", "state": "idle"}
        client.forget()
        await client.resume(session, replayFrom=None)
        assert client.said() == ""


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("cursor", [{"type": "end"}, {}, {"type": None}, {"type": "_x"}, "start", 3, []])
async def test_a_place_to_replay_from_that_nobody_knows_is_refused(cursor: Any) -> None:
    async with serving(demo) as host:
        client = await host.client(2)
        session = await client.new()
        refused = await client.refusal("session/resume", {"sessionId": session, "cwd": CWD, "replayFrom": cursor})
        assert refused.code == -32602
        assert not client.updates("state_update")


@pytest.mark.requirement("B9")
async def test_the_early_draft_of_version_2_loads_resumes_and_closes_as_it_was_written() -> None:
    async with serving(demo) as host:
        client = await host.client(2)
        session = await client.new()
        await client.prompt(session, "What's the capital of France?")
        client.forget()
        assert await client.load(session, additionalDirectories=["/home/user/shared-lib"]) is None
        question, answer = client.updates("user_message"), client.updates("agent_message")
        assert [it["content"] for it in (*question, *answer)] == [
            [{"type": "text", "text": "What's the capital of France?"}]
        ] * 2
        assert question[0]["messageId"] != answer[0]["messageId"]
        assert client.heard[-1]["result"] is None
        client.forget()
        assert isinstance(await client.resume(session), dict)
        assert client.said() == ""
        assert await client.ask("session/close", {"sessionId": session}) == {}
        assert await client.load(session) is None


@pytest.mark.requirement("B12")
@VERSIONS
@pytest.mark.parametrize("prompted_in", [1, 2])
async def test_a_session_whose_turn_runs_can_be_loaded_and_watched_to_its_end(version: int, prompted_in: int) -> None:
    agent, gates = halting_agent()
    async with serving(agent) as host:
        first, second = await host.client(prompted_in), await host.client(version)
        session = await first.new()
        answer = first.begin_prompt(session, "go")
        await gates.reached()
        await load(second, session)
        so_far = conversation(second.updates())
        assert second.said() == "Before. "
        assert one(so_far, "tool_call_update")["status"] == "in_progress"
        if version == 2:
            assert second.states() == ["running"]
        gates.open()
        await patiently(answer)
        await second.until(lambda: second.said() == "Before. After.")
        await second.settle()
        call = one(conversation(second.updates()), "tool_call_update")
        assert call["status"] == "completed"
        assert [it["content"]["text"] for it in call["content"]] == ["first half", "second half"]
        if version == 2:
            assert second.states() == ["running", "end_turn"]
        third = await host.client(version)
        await load(third, session)
        assert conversation(third.updates()) == conversation(second.updates())


@pytest.mark.requirement("B12")
async def test_a_turn_that_waits_for_the_user_is_loaded_as_such_and_the_newcomer_is_asked_too() -> None:
    async with serving(demo) as host:
        first, second = await host.client(2), await host.client(2)
        session = await first.new()
        await patiently(first.begin_prompt(session, "/ask"))
        await first.question()
        await second.load(session)
        assert second.states() == ["requires_action"]
        (await second.question()).select("allow_once")
        await first.until(lambda: first.states()[-1] == "end_turn")
        assert first.asked[0].withdrawn
        await second.until(lambda: second.states() == ["requires_action", "running", "end_turn"])


@pytest.mark.requirement("B12", "C8")
@VERSIONS
async def test_who_loads_a_session_again_while_it_asks_is_asked_again(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        client.begin_prompt(session, "/ask")
        first = await client.question()
        await load(client, session)
        second = await client.question(2)
        assert first.withdrawn
        second.select("allow_once")
        await client.until(lambda: client.said() == "That was that.")
        assert one(conversation(client.updates()), "tool_call_update")["status"] == "completed"


@pytest.mark.requirement("B6")
@VERSIONS
async def test_who_loads_a_session_twice_at_once_has_an_answer_to_each(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay, second = AttachedClient.replay, asyncio.Event()

    async def wait_for_the_second(self: AttachedClient, blocks: Any) -> None:
        if not second.is_set():
            monkeypatch.setattr(AttachedClient, "replay", replay)
            await second.wait()
        await replay(self, blocks)

    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "hello")
        monkeypatch.setattr(AttachedClient, "replay", wait_for_the_second)
        loads = [asyncio.ensure_future(load(client, session)) for _ in range(2)]
        await patiently(loads[1])
        second.set()
        await patiently(loads[0])
        assert await client.prompt(session, "hello again") == "end_turn"


@pytest.mark.requirement("B19")
async def test_a_session_goes_from_version_to_version_and_back_with_its_options(place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(1)
        session = await client.new()
        await client.prompt(session, "one")
        await client.ask("session/set_mode", {"sessionId": session, "modeId": "auto"})
    async with serving(demo, place) as host:
        client = await host.client(2)
        answer = await client.resume(session, replayFrom={"type": "start"})
        assert {it["configId"]: it["currentValue"] for it in answer["configOptions"]}["mode"] == "auto"
        params = {"sessionId": session, "configId": "verbose", "type": "boolean", "value": True}
        await client.ask("session/set_config_option", params)
        await client.prompt(session, "two")
    async with serving(demo, place) as host:
        client = await host.client(1, session={"configOptions": {"boolean": {}}})
        answer = await client.load(session)
        assert {it["id"]: it["currentValue"] for it in answer["configOptions"]}["verbose"] is True
        told = [it["content"][0]["text"] for it in conversation(client.updates())]
        assert told == ["one", "one", "two", "two"]


async def load(client: Client, session: str, cwd: str = CWD) -> None:
    if client.version == 1:
        await client.load(session, cwd)
    else:
        await client.resume(session, cwd, replayFrom={"type": "start"})


def one(updates: list[Update], kind: str) -> Update:
    (found,) = [it for it in updates if it["sessionUpdate"] == kind]
    return found


def halting_agent() -> tuple[Agent, Gates]:
    """An agent that stops in the middle of a tool call until the test lets it go on."""
    agent, gates = Agent("halting"), Gates()

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.say("Before. ")
        async with turn.tool("Halt", kind="read") as call:
            await call.text("first half")
            await gates.wait()
            await call.text("second half")
        await turn.say("After.")

    return agent, gates


def _unmarked(entry: Update) -> Update:
    """An entry in an order of members that does not matter."""
    return dict(sorted(entry.items()))
