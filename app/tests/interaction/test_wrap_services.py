"""What a wrapped agent asks of its client, what it cannot do to it, and how it ends (G1, G3, G7, G8)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.wrapping import conversation, wrapping
from core.tests.support.acp import Refused, patiently
from core.tests.support.links import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.tests.support.acp import Client


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return request.param


def habits(version: int, *others: str) -> tuple[str, ...]:
    """Return habits, and that the agent speaks the version of the client."""
    return ("v2", *others) if version == 2 else others


def quoted(client: Client) -> Any:
    """Return what the agent said as JSON."""
    return json.loads(client.said())


def is_gone(pid: int) -> bool:
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True


async def eventually(happened: Callable[[], bool]) -> None:
    """Wait until something that nobody tells us has happened."""
    async with asyncio.timeout(PATIENCE):
        while not happened():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


# What the pair can do


@pytest.mark.requirement("G1")
async def test_initialize_tells_the_agent_what_the_client_can_do_and_the_client_what_the_agent_can(
    tmp_path: Path,
) -> None:
    able = {"fs": {"readTextFile": True, "writeTextFile": False}, "terminal": True, "_x": {"y": [1]}}
    async with wrapping(tmp_path) as wrapped:
        client = wrapped.connect(1)
        answer = await client.initialize(**able)
        assert answer["protocolVersion"] == 1
        assert answer["agentInfo"] == {"name": "wrapped", "version": "1"}
        assert answer["agentCapabilities"]["promptCapabilities"] == {
            "image": True,
            "audio": False,
            "embeddedContext": True,
        }
        assert answer["agentCapabilities"]["mcpCapabilities"] == {"http": False, "sse": False}
        assert answer["agentCapabilities"]["loadSession"]
        offered = {"list", "resume", "close", "delete", "fork", "archive", "title"}
        assert offered <= answer["agentCapabilities"]["sessionCapabilities"].keys()
        assert answer["authMethods"] == [{"id": "key", "name": "A key", "type": "terminal", "args": ["login"]}]
        by = answer["_meta"]["holdfast/by"]
        assert (by["load"], by["fork"], by["rename"]) == ("holdfast", "agent", "holdfast")
        await client.initialize(**able)
        assert wrapped.starts == 1
        session = await client.new(str(tmp_path))
        await client.prompt(session, "heard initialize")
        (heard,) = quoted(client)
        assert heard["params"]["clientCapabilities"] == able
        assert heard["params"]["clientInfo"]["name"] == "test"


@pytest.mark.requirement("G1", "F1")
async def test_clients_with_other_capabilities_get_a_process_of_their_own(tmp_path: Path) -> None:
    async with wrapping(tmp_path, name="mine") as wrapped:
        first, second = await wrapped.client(1), await wrapped.client(1)
        assert wrapped.starts == 1
        third = await wrapped.client(1, terminal=True)
        await wrapped.client(1, principal="other")
        assert wrapped.starts == 3
        session = await first.new(str(tmp_path))
        await first.prompt(session, "remember heron")
        for client in (second, third):
            await client.load(session, str(tmp_path))
        third.forget()
        await third.prompt(session, "recall")
        assert third.said() == "heron"
        assert wrapped.starts == 3
        assert first.said().endswith("heron")


@pytest.mark.requirement("G1", "A7")
async def test_an_agent_that_says_2_and_means_1_is_spoken_to_in_version_1(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "v2 in name only") as wrapped:
        client = await wrapped.client(2)
        session = await client.new(str(tmp_path))
        assert await client.prompt(session, "say hello") == "end_turn"
        assert client.said() == "hello"


@pytest.mark.requirement("G2")
async def test_directories_and_servers_reach_the_agent_as_they_are(tmp_path: Path) -> None:
    servers = [{"name": "s", "command": "relative", "args": [], "env": [{"name": "K", "value": "v"}], "x": 1}]
    async with wrapping(tmp_path) as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path), mcpServers=servers, _meta={"claude": {"x": 1}})
        await client.prompt(session, "heard session/new")
        (heard,) = quoted(client)
        assert heard["params"] == {"cwd": str(tmp_path), "mcpServers": servers, "_meta": {"claude": {"x": 1}}}


@pytest.mark.requirement("G2", "P5")
async def test_what_is_said_before_the_session_is_named_is_shown_after(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, *habits(version, "speaks early")) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.until(lambda: "Hello before all." in client.said())
        await client.until(lambda: client.updates("available_commands_update"))
        answered = next(at for at, it in enumerate(client.heard) if "sessionId" in it.get("result", {}))
        assert all("method" not in it for it in client.heard[: answered + 1])
        client.forget()
        await client.load(session, str(tmp_path))
        assert client.said() == "Hello before all."
        assert [it["name"] for it in client.updates("available_commands_update")[-1]["availableCommands"]] == ["early"]


@pytest.mark.requirement("G1", "C12")
async def test_a_login_is_the_agents(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "wants a login") as wrapped:
        client = await wrapped.client(1)
        refusal = await client.refusal("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert (refusal.code, refusal.message) == (-32000, "Authentication required")
        assert (await client.refusal("authenticate", {"methodId": "none"})).message == "no such way"
        await client.ask("authenticate", {"methodId": "key"})
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say in")
        assert len((await client.ask("session/list", {}))["sessions"]) == 1


# What it asks


@pytest.mark.requirement("G7", "C11")
async def test_files_are_read_by_the_client_and_its_errors_come_back(tmp_path: Path) -> None:
    async with wrapping(tmp_path) as wrapped:
        client = await wrapped.client(1, fs={"readTextFile": True})
        session = await client.new(str(tmp_path))
        asked: list[dict[str, Any]] = []
        client.answers["fs/read_text_file"] = lambda params: asked.append(params) or {"content": "unsaved", "x": 1}
        await client.prompt(session, 'request fs/read_text_file {"path": "/f", "line": 3}')
        assert quoted(client) == {"content": "unsaved", "x": 1}
        assert asked == [{"sessionId": session, "path": "/f", "line": 3}]
        client.forget()
        await client.prompt(session, 'request fs/write_text_file {"path": "/f", "content": ""}')
        assert quoted(client)["code"] == -32601
        del client.answers["fs/read_text_file"]
        client.forget()
        turn = client.begin_prompt(session, 'request fs/read_text_file {"path": "/f"}')
        (await client.question()).refuse(-32002)
        await patiently(turn)
        assert quoted(client)["code"] == -32002


@pytest.mark.requirement("G7", "F3")
async def test_files_are_asked_of_the_client_whose_turn_it_is(tmp_path: Path) -> None:
    async with wrapping(tmp_path) as wrapped:
        first, second = [await wrapped.client(1, fs={"readTextFile": True}) for _ in range(2)]
        session = await first.new(str(tmp_path))
        await second.load(session, str(tmp_path))
        first.answers["fs/read_text_file"] = lambda _: {"content": "first"}
        second.answers["fs/read_text_file"] = lambda _: {"content": "second"}
        await second.prompt(session, 'request fs/read_text_file {"path": "/f"}')
        assert quoted(second) == {"content": "second"}
        del second.answers["fs/read_text_file"]
        turn = second.begin_prompt(session, 'request fs/read_text_file {"path": "/f"}')
        await second.question()
        first.forget()
        await wrapped.disconnect(second)
        await first.until(lambda: "client has gone" in first.said())
        del turn


@pytest.mark.requirement("G7")
async def test_a_terminal_of_the_client_stays_readable_when_it_is_gone(tmp_path: Path) -> None:
    printed = {"output": "built\n", "truncated": False, "exitStatus": {"exitCode": 0, "signal": None}}
    async with wrapping(tmp_path) as wrapped:
        client = await wrapped.client(1, terminal=True)
        session = await client.new(str(tmp_path))
        client.answers |= {
            "terminal/create": lambda _: {"terminalId": "t-1"},
            "terminal/wait_for_exit": lambda _: {"exitCode": 0},
            "terminal/output": lambda _: printed,
            "terminal/release": lambda _: {},
        }
        await client.prompt(session, "run make")
        assert client.said() == "built\n"
        shown = [it for it in client.updates("tool_call") if it.get("content")]
        assert shown[0]["content"] == [{"type": "terminal", "terminalId": "t-1"}]
        later = await wrapped.client(2)
        await later.resume(session, str(tmp_path), replayFrom={"type": "start"})
        (terminal,) = later.updates("terminal_update")
        assert b64decode(terminal["output"]["data"]) == b"built\n"
        assert terminal["exitStatus"] == {"exitCode": 0}
        last = await wrapped.client(1)
        await last.load(session, str(tmp_path))
        (call,) = last.updates("tool_call")
        assert "built" in json.dumps(call["content"])


@pytest.mark.requirement("G7", "C8", "P13")
@pytest.mark.parametrize("words", ["announce", "propose"])
async def test_a_permission_request_carries_what_is_known_and_the_call_is_in_the_history(
    tmp_path: Path, version: int, words: str
) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        turn = client.begin_prompt(session, words)
        asked = await client.question()
        call = asked.params["toolCall"] if version == 1 else asked.params["subject"]["toolCall"]
        assert (call["title"], call["kind"], call["rawInput"]) == ("Write a file", "edit", {"path": "/f"})
        assert asked.params["options"][0]["_meta"] == {"key": "y"}
        assert asked.params["_meta"]["agent"] == "x"
        asked.select("no")
        await patiently(turn)
        await client.until(lambda: version == 1 or "end_turn" in client.states())
        assert quoted(client) == {"outcome": "selected", "optionId": "no"}
        live = conversation(version, client.updates())
        client.forget()
        await client.load(session, str(tmp_path))
        calls = [
            entry for entry in conversation(version, client.updates()) if entry["sessionUpdate"] == "tool_call_update"
        ]
        assert [call["title"] for call in calls] == ["Write a file"]
        assert calls[0]["status"] == "failed"
        assert calls == [entry for entry in live if entry["sessionUpdate"] == "tool_call_update"]


@pytest.mark.requirement("G7", "F5")
async def test_the_first_of_two_clients_to_answer_decides(tmp_path: Path) -> None:
    async with wrapping(tmp_path) as wrapped:
        first, second = await wrapped.client(1), await wrapped.client(2)
        session = await first.new(str(tmp_path))
        await second.resume(session, str(tmp_path), replayFrom={"type": "start"})
        turn = first.begin_prompt(session, "propose")
        mine, theirs = await first.question(), await second.question()
        theirs.select("yes")
        await patiently(turn)
        await first.until(lambda: mine.withdrawn)
        assert quoted(first)["optionId"] == "yes"


@pytest.mark.requirement("G3", "A12")
async def test_what_an_agent_says_of_the_end_of_a_turn_reaches_the_client(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        answer = await patiently(client.begin_prompt(session, "say hello"))
        if version == 2:
            await client.until(lambda: "end_turn" in client.states())
            answer = client.updates("state_update")[-1]
        assert (answer["stopReason"], answer["_meta"]) == ("end_turn", {"cost": 3})


@pytest.mark.requirement("G3", "A12")
async def test_what_nobody_knows_passes_both_ways(tmp_path: Path) -> None:
    odd = {"sessionUpdate": "weather_update", "_meta": {"a": 1}, "sky": {"blue": [True]}}
    async with wrapping(tmp_path) as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path))
        client.answers["craft/drainMidTurnQueue"] = lambda params: {"echo": params}
        await client.prompt(session, 'request craft/drainMidTurnQueue {"x": [1, 2]}')
        assert quoted(client) == {"echo": {"sessionId": session, "x": [1, 2]}}
        await client.prompt(session, f"raw {json.dumps(odd)}")
        assert client.updates("weather_update") == [odd]
        await client.prompt(session, 'notify _x/told {"y": 1}')
        told = [it["params"] for it in client.heard if it.get("method") == "_x/told"]
        assert told == [{"sessionId": session, "y": 1}]
        refusal = await client.refusal("_x/unknown", {"sessionId": session, "z": 1})
        assert (refusal.code, refusal.message) == (-32601, "what?")
        client.tell("_x/noted", {"sessionId": session, "z": 2})
        client.forget()
        await client.prompt(session, "heard _x/noted")
        ours = quoted(client)[0]["params"]
        assert ours["z"] == 2
        assert ours["sessionId"] != session
        client.forget()
        await client.load(session, str(tmp_path))
        assert client.updates("weather_update") == [odd]


# Options


@pytest.mark.requirement("G4", "D1", "D4")
@pytest.mark.parametrize("others", [(), ("has config options",), ("no resume",), ("keeps nothing",)])
async def test_options_are_set_again_as_they_were(tmp_path: Path, version: int, others: tuple[str, ...]) -> None:
    async with wrapping(tmp_path, *habits(version, *others)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say hello")
        await client.ask(
            "session/set_config_option", {"sessionId": session, "configId": "mode", "type": "id", "value": "code"}
        )
        client.forget()
        await client.prompt(session, "mode")
        assert client.said() == "code"
    async with wrapping(tmp_path, *habits(version, *others)) as wrapped:
        client = await wrapped.client(version)
        answer = await client.resume(session, str(tmp_path))
        (option,) = answer["configOptions"]
        assert option["currentValue"] == "code"
        client.forget()
        await client.prompt(session, "mode")
        assert client.said().endswith("code")
        refusal = await client.refusal(
            "session/set_config_option", {"sessionId": session, "configId": "mode", "type": "id", "value": "none"}
        )
        assert refusal.code == -32602


@pytest.mark.requirement("D6", "G4")
async def test_a_mode_that_the_agent_changes_itself_is_told_and_kept(tmp_path: Path) -> None:
    async with wrapping(tmp_path) as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "change code")
        await client.until(lambda: client.updates("current_mode_update"))
    async with wrapping(tmp_path) as wrapped:
        client = await wrapped.client(1)
        answer = await client.load(session, str(tmp_path))
        assert answer["modes"]["currentModeId"] == "code"
        client.forget()
        await client.prompt(session, "mode")
        assert client.said() == "code"


# Ends


@pytest.mark.requirement("G8", "C5")
@pytest.mark.parametrize("others", [(), ("ends cancelled turns",), ("ignores cancel",)])
async def test_cancel_ends_a_turn_whatever_the_agent_does(
    tmp_path: Path, version: int, others: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = 0.5 if "ignores cancel" in others else PATIENCE  # who obeys may take its time
    monkeypatch.setattr("holdfast_app.wrap.remote.CANCEL_SECONDS", patience)
    monkeypatch.setattr("holdfast_app.wrap.session.STUCK_SECONDS", patience)
    async with wrapping(tmp_path, *habits(version, *others)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "remember heron")
        turn = client.begin_prompt(session, "wait")
        await client.until(lambda: "waiting" in client.said())
        client.tell("session/cancel", {"sessionId": session})
        if version == 1:
            assert (await patiently(turn))["stopReason"] == "cancelled"
        else:
            await client.until(lambda: "cancelled" in client.states())
        client.forget()
        assert await client.prompt(session, "recall") == "end_turn"
        assert client.said().endswith("heron")
        assert wrapped.starts == (2 if "ignores cancel" in others else 1)


@pytest.mark.requirement("G3", "C5")
async def test_one_tool_call_can_be_cancelled_by_itself(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "v2") as wrapped:
        client = await wrapped.client(2)
        session = await client.new(str(tmp_path))
        client.begin_prompt(session, "cancellable")
        await client.until(lambda: client.updates("tool_call_update"))
        key = client.updates("tool_call_update")[0]["toolCallId"]
        await client.ask("tool_call/cancel", {"sessionId": session, "toolCallId": key})
        await client.until(lambda: "end_turn" in client.states())
        assert client.updates("tool_call_update")[-1]["status"] == "cancelled"


@pytest.mark.requirement("G8")
async def test_prompts_wait_until_the_one_before_has_ended(tmp_path: Path) -> None:
    async with wrapping(tmp_path) as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path))
        turns = [client.begin_prompt(session, f"slowly {at}a {at}b {at}c ") for at in range(3)]
        for turn in turns:
            assert (await patiently(turn))["stopReason"] == "end_turn"
        assert client.said() == "0a 0b 0c 1a 1b 1c 2a 2b 2c "


@pytest.mark.requirement("G8", "P3")
async def test_an_agent_that_dies_ends_its_turn_with_its_last_words_and_is_started_again(
    tmp_path: Path, version: int
) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        turn = client.begin_prompt(session, "die")
        if version == 1:
            with pytest.raises(Refused, match=r"exited with status 7(.|\n)*I have seen too much"):
                await patiently(turn)
        else:
            await client.until(lambda: "error" in client.states())
            error = client.updates("state_update")[-1]["error"]
            assert "exited with status 7" in error["message"] and "I have seen too much" in error["message"]
        client.forget()
        assert await client.prompt(session, "say on") == "end_turn"
        assert client.said().endswith("on")


@pytest.mark.requirement("G8")
async def test_what_an_agent_wrote_in_passing_is_no_last_word(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, f"stderr {json.dumps('[perf] event loop stall of 312 ms' + chr(10))}")
        turn = client.begin_prompt(session, "die")
        if version == 1:
            with pytest.raises(Refused) as refused:
                await patiently(turn)
            message = refused.value.message
        else:
            await client.until(lambda: "error" in client.states())
            message = client.updates("state_update")[-1]["error"]["message"]
        assert "I have seen too much" in message and "stall" not in message


@pytest.mark.requirement("G8", "P13")
async def test_last_words_cannot_steer_a_terminal(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        turn = client.begin_prompt(session, f"die {json.dumps(HOSTILE)}")
        if version == 1:
            with pytest.raises(Refused) as refused:
                await patiently(turn)
            message = refused.value.message
        else:
            await client.until(lambda: "error" in client.states())
            message = client.updates("state_update")[-1]["error"]["message"]
        assert "I have seen too much" in message and "red" in message
        assert not STEERING.search(message)


HOSTILE = "\x1b[2J\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x9b31m \u202e \x7f \b"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.mark.requirement("G8")
async def test_why_an_agent_failed_reaches_the_user(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        turn = client.begin_prompt(session, "fail")
        if version == 1:
            with pytest.raises(Refused, match="Internal error: the quota is used up"):
                await patiently(turn)
        else:
            await client.until(lambda: "error" in client.states())
        assert await client.prompt(session, "say on") == "end_turn"


@pytest.mark.requirement("G8")
@pytest.mark.parametrize("habit", ["exits at once", "never answers", "no program"])
async def test_an_agent_that_does_not_start_is_said_to_have_not(tmp_path: Path, habit: str) -> None:
    launch: dict[str, Any] = {"command": ("no-such-program",)} if habit == "no program" else {}
    soon = 2.0 if habit == "never answers" else PATIENCE
    async with wrapping(tmp_path, habit, start_seconds=soon, **launch) as wrapped:
        client = wrapped.connect(1)
        for _ in range(2):
            with pytest.raises(Refused) as refused:
                await client.initialize()
            said = {
                "exits at once": "exited with status 3",
                "never answers": "has not answered `initialize`",
                "no program": "no such program on PATH",
            }
            assert said[habit] in refused.value.message
            if habit == "exits at once":
                assert "I cannot find my key" in refused.value.message


@pytest.mark.requirement("G8", "P8", "E5")
@pytest.mark.parametrize("others", [("ignores the end",), ("ignores the end", "ignores sigterm"), ("has a daemon",)])
async def test_nothing_of_an_agent_is_left_behind(tmp_path: Path, others: tuple[str, ...]) -> None:
    async with wrapping(tmp_path, *others) as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say hello")
        pids = [wrapped.agent_pid]
        if "has a daemon" in others:
            pids.append(int((wrapped.home / "daemon.pid").read_text()))
    await eventually(lambda: all(map(is_gone, pids)))


@pytest.mark.requirement("G3", "P7")
async def test_a_flood_and_long_lines_pass_whole(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "flood 5000")
        assert len(client.said()) == 5_000_000
        client.forget()
        await client.prompt(session, "long 3000000")
        assert len(client.said()) == 3_000_000
        client.forget()
        await client.load(session, str(tmp_path))
        assert len(client.said()) == 8_000_000


@pytest.mark.requirement("G3")
async def test_what_is_said_between_turns_is_shown_and_stored(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "later By the way")
        await client.until(lambda: client.said() == "By the way")
        live = conversation(version, client.updates())
        client.forget()
        await client.load(session, str(tmp_path))
        loaded = conversation(version, client.updates())
        assert [it for it in loaded if it["sessionUpdate"].startswith("agent")] == [
            it for it in live if it["sessionUpdate"].startswith("agent")
        ]


@pytest.mark.requirement("G4", "B18")
@pytest.mark.parametrize("others", [("no close", "refuses what is open"), ()])
async def test_a_session_that_is_live_in_the_agent_is_not_loaded_again(tmp_path: Path, others: tuple[str, ...]) -> None:
    async with wrapping(tmp_path, *others) as wrapped:
        client = await wrapped.client(1)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "remember heron")
        for _ in range(2):
            await client.ask("session/close", {"sessionId": session})
            await client.load(session, str(tmp_path))
        client.forget()
        await client.prompt(session, "recall")
        assert client.said() == "heron"
        assert len(client.updates("agent_message_chunk")) == 1


@pytest.mark.requirement("G8")
async def test_an_agent_killed_between_turns_is_back_for_the_next(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, *habits(version)) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "remember heron")
        os.kill(wrapped.agent_pid, signal.SIGKILL)
        client.forget()
        assert await client.prompt(session, "recall") == "end_turn"
        assert client.said() == "heron"
