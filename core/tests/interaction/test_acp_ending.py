"""Closing, deleting, forking, putting away and letting go of sessions, in both versions (B13-B16, B18)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, Client, Gates, conversation, patiently, serving, text
from core.tests.support.links import PATIENCE
from holdfast import Agent, Session, Turn
from holdfast.engine import EngineLimits
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.mark.requirement("B13")
@VERSIONS
async def test_closing_ends_the_turn_as_cancelled_before_it_is_answered_and_then_there_is_silence(version: int) -> None:
    agent, gates, _ = observed_agent()
    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        prompted = client.begin_prompt(session, "work")
        await gates.reached()
        client.forget()
        closed = client.begin("session/close", {"sessionId": session}, "close")
        assert await patiently(closed) == {}
        await client.settle()
        at = next(n for n, it in enumerate(client.heard) if it.get("id") == "close")
        assert client.updates("tool_call_update")[-1]["status"] == ("failed" if version == 1 else "cancelled")
        if version == 1:
            assert await patiently(prompted) == {"stopReason": "cancelled"}
        else:
            assert client.states() == ["cancelled"]
        assert not [it for it in client.heard[at:] if "method" in it]


@pytest.mark.requirement("B13")
@VERSIONS
async def test_a_closed_session_keeps_its_data_and_can_be_loaded_again(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "hello")
        for _ in range(2):
            assert await client.ask("session/close", {"sessionId": session}) == {}
        assert await client.ask("session/close", {"sessionId": "sess_unknown"}) == {}
        prompt = {"sessionId": session, "prompt": [text("closed?")]}
        assert (await client.refusal("session/prompt", prompt)).code == -32602
        await client.replayed(session)
        assert client.said() == "hello"
        assert await client.prompt(session, "again") == "end_turn"


@pytest.mark.requirement("B13")
@VERSIONS
async def test_closing_tells_the_agent_and_so_does_leaving(version: int, place: Path) -> None:
    agent, _, told = observed_agent()
    async with serving(agent, place) as host:
        client = await host.client(version)
        first, second = await client.new(), await client.new()
        await client.ask("session/close", {"sessionId": first})
        assert told == [f"opened {first}", f"opened {second}", f"closed {first}"]
    assert told[3:] == [f"closed {second}"]


@pytest.mark.requirement("B13", "B12")
@pytest.mark.parametrize("other", [1, 2])
@VERSIONS
async def test_who_had_a_session_open_that_another_closed_and_reopened_goes_on_with_it(
    version: int, other: int
) -> None:
    async with serving(demo) as host:
        one, two = await host.client(version), await host.client(other)
        session = await one.new()
        await two.resume(session)
        await two.ask("session/close", {"sessionId": session})
        await two.resume(session)
        one.forget()
        assert await one.prompt(session, "still mine") == "end_turn"
        assert one.said() == "still mine"
        answer = one.begin_prompt(session, "/sleep 60")
        await one.until(lambda: "Good night" in one.said())
        one.tell("session/cancel", {"sessionId": session})
        if version == 1:
            assert await patiently(answer) == {"stopReason": "cancelled"}
        else:
            await one.until(lambda: one.states()[-1] == "cancelled")


@pytest.mark.requirement("B14")
@VERSIONS
async def test_a_deleted_session_is_gone_for_good_and_its_fork_stays_whole(version: int, place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "hello")
        fork = (await client.ask("session/fork", {"sessionId": session, "cwd": CWD, "mcpServers": []}))["sessionId"]
        for _ in range(2):
            assert await client.ask("session/delete", {"sessionId": session}) == {}
        assert await client.ask("session/delete", {"sessionId": "sess_unknown"}) == {}
    async with serving(demo, place) as host:
        client = await host.client(version)
        listed = (await client.ask("session/list", {}))["sessions"]
        assert [it["sessionId"] for it in listed] == [fork]
        assert (await client.refusal("session/load", {"sessionId": session, "cwd": CWD})).code == -32002
        await client.replayed(fork)
        assert client.said() == "hello"


@pytest.mark.requirement("B14")
@VERSIONS
async def test_deleting_a_session_at_work_cancels_the_work_first(version: int) -> None:
    agent, gates, told = observed_agent()
    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        prompted = client.begin_prompt(session, "work")
        await gates.reached()
        assert await client.ask("session/delete", {"sessionId": session}) == {}
        assert told == [f"opened {session}", f"closed {session}"]
        if version == 1:
            assert await patiently(prompted) == {"stopReason": "cancelled"}
        else:
            assert client.states()[-1] == "cancelled"
        assert (await client.refusal("session/load", {"sessionId": session, "cwd": CWD})).code == -32002


@pytest.mark.requirement("B15")
@VERSIONS
async def test_a_fork_has_the_history_the_options_and_the_state_so_far_and_then_its_own(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        await client.prompt(session, "common")
        await client.prompt(session, "/history")
        await client.ask("session/set_config_option", setting(client, session, "tone", "pirate"))
        answer = await client.ask("session/fork", {"sessionId": session, "cwd": CWD, "mcpServers": []})
        fork = answer["sessionId"]
        assert fork != session
        assert {it.get("id", it.get("configId")): it["currentValue"] for it in answer["configOptions"]}[
            "tone"
        ] == "pirate"
        await client.prompt(session, "only in the first")
        client.forget()
        await client.prompt(fork, "/history")
        assert client.said() == "You asked 2 times."
        await client.ask("session/set_config_option", setting(client, fork, "tone", "formal"))
        ours, theirs = await said_in(client, session), await said_in(client, fork)
        assert ours == ["common", "You asked 1 time.", "only in the first"]
        assert theirs == ["common", "You asked 1 time.", "You asked 2 times."]
        back = await client.resume(session)
        assert {it.get("id", it.get("configId")): it["currentValue"] for it in back["configOptions"]}[
            "tone"
        ] == "pirate"


@pytest.mark.requirement("B15")
@VERSIONS
async def test_a_fork_may_begin_at_an_earlier_message(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        for prompt in ("one", "two", "three"):
            await client.prompt(session, prompt)
        ids = [it["messageId"] for it in conversation(await client.replayed(session)) if "messageId" in it]
        params: dict[str, Any] = {"sessionId": session, "cwd": CWD, "mcpServers": []}
        for at, said in ((2, ["one"]), (3, ["one", "two"])):
            made = await client.ask("session/fork", {**params, "_meta": {"holdfast/upTo": ids[at]}})
            found = await said_in(client, made["sessionId"])
            assert [it for it in found if "The files are as they are now" not in it] == said
            assert len(found) == len(said) + (version == 1)  # version 2 has no message of the agent's for that
        for wrong in ("msg_unknown", 3):
            assert (await client.refusal("session/fork", {**params, "_meta": {"holdfast/upTo": wrong}})).code == -32602


@pytest.mark.requirement("B15")
@VERSIONS
async def test_a_fork_of_a_running_turn_has_what_is_finished_and_the_turn_goes_on(version: int) -> None:
    agent, gates, _ = observed_agent()
    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        prompted = client.begin_prompt(session, "work")
        await gates.reached()
        made = await client.ask("session/fork", {"sessionId": session, "cwd": CWD, "mcpServers": []})
        gates.open()
        await patiently(prompted)
        await client.until(lambda: version == 1 or client.ends(session))
        replay = conversation(await client.replayed(made["sessionId"]))
        kinds = [it["sessionUpdate"] for it in replay if it["sessionUpdate"] != "state_update"]
        assert kinds == ["user_message", "agent_message"]
        assert client.said() == "Working. "


@pytest.mark.requirement("B16")
@VERSIONS
async def test_archived_sessions_are_listed_only_where_asked_for_and_can_be_loaded(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session, other = await client.new(), await client.new()
        for it in (session, other):
            await client.prompt(it, "hello")
        for _ in range(2):
            assert await client.ask("session/archive", {"sessionId": session}) == {}
        listed = {it: await archived_ids(client, it) for it in (None, "exclude", "include", "only")}
        assert listed == {None: [other], "exclude": [other], "include": [other, session], "only": [session]}
        assert (await client.refusal("session/list", {"archived": "perhaps"})).code == -32602
        await client.load(session)
        assert await client.ask("session/unarchive", {"sessionId": session}) == {}
        assert await archived_ids(client, "only") == []
        for method in ("session/archive", "session/unarchive", "session/status"):
            assert (await client.refusal(method, {"sessionId": "sess_unknown"})).code == -32002


@pytest.mark.requirement("B16")
@VERSIONS
@pytest.mark.parametrize("who", ["itself", "another"])
async def test_a_session_that_was_open_when_it_was_archived_is_open_again_once_it_is_unarchived(
    version: int, who: str
) -> None:
    async with serving(demo) as host:
        client, other = await host.client(version), await host.client(version)
        session = await client.new()
        await client.prompt(session, "hello")
        prompt = {"sessionId": session, "prompt": [text("still there?")]}
        for word in ("again", "and again"):
            await client.ask("session/archive", {"sessionId": session})
            refused = await client.refusal("session/prompt", prompt)
            assert (refused.code, "unarchive" in refused.message) == (-32602, True)
            if who == "another":
                await other.ask("session/unarchive", {"sessionId": session})
            else:
                await client.ask("session/unarchive", {"sessionId": session})
                if word == "again":  # what others say there is seen at once
                    await other.load(session)
                    await other.prompt(session, "aside")
                    await client.until(lambda: "aside" in client.said())
            client.forget()
            assert await client.prompt(session, word) == "end_turn"
            assert client.said() == word
        await client.ask("session/archive", {"sessionId": session})
        await client.ask("session/delete", {"sessionId": session})
        assert (await client.refusal("session/prompt", prompt)).code == -32002


@pytest.mark.requirement("B16")
@VERSIONS
async def test_the_status_of_a_session_tells_whether_it_is_open(version: int) -> None:
    agent, gates, _ = observed_agent()
    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        status = await client.ask("session/status", {"sessionId": session})
        assert status == {"status": "open"} | ({} if version == 1 else {"state": {"state": "idle"}})
        prompted = client.begin_prompt(session, "work")
        await gates.reached()
        status = await client.ask("session/status", {"sessionId": session})
        assert status == {"status": "open"} | ({} if version == 1 else {"state": {"state": "running"}})
        gates.open()
        await patiently(prompted)
        await client.ask("session/close", {"sessionId": session})
        assert await client.ask("session/status", {"sessionId": session}) == {"status": "saved"}


@pytest.mark.requirement("B18")
@VERSIONS
async def test_a_session_nobody_watches_leaves_memory_and_comes_back_when_it_is_asked_for(version: int) -> None:
    agent, _, told = observed_agent()
    closed = asyncio.Event()

    @agent.on_close
    async def note(session: Session) -> None:
        closed.set()

    async with serving(agent, limits=EngineLimits(idle=0.02)) as host:
        first, second = await host.client(version), await host.client(version)
        session = await first.new()
        assert await second.ask("session/status", {"sessionId": session})
        await host.disconnect(first)
        async with asyncio.timeout(PATIENCE):
            await closed.wait()
        assert (await second.ask("session/status", {"sessionId": session})) == {"status": "saved"}
        await second.resume(session)
        assert told == [f"opened {session}", f"closed {session}", f"opened {session}"]


def observed_agent() -> tuple[Agent, Gates, list[str]]:
    """An agent that stops in a tool call until it is let go on, and notes what it is told of its sessions."""
    agent, gates, told = Agent("observed"), Gates(), list[str]()

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.say("Working. ")
        async with turn.tool("Work"):
            await gates.wait()

    @agent.on_open
    async def opened(session: Session) -> None:
        told.append(f"opened {session.id}")

    @agent.on_close
    async def closed(session: Session) -> None:
        told.append(f"closed {session.id}")

    return agent, gates, told


def setting(client: Client, session: str, option: str, value: str) -> dict[str, Any]:
    params = {"sessionId": session, "configId": option, "value": value}
    return params if client.version == 1 else {**params, "type": "id"}


async def said_in(client: Client, session: str) -> list[str]:
    replay = conversation(await client.replayed(session))
    return [it["content"][0]["text"] for it in replay if it["sessionUpdate"] == "agent_message"]


async def archived_ids(client: Client, archived: str | None) -> list[str]:
    return [it["sessionId"] for it in (await client.ask("session/list", {"archived": archived}))["sessions"]]
