"""What real clients do, each client's habits in one test (the editors' and bots' own words, not the protocol's)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, Client, patiently, serving
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.requirement("B1", "B7", "D2")
async def test_acpx_creates_a_session_leaves_and_comes_back_in_a_new_process_with_its_options(place: Path) -> None:
    async with serving(demo, place) as host:
        session = await (await host.client(1)).new()
    for said in ("first", "second"):
        async with serving(demo, place) as host:
            client = await host.client(1)
            answer = await client.resume(session)
            assert answer["models"]["currentModelId"] == ("small" if said == "first" else "large")
            await client.ask("session/set_model", {"sessionId": session, "modelId": "large"})
            for _ in range(2):
                params = {"sessionId": session, "configId": "tone", "value": "formal"}
                await client.ask("session/set_config_option", params)
            assert await client.prompt(session, said) == "end_turn"
            assert client.said() == said


@pytest.mark.requirement("A5", "B6", "D4")
async def test_toad_answers_updates_with_errors_without_an_id_and_reads_modes_from_a_load_result(place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(1, fs={"readTextFile": True, "writeTextFile": True}, terminal=True)
        session = await client.new()
        prompted = client.begin_prompt(session, "/usage")
        for _ in range(3):
            error = {"code": -32602, "message": "Invalid params", "data": {"sessionUpdate": "session_info_update"}}
            client.say({"jsonrpc": "2.0", "id": None, "error": error})
        assert await patiently(prompted) == {"stopReason": "end_turn"}
        client.forget()
        answer = await client.load(session)
        assert answer is not None
        assert answer["modes"]["currentModeId"] == "ask"
        assert client.updates("usage_update")[-1]["used"] == 53_000


@pytest.mark.requirement("B5", "B6")
async def test_codecompanion_makes_a_blank_session_before_its_picker_and_hears_everything_before_the_answer(
    place: Path,
) -> None:
    async with serving(demo, place) as host:
        client = await host.client(1)
        wanted = await client.new()
        for prompt in ("/tool", "/think", "/plan"):
            await client.prompt(wanted, prompt)
    async with serving(demo, place) as host:
        client = await host.client(1)
        await client.new()  # the blank
        listed = (await client.ask("session/list", {"cwd": CWD}))["sessions"]
        assert [it["sessionId"] for it in listed] == [wanted]
        client.forget()
        await client.load(wanted)
        assert "result" in client.heard[-1]
        assert client.said() == ("It is 21 °C; the barometer does not answer.I have thought about it.Done as planned.")
        await client.settle()
        assert [it for it in client.updates() if "messageId" in it or "toolCallId" in it] == [
            it for it in before_the_answer(client) if "messageId" in it or "toolCallId" in it
        ]


@pytest.mark.requirement("C8")
async def test_a_client_that_never_answers_a_question_can_still_cancel(place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(1)
        session = await client.new()
        prompted = client.begin_prompt(session, "/ask")
        await client.question()
        client.tell("session/cancel", {"sessionId": session})
        assert await patiently(prompted) == {"stopReason": "cancelled"}


@pytest.mark.requirement("B4", "B15", "C5")
async def test_agent_shell_lists_around_every_prompt_uses_string_ids_and_forks(place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(1)
        sessions = [await client.new() for _ in range(3)]
        for n, session in enumerate(sessions):
            before = await patiently(client.begin("session/list", {"cwd": CWD}, f"before-{n}"))
            assert len(before["sessions"]) == n
            assert await patiently(client.begin_prompt(session, "hello", f"prompt-{n}")) == {"stopReason": "end_turn"}
            after = await patiently(client.begin("session/list", {"cwd": CWD}, f"after-{n}"))
            assert after["sessions"][0]["sessionId"] == session
        client.tell("session/cancel", {"sessionId": sessions[0], "reason": "user"})
        forked = await client.ask("session/fork", {"sessionId": sessions[0], "cwd": CWD, "mcpServers": []})
        assert await client.prompt(forked["sessionId"], "in the fork") == "end_turn"


@pytest.mark.requirement("P6")
@pytest.mark.parametrize("version", [1, 2])
async def test_the_demo_says_how_to_use_a_command_that_it_does_not_understand(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        session = await client.new()
        for prompt, example in [
            ("/sleep well", "/sleep 5"),
            ("/search nan", "/search 5"),
            ("/search -1", "/search 5"),
            ("/stream all", "/stream 10"),
            ("/mode fast", "/mode ask"),
            ("/mcp files list oops", "/mcp SERVER TOOL {}"),
            ("/mcp files list []", "/mcp SERVER TOOL {}"),
        ]:
            client.forget()
            assert await client.prompt(session, prompt) == "end_turn"
            assert example in client.said()


@pytest.mark.requirement("P6")
async def test_codecompanion_sends_a_cancelled_command_again_as_a_block_of_its_next_prompt() -> None:
    async with serving(demo) as host:
        client = await host.client(1)
        session = await client.new()
        for command, said in [
            ("/sleep 0", "morning"),
            ("/search 0", "nothing"),
            ("/stream 2", "1"),
            ("/mode auto", "auto"),
        ]:
            client.forget()
            blocks = [{"type": "text", "text": text} for text in (command, "hello")]
            answer = await client.ask("session/prompt", {"sessionId": session, "prompt": blocks})
            assert answer["stopReason"] == "end_turn"
            assert said in client.said()


@pytest.mark.requirement("C10", "D4", "B13")
@pytest.mark.parametrize("version", [1, 2])
async def test_zed_is_told_nothing_of_a_session_before_it_knows_the_session(version: int) -> None:
    async with serving(demo) as host:
        client = await host.client(version)
        for method in ("session/new", "session/fork"):
            client.forget()
            params: dict[str, Any] = {"cwd": CWD, "mcpServers": []}
            if method == "session/fork":
                params["sessionId"] = (await client.ask("session/list", {}))["sessions"][0]["sessionId"]
            session = (await client.ask(method, params))["sessionId"]
            await client.until(lambda: client.updates("available_commands_update", session=session))  # noqa: B023
            known = next(n for n, it in enumerate(client.heard) if session in str(it.get("result")))
            first = next(n for n, it in enumerate(client.heard) if it.get("params", {}).get("sessionId") == session)
            assert known < first
            await client.prompt(session, "hello")


@pytest.mark.requirement("D2", "B13")
async def test_zed_applies_its_defaults_right_after_new_and_load_and_closes_with_the_view(place: Path) -> None:
    async with serving(demo, place) as host:
        client = await host.client(1, session={"configOptions": {"boolean": {}}})
        session = await client.new()
        for _ in range(2):
            setting = [
                client.begin("session/set_mode", {"sessionId": session, "modeId": "auto"}),
                client.begin(
                    "session/set_config_option", {"sessionId": session, "configId": "tone", "value": "pirate"}
                ),
            ]
            for it in setting:
                await patiently(it)
            assert await client.prompt(session, "hello") == "end_turn"
            assert await client.ask("session/close", {"sessionId": session}) == {}
            answer = await client.load(session)
            assert answer["modes"]["currentModeId"] == "auto"


@pytest.mark.requirement("A6", "D2")
async def test_webstorm_introduces_itself_twice_and_sends_every_option_again_before_each_prompt() -> None:
    async with serving(demo) as host:
        client = host.connect()
        for _ in range(2):
            params = {"protocolVersion": 1, "_meta": {"token": "secret"}, "clientCapabilities": {}}
            assert (await client.ask("initialize", params))["protocolVersion"] == 1
        made = await client.ask("session/new", {"cwd": CWD, "mcpServers": []})
        session = made["sessionId"]
        await client.settle()
        client.forget()
        for n in range(3):
            for option in made["configOptions"]:
                again = {"sessionId": session, "configId": option["id"], "value": option["currentValue"]}
                answer = await client.ask("session/set_config_option", again)
                assert len(answer["configOptions"]) == len(made["configOptions"])
            await client.prompt(session, f"{n}")
        assert client.updates("config_option_update", "current_mode_update") == []
        assert client.said() == "012"


@pytest.mark.requirement("A7", "C9", "D3")
async def test_a_bot_without_any_capabilities_can_do_everything_it_needs(tmp_path: Path) -> None:
    async with serving(demo) as host:
        client = host.connect()
        await client.ask("initialize", {"protocolVersion": 1})
        session = await client.new(str(tmp_path))
        await client.ask("session/set_model", {"sessionId": session, "modelId": "large"})
        await client.ask("session/set_mode", {"sessionId": session, "modeId": "auto"})
        for prompt in ("hello", "/form", "/notice", "/terminal", "/mode ask"):
            assert await client.prompt(session, prompt) == "end_turn", prompt
        assert client.asked == []
        await client.load(session, str(tmp_path))


def before_the_answer(client: Client) -> list[dict[str, Any]]:
    at = next(n for n, it in enumerate(client.heard) if "method" not in it)
    return [it["params"]["update"] for it in client.heard[:at]]
