"""Points that independent trials broke between well-tested parts, each kept by a test."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, Refused, patiently, serving
from core.tests.support.schemas import faults
from holdfast import Agent, Turn
from holdfast.model.diffs import git_patch, quoted_path

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.model import SystemPrompt

PRINTS = """
import time
for n in range(8000):
    print(f"line {n} of a long output", flush=n % 80 == 79)
    if n % 80 == 79:
        time.sleep(0.005)
"""
"""A command that takes its time: what it prints arrives in a hundred pieces."""

VERSIONS = pytest.mark.parametrize("version", [1, 2])


# System prompts of clients (B16)


def advised(*accepts: Any) -> tuple[Agent, list[SystemPrompt | None]]:
    agent = Agent("advised", accepts=accepts)
    seen: list[SystemPrompt | None] = []

    @agent.prompt
    async def answer(turn: Turn) -> None:
        seen.append(turn.session.system_prompt)

    return agent, seen


def prompt(mode: str = "append", *content: object) -> dict[str, Any]:
    return {"mode": mode, "content": list(content) or [{"type": "text", "text": "Be brief."}]}


@pytest.mark.requirement("B16")
@VERSIONS
@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork"])
async def test_an_agent_that_takes_no_system_prompt_refuses_one(version: int, method: str) -> None:
    agent, _ = advised()
    async with serving(agent) as host:
        client = await host.client(version)
        session = await client.new()
        params: dict[str, Any] = {"cwd": CWD, "mcpServers": [], "sessionId": session, "systemPrompt": prompt()}
        assert (await client.refusal(method, params)).code == -32602


@pytest.mark.requirement("B16", "F3")
@VERSIONS
async def test_a_system_prompt_reaches_the_turns_of_the_client_that_gave_it(version: int) -> None:
    agent, seen = advised("system_prompt")
    async with serving(agent) as host:
        client, other = host.connect(version), await host.client(version)
        described = await client.initialize()
        abilities = described["agentCapabilities"]["sessionCapabilities"] if version == 1 else (
            described["capabilities"]["session"]
        )  # fmt: skip
        assert abilities["systemPrompt"] == {}
        session = await client.new(systemPrompt=prompt())
        await other.load(session)
        await client.prompt(session, "x")
        await other.prompt(session, "x")
        assert seen == [("append", "Be brief."), None]
        image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        empty: dict[str, Any] = {"mode": "append", "content": []}
        for wrong in (prompt("override"), prompt("_mine"), prompt("append", image), empty):
            assert (await client.refusal("session/new", {"cwd": CWD, "systemPrompt": wrong})).code == -32602


@VERSIONS
async def test_a_system_prompt_may_replace_the_agents_own_where_that_is_offered(version: int) -> None:
    agent, seen = advised("system_prompt", "system_prompt_override")
    async with serving(agent) as host:
        client = await host.client(version)
        await client.prompt(await client.new(systemPrompt=prompt("override")), "x")
    assert seen == [("override", "Be brief.")]


# Diffs

CHANGES = [("a\nb\n", "a\nc\n"), ("a", "b"), ("x\u2028y\n", "x\u2028z\n"), (None, "new\n")]


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("name", ["plain.txt", "with space.txt", "ümläut.txt", 'quo"te.txt', "tab\tname.txt"])
@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_a_patch_is_one_that_git_applies(tmp_path: Path, name: str, old: str | None, new: str) -> None:
    path = tmp_path / name
    if old is not None:
        path.write_text(old)
    patch = git_patch(str(path), old, new)
    first, *rest = patch.splitlines()
    assert first == f"diff --git {quoted_path(str(path))} {quoted_path(str(path))}"
    assert not any(line.startswith(("--- a/", "+++ b/")) for line in rest)
    command = ("git", "apply", "--unsafe-paths", "-p1", "--directory=/", "-")
    done = subprocess.run(command, cwd=tmp_path, input=patch.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert path.read_text() == new


@pytest.mark.requirement("P13", "C8")
@VERSIONS
@pytest.mark.parametrize("changes", [1, 30_000], ids=["a little", "all of it"])
async def test_a_question_about_a_large_file_shows_what_would_change(version: int, changes: int) -> None:
    old = "".join(f"line {n} of a large file\n" for n in range(30_000))
    new = old.replace(" of ", " OF ", changes)
    agent = Agent("editing")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        async with turn.tool("Edit", kind="edit") as call:
            await call.diff("/f", old, new)
            await turn.allow("May I?", call=call)

    async with serving(agent) as host:
        client = await host.client(version)
        prompted = client.begin_prompt(await client.new(), "x")
        asked = await client.question()
        asked.select("reject_once")
        await patiently(prompted)
        assert "line 0 OF a large file" in json.dumps(asked.params)
        assert not faults(version, "client", "session/request_permission", "Request", asked.params)


# Options


@pytest.mark.requirement("D4", "D6")
async def test_changing_the_model_tells_nothing_of_the_mode() -> None:
    agent = Agent("settable")
    agent.modes({"ask": "Ask", "act": "Act"}, default="ask")
    agent.models({"s": "Small", "l": "Large"}, default="s")

    @agent.prompt
    async def answer(turn: Turn) -> None: ...

    async with serving(agent) as host:
        client = await host.client(1)
        session = await client.new()
        await client.ask("session/set_model", {"sessionId": session, "modelId": "l"})
        await client.settle()
        assert client.updates("config_option_update") and not client.updates("current_mode_update")
        await client.ask("session/set_mode", {"sessionId": session, "modeId": "act"})
        await client.until(lambda: client.updates("current_mode_update"))


# Terminals in version 1


@pytest.mark.requirement("C7")
async def test_a_terminals_text_is_not_sent_again_with_every_line_in_version_1() -> None:
    agent = Agent("printing")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        async with turn.tool("Print", kind="execute") as call:
            await call.terminal(sys.executable, "-S", "-c", PRINTS, cwd="/")

    sent: dict[int, int] = {}
    async with serving(agent) as host:
        for version in (1, 2):
            client = await host.client(version)
            assert await client.prompt(await client.new("/"), "x") == "end_turn"
            sent[version] = sum(len(str(update)) for update in client.updates())
            if version == 1:
                (shown,) = [update["content"] for update in client.updates("tool_call_update") if "content" in update][
                    -1
                ]
                assert "line 7999 of" in shown["content"]["text"]
    assert sent[1] <= 2 * sent[2]


# What a command sees of the agent's environment


@pytest.mark.requirement("P10")
@pytest.mark.parametrize("beside", [False, True], ids=["in the turn", "beside it"])
async def test_a_command_sees_no_variable_of_the_agent_that_nobody_named(
    beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_URL", "MYSQL_PWD", "GH_PAT", "API_KEY_PROD", "WHATEVER"):
        monkeypatch.setenv(name, "sesame")
    agent = Agent("runs commands")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        async with turn.tool("Look", kind="execute") as call:
            env = {"NAMED": "by its author"} if turn.text == "named" else None
            if beside:
                command = await call.start_terminal("/usr/bin/env", cwd="/", env=env)
                await turn.say((await command.wait()).text)
            else:
                await turn.say((await call.terminal("/usr/bin/env", cwd="/", env=env)).text)

    async with serving(agent) as host:
        client = await host.client(2)
        session = await client.new("/")
        assert await client.prompt(session, "look") == "end_turn"
        assert "sesame" not in client.said()
        assert f"PATH={os.environ['PATH']}" in client.said()
        assert await client.prompt(session, "named") == "end_turn"
        assert "NAMED=by its author" in client.said()
        assert "sesame" not in client.said()


# Cancelling a prompt while it is inserted (C6)


@pytest.mark.requirement("C6", "A9")
async def test_in_version_2_a_prompt_that_was_inserted_is_never_answered_with_an_error(tmp_path: Path) -> None:
    agent = Agent("slow")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await asyncio.sleep(0)

    outcomes = {"inserted": 0, "dropped": 0}
    codes: set[int] = set()
    async with serving(agent, tmp_path / "s.db") as host:
        client = await host.client(2)
        session = await client.new()
        for n in range(40):
            answered = client.begin_prompt(session, f"prompt {n}", f"p{n}")
            for _ in range(n % 8):
                await asyncio.sleep(0)
            client.tell("$/cancel_request", {"requestId": f"p{n}"})
            try:
                message = (await answered)["messageId"]
            except Refused as e:
                codes.add(e.code)
                outcomes["dropped"] += 1
                continue
            await client.until(lambda message=message: client.ends_after(session, message))
            outcomes["inserted"] += 1
        watcher = await host.client(2)
        replay = await watcher.replayed(session)
        stored = [update for update in replay if update["sessionUpdate"] == "user_message"]
        assert len(stored) == outcomes["inserted"]
        assert codes <= {-32800}


# A session that another process has taken over


@pytest.mark.requirement("P4")
@VERSIONS
async def test_a_take_over_is_told_with_the_same_code_in_both_versions(version: int, tmp_path: Path) -> None:
    agent = Agent("taken")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await turn.say("hi")

    store = tmp_path / "s.db"
    async with serving(agent, store, shares=False) as ours, serving(agent, store, shares=False) as theirs:
        client, other = await ours.client(version), await theirs.client(version)
        session = await client.new()
        await client.prompt(session, "x")
        await other.load(session)
        blocks = [{"type": "text", "text": "x"}]
        refused = await client.refusal("session/prompt", {"sessionId": session, "prompt": blocks})
        assert refused.code == -32600 and "taken over" in refused.message
