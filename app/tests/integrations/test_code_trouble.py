"""The coding agent in trouble: cancelled, refused by its provider, cut off, killed; and forked."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from app.tests.support.coding import coding
from core.tests.support.acp import conversation, patiently, running, serving, text
from core.tests.support.links import PATIENCE
from core.tests.support.wire import wait_for_death
from holdfast.testing.model_server import Fail, ModelServer, Say, calls
from holdfast_app.code import CodeSettings, coding_agent

if TYPE_CHECKING:
    from app.tests.support.coding import Coding
    from core.tests.support.acp import Client, Update
    from holdfast.testing.model_server import Reply
    from holdfast.transport import ProcessTransport

VERSIONS = pytest.mark.parametrize("version", [1, 2])

AT_ONCE = {"x-should-retry": "false"}
"""Tells the provider's client not to try again."""

SLEEP = ("run", {"command": "echo $$ > pid; echo begun; sleep 60"})

KEY = "sk-this-is-a-very-secret-key"


def spoken(messages: list[Update]) -> list[tuple[str, str]]:
    """Who said what, as the model was told."""
    return [(it["role"], it["content"]) for it in messages]


def check(messages: list[Update]) -> None:
    """Check what every provider wants: each call has a result, behind it, and each result a call."""
    waiting: set[str] = set()
    for it in messages:
        if it["role"] == "tool":
            waiting.remove(it["tool_call_id"])
        else:
            assert not waiting, f"without a result: {waiting}"
        waiting |= {call["id"] for call in it.get("tool_calls") or ()}
    assert not waiting, f"without a result: {waiting}"


def begun(client: Client) -> bool:
    """Whether a command has said something."""
    return bool(client.updates("terminal_output_chunk")) or "begun\\n```" in str(client.updates("tool_call_update"))


async def failure(it: Coding, prompt: str) -> str:
    """Prompt in vain; give what the user is told."""
    if it.client.version == 1:
        params = {"sessionId": it.session, "prompt": [text(prompt)]}
        return (await it.client.refusal("session/prompt", params)).message
    assert await it.prompt(prompt) == "error"
    return it.client.updates("state_update")[-1]["error"]["message"]


async def cancelled(it: Coding, prompted: asyncio.Future[str]) -> None:
    it.client.tell("session/cancel", {"sessionId": it.session})
    assert await patiently(prompted) == "cancelled"


@pytest.mark.requirement("C5")
@VERSIONS
async def test_a_turn_is_cancelled_while_the_model_speaks(version: int, project: Path) -> None:
    async with coding(version, project, Say("Once upon a time", then="hang"), Say("It ended.")) as it:
        prompted = asyncio.ensure_future(it.prompt("Tell a story"))
        await it.client.until(lambda: it.client.said() == "Once upon a time")
        await cancelled(it, prompted)
        async with asyncio.timeout(PATIENCE):
            await it.server.hung_up.wait()  # the provider need not go on either
        await it.prompt("Go on")
        assert spoken(it.server.told()) == [
            ("user", "Tell a story"),
            ("assistant", "Once upon a time"),
            ("user", "Go on"),
        ]


@pytest.mark.requirement("C5")
@VERSIONS
async def test_a_turn_is_cancelled_while_a_tool_works(version: int, project: Path) -> None:
    async with coding(version, project, calls(SLEEP), Say("I see.")) as it:
        it.answer("allow_once")
        prompted = asyncio.ensure_future(it.prompt("Sleep"))
        await it.client.until(lambda: begun(it.client))
        await cancelled(it, prompted)
        await asyncio.to_thread(wait_for_death, [int((project / "pid").read_text())])
        assert it.statuses()[-1] == ("failed" if version == 1 else "cancelled")
        await it.prompt("What happened?")
        check(it.server.told())
        (result,) = [m["content"] for m in it.server.told() if m["role"] == "tool"]
        assert "interrupted" in result


@pytest.mark.requirement("C5")
@VERSIONS
async def test_a_turn_is_cancelled_while_the_user_is_asked(version: int, project: Path) -> None:
    edit = ("edit", {"path": "hello.py", "old": "hello", "new": "x"})
    async with coding(version, project, calls(edit), Say("I see.")) as it:
        prompted = asyncio.ensure_future(it.prompt("Edit"))
        await it.client.question()
        await cancelled(it, prompted)
        assert (project / "hello.py").read_text() == 'print("hello")\n'
        await it.prompt("What happened?")
        check(it.server.told())


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Fail(401, f"Incorrect API key provided: {KEY}", AT_ONCE), "check the API key"),
        (Fail(429, "Too fast", AT_ONCE), "wait a while and try again (HTTP 429): Too fast"),
        (Fail(500, "Oops", AT_ONCE), "try again (HTTP 500): Oops"),
        (Fail(404, "no such model", AT_ONCE), "check its name"),
        (Fail(400, f"bad {KEY} request", AT_ONCE), "did not accept the request (HTTP 400): bad … request"),
        (Say("Half an ans", then="break"), "broke off"),
    ],
    ids=lambda it: str(it.status) if isinstance(it, Fail) else "",
)
@VERSIONS
async def test_a_provider_that_fails_is_a_clear_failure_and_the_conversation_goes_on(
    version: int, reply: Reply, said: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_API_KEY", KEY)
    async with coding(version, project, Say("One."), reply, Say("Three.")) as it:
        await it.prompt("first")
        message = await failure(it, "second")
        assert said in message
        assert "The conversation is kept" in message
        assert await it.prompt("third") == "end_turn"
        told = "\n".join(m["content"] for m in it.server.told())
        assert told.replace("Half an ans\n", "").replace("\n\n", "\n") == "first\nOne.\nsecond\nthird"
        assert ("Half an ans" in told) == isinstance(reply, Say)
        assert KEY not in str(it.client.heard)
        assert set(it.server.keys) == {KEY}


async def test_a_provider_that_wants_us_to_wait_a_little_is_asked_again(project: Path) -> None:
    async with coding(1, project, Fail(429, "slow down", {"retry-after-ms": "1"}), Say("Here.")) as it:
        assert await it.prompt("Hello?") == "end_turn"
        assert it.client.said() == "Here."


@VERSIONS
async def test_a_stream_that_breaks_in_a_tool_call_leaves_no_call_behind(version: int, project: Path) -> None:
    broken = Say("Look: ", (("read", {"path": "hello.py"}),), then="break")
    async with coding(version, project, broken, Say("Again.")) as it:
        assert "broke off" in await failure(it, "Read")
        assert it.statuses() == ["pending", "failed"]
        await it.prompt("Again")
        check(it.server.told())


@VERSIONS
@pytest.mark.parametrize(("finish", "reason"), [("length", "max_tokens"), ("content_filter", "refusal")])
async def test_a_model_that_stops_early_says_why(version: int, finish: str, reason: str, project: Path) -> None:
    async with coding(version, project, Say("As I was say", finish=finish)) as it:
        assert await it.prompt("Speak") == reason
        assert it.client.said() == "As I was say"


@pytest.mark.requirement("B15")
@VERSIONS
async def test_both_branches_of_a_fork_go_on_by_themselves(version: int, project: Path) -> None:
    script = [Say("One."), Say("Two, here."), Say("Two, there."), Say("Three, here.")]
    async with coding(version, project, *script) as it:
        await it.prompt("first")
        fork = await it.fork()
        await it.prompt("second, here")
        await it.client.prompt(fork, "second, there")
        assert spoken(it.server.told()) == [("user", "first"), ("assistant", "One."), ("user", "second, there")]
        await it.prompt("third, here")
        assert [said for _, said in spoken(it.server.told())] == [
            "first", "One.", "second, here", "Two, here.", "third, here",
        ]  # fmt: skip


@pytest.mark.requirement("B15")
@VERSIONS
async def test_a_fork_from_a_message_knows_what_its_user_sees_and_no_more(version: int, project: Path) -> None:
    script = [
        Say("One."),
        calls(("read", {"path": "hello.py"}), text="Let me look. "),
        Say("Two.", thought="secret thought"),
        Say("Three."),
    ]
    async with coding(version, project, *script) as it:
        await it.prompt("first")
        await it.prompt("second")
        await it.prompt("third")
        ids = {m["content"][0]["text"]: m["messageId"] for m in it.entries("agent_message")}
        cuts: dict[str, list[str]] = {
            "One.": ["first", "One."],
            "Let me look. ": ["first", "One.", "second", "Let me look. "],
            "Two.": ["first", "One.", "second", "Let me look. ", 'print("hello")\n', "Two."],
        }
        for at, known in cuts.items():
            fork = await it.fork(ids[at])
            it.server.script.append(Say("Here."))
            assert await it.client.prompt(fork, "on") == "end_turn"
            check(it.server.told())
            *said, note, prompt = [said for _, said in spoken(it.server.told())]
            assert [*said, prompt] == [*known, "on"]
            assert "The files are as they are now, not as they were then." in note


@VERSIONS
async def test_after_kill_9_in_the_middle_of_a_tool_the_session_is_loaded_and_goes_on(
    version: int, project: Path, tmp_path: Path
) -> None:
    store, cwd = tmp_path / "s.db", str(project)
    script = [
        calls(("read", {"path": "hello.py"}), text="Let me look. "),
        calls(SLEEP, text="Now I run it. "),
        Say("It was interrupted."),
    ]
    async with ModelServer(script) as server:
        arguments = ("code", "--model", "scripted", "--base-url", server.url)
        env = {"HOLDFAST_API_KEY": KEY}
        async with running(store, *arguments, version=version, env=env) as client:
            session = await client.new(cwd)
            mode = {"sessionId": session, "configId": "mode", "value": "auto"}
            await client.ask("session/set_config_option", mode)
            client.begin_prompt(session, "Run it")
            await client.until(lambda: begun(client))
            await kill(client)
            await asyncio.to_thread(wait_for_death, [int((project / "pid").read_text())])
        async with serving(coding_agent(CodeSettings(("scripted",), server.url)), store) as host:
            client = await host.client(version)
            told = await replayed(client, session, cwd)
            assert [it["status"] for it in told if it["sessionUpdate"] == "tool_call_update"] == ["completed", "failed"]
            assert await client.prompt(session, "What happened?") == "end_turn"
            check(server.told())
            (read, ran) = [it["content"] for it in server.told() if it["role"] == "tool"]
            assert read == 'print("hello")\n'
            assert "interrupted" in ran
            said = [it["content"] for it in server.told() if it["role"] != "tool"]
            assert said == ["Run it", "Let me look. ", "Now I run it. ", "What happened?"]
    assert occurs(b"It was interrupted.", tmp_path)
    assert not occurs(KEY.encode(), tmp_path)


def occurs(what: bytes, directory: Path) -> bool:
    return any(what in it.read_bytes() for it in directory.rglob("*") if it.is_file())


async def kill(client: Client) -> None:
    """Kill the agent, which its guard has started, without any warning."""
    guard = cast("ProcessTransport", client.transport).pid
    (agent,) = Path(f"/proc/{guard}/task/{guard}/children").read_text().split()  # noqa: ASYNC240
    os.kill(int(agent), signal.SIGKILL)
    await client.until(lambda: client.ended)


async def replayed(client: Client, session: str, cwd: str) -> list[Update]:
    if client.version == 1:
        await client.load(session, cwd)
    else:
        await client.resume(session, cwd, replayFrom={"type": "start"})
    return conversation(client.updates())


async def test_the_command_says_what_to_set_and_speaks_no_word_of_it_on_stdout(project: Path, tmp_path: Path) -> None:
    env = {"HOLDFAST_MODEL": "", "HOLDFAST_BASE_URL": ""}
    async with running(tmp_path / "s.db", "code", env=env) as client:
        assert await client.prompt(await client.new(str(project)), "Hello?") == "end_turn"
        assert "HOLDFAST_MODEL" in client.said()
        assert "HOLDFAST_MODEL" in cast("ProcessTransport", client.transport).stderr
        assert all(json.dumps(it) for it in client.heard)
