"""Habits of real agents, one by one: whatever an agent does, the client says what is so, loses nothing, and ends."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.clients import folded, odd, said
from core.tests.support.wire import wait_for_death
from holdfast.errors import ConnectionLost, InvalidAnswer, ProcessExited, RemoteError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import ClientSession

REPLAYED = [("user_message", "Who are you?"), ("agent_message", "I am odd.")]


async def heard(session: ClientSession) -> list[dict[str, Any]]:
    """Ask the agent what it has heard."""
    return json.loads(await session.ask_text("heard"))


# Versions


@pytest.mark.requirement("A7", "A8")
@pytest.mark.parametrize("habit", ["echoes the version", "refuses version 2", "answers with its own"])
async def test_an_agent_that_says_2_and_means_1_is_spoken_to_in_1(habit: str) -> None:
    async with odd(habit) as agent:
        assert agent.protocol == 1
        session = await agent.new_session()
        assert await session.ask_text("say hello") == "hello"


@pytest.mark.requirement("A8")
async def test_an_agent_that_speaks_only_1_is_not_taken_for_one_that_speaks_2() -> None:
    with pytest.raises(InvalidAnswer, match='speaks protocol version 1, not 2; connect with protocol="auto"'):
        async with odd(protocol=2):
            pass


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(("habit", "version"), [("is of version 0", "0"), ("has a text as its version", r"0\.1\.0")])
async def test_an_agent_of_no_version_that_we_know_is_not_talked_to(habit: str, version: str) -> None:
    with pytest.raises(InvalidAnswer, match=f"speaks protocol version {version}; Holdfast speaks 1 and 2"):
        async with odd(habit):
            pass


async def test_an_agent_of_either_version_is_told_what_we_can_do() -> None:
    async with odd(files=True) as agent:
        (hello, *_) = await heard(await agent.new_session())
    assert hello["params"]["protocolVersion"] == 2
    assert hello["params"]["info"]["name"] == hello["params"]["clientInfo"]["name"] == "holdfast"
    assert hello["params"]["clientCapabilities"]["fs"] == {"readTextFile": True, "writeTextFile": True}
    assert hello["params"]["clientCapabilities"]["terminal"] is False


# Dying


async def test_an_agent_that_dies_at_once_is_quoted() -> None:
    with pytest.raises(ProcessExited, match="I cannot find my key") as caught:
        async with odd("dies at once"):
            pass
    assert caught.value.returncode == 3


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_an_agent_that_dies_in_mid_turn_is_quoted_to_everybody_who_waits(version: str) -> None:
    async with odd(version) as agent:
        session = await agent.new_session()
        watching = session.updates()
        with pytest.raises(ProcessExited, match="I have seen too much") as caught:
            await session.prompt("die")
        assert caught.value.returncode == 7
        with pytest.raises(ProcessExited):
            async for _ in watching:
                pass
        with pytest.raises(ProcessExited):
            await agent.new_session()
        assert said(session.history)[-1] == ("agent_message", "goodb")


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_after_an_agent_has_died_every_call_says_how(version: str) -> None:
    async with odd(version) as agent:
        session, idle = await agent.new_session(), await agent.new_session()
        with pytest.raises(ProcessExited):
            await session.prompt("die")
        for call in (
            lambda: session.ask_text("say it again"),
            lambda: idle.ask_text("say it"),
            idle.cancel,
            lambda: idle.set("mode", "b"),
            lambda: idle.set("mode", "b"),
            idle.fork,
            idle.updates().__anext__,
            agent.new_session,
            lambda: agent.resume("old"),
            lambda: agent.load(idle.id),
            agent.sessions().__anext__,
            lambda: agent.authenticate("key"),
            lambda: agent.request("_any/thing", {}),
        ):
            with pytest.raises(ProcessExited, match="I have seen too much") as caught:
                await call()
            assert caught.value.returncode == 7
        with pytest.raises(ProcessExited):
            agent.notify("_any/thing", {})
        await session.close()
        await idle.close()


@pytest.mark.parametrize("habits", [("ignores the end",), ("ignores the end", "ignores sigterm")])
async def test_an_agent_that_does_not_want_to_end_is_gone_afterwards(
    habits: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that obeys a signal has time to do so.
    monkeypatch.setattr("holdfast.client.connecting.EXIT_SECONDS", 3.0 if len(habits) == 1 else 0.3)
    async with odd(*habits, "has a daemon") as agent:
        transport: Any = agent._link.peer._transport  # pyright: ignore[reportPrivateUsage]
        await agent.new_session()
    wait_for_death([transport.pid])
    expected = 128 + (signal.SIGKILL if len(habits) == 2 else signal.SIGTERM)
    assert await transport.wait() == expected


# Noise


async def test_what_an_agent_prints_on_stdout_is_passed_over_and_not_answered() -> None:
    async with odd("talks on stdout", "floods stderr") as agent:
        session = await agent.new_session()
        assert all("method" in message for message in await heard(session))


async def test_what_an_agent_writes_to_stderr_can_be_had() -> None:
    written: list[bytes] = []
    async with odd("floods stderr", stderr=written.append) as agent:
        await agent.new_session()
    assert len(b"".join(written)) == 100 * 10_001


async def test_lines_of_megabytes_are_normal() -> None:
    async with odd() as agent:
        session = await agent.new_session()
        assert len(await session.ask_text(f"long {3 << 20}")) == 3 << 20


async def test_an_update_that_is_not_what_it_says_it_is_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async with odd() as agent:
        session = await agent.new_session()
        for bad in ('{"sessionUpdate": "tool_call", "toolCallId": 7}', '{"sessionUpdate": "plan"}', "[]", "{}"):
            with caplog.at_level(logging.WARNING):
                caplog.clear()
                await session.prompt(f'raw {{"update": {bad}}}')
            assert "is left out" in caplog.text
        await session.prompt("raw {}")
        await session.prompt('raw {"update": {"sessionUpdate": "_mine", "x": 1}}')
        others = [entry.members for entry in session.history if not entry.entity]
        assert others == [{"sessionUpdate": "_mine", "x": 1}]
        assert await session.ask_text("say fine") == "fine"


async def test_unknown_requests_are_refused_and_id_0_is_an_id() -> None:
    async with odd() as agent:
        session = await agent.new_session()
        for method in ("_odd/custom", "unprefixed", "fs/read_text_file", "terminal/create"):
            assert json.loads(await session.ask_text(f"request {method}"))["code"] == -32601


# Sessions


@pytest.mark.requirement("P5")
async def test_what_is_told_of_a_session_before_it_has_a_name_is_not_lost() -> None:
    async with odd("tells too early") as agent:
        first, second = await asyncio.gather(agent.new_session(), agent.new_session())
        for session in (first, second):
            assert list(session.commands) == ["odd"]
            assert said(session.history) == [("agent_message", "Welcome!")]
        forked = await agent.fork(first.id)
        assert said(forked.history) == REPLAYED


async def test_a_session_without_a_name_is_no_session() -> None:
    async with odd("names no session") as agent:
        with pytest.raises(InvalidAnswer, match="names no session"):
            await agent.new_session()


async def test_a_list_that_never_ends_does_and_is_filtered_even_if_the_agent_does_not() -> None:
    async with odd() as agent:
        assert [listed.id async for listed in agent.sessions()] == ["old0", "twice", "old1", "old2", "old3"]
        listed = [listed async for listed in agent.sessions(cwd="/0")]
        assert [each.id for each in listed] == ["old0", "twice"]
        assert listed[0].updated_at is not None and listed[1].updated_at is None


async def test_what_an_agent_does_not_offer_is_refused_with_advice() -> None:
    async with odd("v2") as agent:
        with pytest.raises(UsageError, match=r"does not offer 'delete'; ask `agent.can\('delete'\)` first"):
            await agent.delete("old")


@pytest.mark.requirement("E1")
@pytest.mark.parametrize(("version", "kind"), [("v1", "http"), ("v1", "sse"), ("v2", "http"), ("v2", "stdio")])
async def test_mcp_servers_of_a_kind_that_an_agent_does_not_connect_are_refused(version: str, kind: str) -> None:
    server = {"type": kind, "name": "clock", "url": "http://localhost/mcp"}
    if kind == "stdio":
        server = {"name": "clock", "command": "clock"}
    async with odd(version) as agent:
        assert not agent.can(f"mcp_{kind}")
        for call in (
            agent.new_session(mcp_servers=[server]),
            agent.load("old0", mcp_servers=[server]),
            agent.resume("old0", mcp_servers=[server]),
            agent.fork("old0", mcp_servers=[server]),
        ):
            with pytest.raises(UsageError, match=f"does not offer 'mcp_{kind}'"):
                await call
        methods = {message["method"] for message in await heard(await agent.new_session())}
    assert methods == {"initialize", "session/new", "session/prompt"}


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("kind", ["image", "audio", "resource"])
async def test_content_that_an_agent_does_not_take_is_refused(version: str, kind: str) -> None:
    async with odd(version) as agent:
        session = await agent.new_session()
        with pytest.raises(UsageError, match=f"does not offer '{kind}'"):
            session.prompt([{"type": "text", "text": "Look"}, {"type": kind}])
        assert [message["method"] for message in await heard(session)][2:] == ["session/prompt"]


@pytest.mark.requirement("B9")
async def test_an_agent_of_the_early_draft_is_asked_for_nothing_it_does_not_advertise() -> None:
    async with odd("v2", "only loads") as agent:
        assert [what for what in ("load", "resume", "close", "list") if agent.can(what)] == ["load"]
        session = await agent.load("old0")
        for call in (lambda: agent.resume("old0"), lambda: agent.sessions().__anext__()):
            with pytest.raises(UsageError, match="does not offer"):
                await call()
        await session.close()
        methods = [message["method"] for message in await heard(await agent.new_session())]
    assert methods == ["initialize", "session/load", "session/new", "session/prompt"]


async def test_who_has_to_log_in_is_told_how() -> None:
    async with odd("wants a login") as agent:
        with pytest.raises(RemoteError) as caught:
            await agent.new_session()
        assert caught.value.code == -32000
        assert "agent.authenticate(…)` with one of 'key'" in "".join(caught.value.__notes__)


# Turns


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    "habits",
    [(), ("answers late",), ("idles first",), ("idles after",), ("idles first", "answers late"), ("gives no reason",)],
)
async def test_a_turn_of_version_2_ends_when_it_has_ended(habits: tuple[str, ...]) -> None:
    async with odd("v2", *habits) as agent:
        session = await agent.new_session()
        for word in ("hello", "goodbye"):
            updates = [update async for update in session.prompt(f"say {word}")]
            assert said(folded(updates))[-1] == ("agent_message", word)
            assert updates[-1].update()["state"] == "idle"


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_turn_that_fails_raises_after_its_last_update(version: str) -> None:
    async with odd(version) as agent:
        session = await agent.new_session()
        watching = session.updates()
        turn = session.prompt("fail")
        with pytest.raises(RemoteError, match="Aborted"):
            await turn
        updates = [await anext(watching) for _ in range(3)]
        assert turn.stop_reason == updates[-1].update()["stopReason"] == "error"
        assert updates[-1].update()["error"]["message"] == "Aborted"
        assert await session.ask_text("say fine") == "fine"


async def test_a_cancelled_prompt_that_is_answered_with_an_error_is_cancelled() -> None:
    async with odd("fails when cancelled") as agent:
        session = await agent.new_session()
        async with session.prompt("wait") as turn:
            async for update in turn:
                if update.text == "waiting":
                    await session.cancel()
        assert turn.stop_reason == "cancelled"


@pytest.mark.usefixtures("impatient")
async def test_an_agent_that_ignores_a_cancellation_holds_up_nobody_for_long() -> None:
    async with odd("ignores cancel") as agent:
        session = await agent.new_session()
        async with session.prompt("wait") as turn:
            async for update in turn:
                if update.text == "waiting":
                    with pytest.raises(UsageError, match="was asked to stop"):
                        await session.cancel()
                    break
        assert turn.stop_reason is None
        with pytest.raises(UsageError, match="was asked to stop"):
            await session.ask_text("say more")
        await session.close()


@pytest.mark.requirement("C5")
async def test_an_agent_that_ignores_a_cancellation_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout around a turn in a block: the loop is left, and the block is left, and both wait for the same end."""
    monkeypatch.setattr("holdfast.client.open_session.PATIENCE", 5.0)
    async with odd("ignores cancel") as agent:
        session = await agent.new_session()
        loop = asyncio.get_running_loop()
        left = loop.time()

        async def prompt_until_late() -> None:
            nonlocal left
            async with asyncio.timeout(None) as limit, session.prompt("wait") as turn:
                async for update in turn:
                    if update.text == "waiting":
                        left = loop.time()
                        limit.reschedule(left)

        with pytest.raises(TimeoutError):
            await prompt_until_late()
        with pytest.raises(UsageError, match="was asked to stop"):
            await session.ask_text("say more")
        await session.close()
        assert loop.time() - left < 2 * 5.0


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_whoever_looks_at_a_turn_that_does_not_end_sees_the_end_of_its_session(version: str) -> None:
    async with odd("ignores cancel", version) as agent:
        session = await agent.new_session()
        asking = asyncio.create_task(session.ask_text("wait"))
        async for update in session.updates():
            if update.text == "waiting":
                break
        await session.close()  # which the agent does not answer
        with pytest.raises(ConnectionLost, match="the session was closed"):
            await asking


async def test_pieces_without_ids_are_messages_as_one_reads_them() -> None:
    async with odd("echoes the user") as agent:
        session = await agent.new_session()
        updates = [update async for update in session.prompt("tool")]
        told = [entry for entry in session.history if entry.entity != "user_message"]
        assert [(entry.entity, entry.text()) for entry in told] == [
            ("agent_message", "Let me see. "),
            ("tool_call_update", ""),
            ("agent_message", "Well."),
            ("plan_update", ""),
            ("agent_thought", "Enough."),
            ("agent_message", "Done."),
        ]
        assert told[1].members == {"title": "Look", "status": "completed"}
        assert said(session.history)[0] == ("user_message", "tool")  # once, although the agent repeats it
        assert said(folded(updates)) == said(session.history)
        await session.prompt("tool")
        assert said(session.history).count(("user_message", "tool")) == 2


async def test_a_tool_call_that_only_a_question_has_announced_has_a_title() -> None:
    async with odd() as agent:
        session = await agent.new_session()
        assert json.loads(await session.ask_text("ask")) == {"outcome": {"outcome": "selected", "optionId": "no"}}
        assert json.loads(await session.ask_text("ask yes")) == {"outcome": {"outcome": "cancelled"}}
        call = session.history.get("tool_call_update", "c")
        assert call is not None
        assert call.members == {"title": "Rocket", "kind": "execute", "status": "completed"}


async def test_a_mode_that_was_set_is_the_mode_even_if_the_agent_does_not_say_so(tmp_path: Path) -> None:
    async with odd() as agent:
        session = await agent.new_session(tmp_path)
        assert (session.mode, session.modes) == ("a", {"a": "A", "b": "B"})
        await session.set("mode", "b")
        assert session.mode == "b"
        set_mode = (await heard(session))[-2]
        assert (set_mode["method"], set_mode["params"]) == ("session/set_mode", {"sessionId": "s1", "modeId": "b"})
        with pytest.raises(UsageError, match="no models"):
            await session.set("model", "x")
