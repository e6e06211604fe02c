"""What authors can do besides talking: each in both versions where both have it, and valid in the official schemas."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, Client, Gates, Update, conversation, patiently, serving
from core.tests.support.schemas import faults, invalid
from holdfast import Agent, Session, Turn
from holdfast.errors import InvalidParams, UsageError
from holdfast.model import PermissionOption
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

VERSIONS = pytest.mark.parametrize("version", [1, 2])

ALL_V1: dict[str, Any] = {"session": {"compaction": {}, "notices": {}}, "plan": {}, "subagents": {}}


def acting(act: Callable[[Turn], Awaitable[None]]) -> Agent:
    agent = Agent("acting")

    @agent.prompt
    async def answer(turn: Turn) -> None:
        await act(turn)

    return agent


async def shown(version: int, act: Callable[[Turn], Awaitable[None]], **capabilities: object) -> list[list[Update]]:
    """Let an agent act; return what was told live and in a replay, all of it valid."""
    async with serving(acting(act)) as host:
        client = await host.client(version, **capabilities)
        session = await client.new()
        assert await client.prompt(session, "go") == "end_turn"
        live = told(client)
        client.forget()
        await client.replayed(session)
        return [live, told(client)]


UNSTABLE = frozenset({"plan_update", "subagent_update"})
"""Updates that version 1 has only in its unstable schema; clients ask for them."""


def told(client: Client) -> list[Update]:
    for message in client.heard:
        if message.get("method") == "session/update":
            params, version = message["params"], client.version
            if version == 1 and params["update"]["sessionUpdate"] in UNSTABLE:
                assert invalid(version, "SessionNotification", params, stable=False) == []
            else:
                assert faults(version, "client", "session/update", "Notification", params) == []
    return client.updates()


def of_kind(updates: list[Update], *kinds: str) -> list[Update]:
    return [update for update in updates if update["sessionUpdate"] in kinds]


@VERSIONS
async def test_an_author_reads_what_the_client_sent_beside_the_prompt(version: int) -> None:
    seen: list[Any] = []

    async def act(turn: Turn) -> None:
        seen.append(turn.meta)

    async with serving(acting(act)) as host:
        client = await host.client(version)
        session = await client.new()
        prompt = [{"type": "text", "text": "go"}]
        await client.ask("session/prompt", {"sessionId": session, "prompt": prompt, "_meta": {"editor/line": 3}})
        await client.prompt(session, "again")
    assert seen == [{"editor/line": 3}, {}]


@VERSIONS
async def test_an_author_reads_what_a_client_sent_when_it_introduced_itself_and_opened_the_session(
    version: int,
) -> None:
    seen: list[Any] = []
    agent = Agent("reading")

    @agent.on_open
    async def opened(session: Session) -> None:
        seen.append(session.meta)

    @agent.prompt
    async def answer(turn: Turn) -> None:
        assert turn.client is not None
        seen.append((turn.session.meta, turn.client.info.meta))

    async with serving(agent) as host:
        client = host.connect(version)
        hello = {"protocolVersion": version, "_meta": {"editor/window": 7}}
        await client.ask("initialize", hello if version == 1 else {**hello, "info": {"name": "e", "version": "1"}})
        session = await client.new(_meta={"editor/tab": 1})
        await client.prompt(session, "go")
        other = await host.client(version)
        await other.resume(session, _meta={"editor/tab": 2})
        await other.prompt(session, "go")
        assert await client.prompt(session, "go") == "end_turn"
    assert seen == [
        {"editor/tab": 1},
        ({"editor/tab": 1}, {"editor/window": 7}),
        ({"editor/tab": 2}, None),
        ({"editor/tab": 1}, {"editor/window": 7}),
    ]


@VERSIONS
async def test_a_thought_can_be_thought_whole_and_again(version: int) -> None:
    async def act(turn: Turn) -> None:
        await turn.rethink("whole")
        await turn.say("so")
        await turn.think("half ")
        await turn.rethink("better")

    live, replay = await shown(version, act)
    thoughts = of_kind(conversation(replay), "agent_thought")
    assert [thought["content"][0]["text"] for thought in thoughts] == ["whole", "better"]
    first = of_kind(live, "agent_thought", "agent_thought_chunk")[0]
    assert first["content"] == (
        [{"type": "text", "text": "whole"}] if version == 2 else {"type": "text", "text": "whole"}
    )


@VERSIONS
@pytest.mark.parametrize("asked_for", [True, False])
async def test_a_plan_can_be_markdown(version: int, asked_for: bool) -> None:
    async def act(turn: Turn) -> None:
        await turn.plan_markdown("# Plan\n- look")

    for updates in await shown(version, act, **(ALL_V1 if asked_for and version == 1 else {})):
        (plan,) = of_kind(updates, "plan", "plan_update")
        if version == 2 or asked_for:
            assert plan["plan"] == {"type": "markdown", "planId": "plan", "content": "# Plan\n- look"}
        else:
            assert plan["entries"] == [{"content": "# Plan\n- look", "status": "in_progress", "priority": "medium"}]


@VERSIONS
@pytest.mark.parametrize("asked_for", [True, False])
async def test_compactions_and_subagents_are_told_to_those_who_know_them(version: int, asked_for: bool) -> None:
    async def act(turn: Turn) -> None:
        await turn.compaction("all of it, in short")
        await turn.subagent("sess_other", title="Other", description="Looks elsewhere", state="running")
        await turn.subagent("sess_other", state="idle")

    # That each frame is valid is checked too: the official Python SDK, 1.0.0rc3, fails on a subagent's state.
    for updates in await shown(version, act, **(ALL_V1 if asked_for and version == 1 else {})):
        said = of_kind(conversation(updates), "compaction_update", "subagent_update")
        if version == 1 and not asked_for:
            assert said == []
            continue
        compaction, subagent = said
        assert compaction["status"] == "completed"
        assert compaction["summary"] == [{"type": "text", "text": "all of it, in short"}]
        assert subagent == {
            "sessionUpdate": "subagent_update", "sessionId": "sess_other", "title": "Other",
            "description": "Looks elsewhere", "state": {"state": "idle"},
        }  # fmt: skip


@VERSIONS
@pytest.mark.requirement("C8")
async def test_permission_options_are_the_authors_own(version: int) -> None:
    options = [
        PermissionOption("all", "All files", "allow_always"),
        PermissionOption("one", "Only this file", "allow_once"),
        PermissionOption("no", "Leave it", "reject_once"),
    ]

    async def act(turn: Turn) -> None:
        chosen = await turn.choose("Which files?", options)
        await turn.say("nothing" if chosen is None else chosen.id)

    async with serving(acting(act)) as host:
        client = await host.client(version)
        session = await client.new()
        for answer, said in (("one", "one"), ("other", "nothing")):
            client.forget()
            running = asyncio.create_task(client.prompt(session, "go"))
            asked = await client.question(len(client.asked) + 1)
            assert [tuple(option.values()) for option in asked.params["options"]] == [
                ("all", "All files", "allow_always"),
                ("one", "Only this file", "allow_once"),
                ("no", "Leave it", "reject_once"),
            ]
            asked.select(answer)
            await patiently(running)
            assert client.said() == said


@VERSIONS
@pytest.mark.requirement("C9")
async def test_clients_that_show_addresses_are_told_when_one_is_done_with(version: int) -> None:
    async def act(turn: Turn) -> None:
        assert await turn.ask_url("Log in there", "https://example.org", id="login-1")
        await turn.say("waiting")
        await turn.complete_url("login-1")

    async with serving(acting(act)) as host:
        client = await host.client(version, elicitation={"url": {}})
        client.answers["elicitation/create"] = lambda params: {"action": "accept"}
        session = await client.new()
        other = await host.client(version)
        await other.load(session)
        assert await client.prompt(session, "go") == "end_turn"
        (asked,) = [message["params"] for message in client.heard if message.get("method") == "elicitation/create"]
        methods = [message.get("method") for message in client.heard]
        (done,) = [message["params"] for message in client.heard if message.get("method") == "elicitation/complete"]
        assert asked["elicitationId"] == done["elicitationId"] == "login-1"
        said = [
            n for n, method in enumerate(methods) if method == "session/update" and "waiting" in str(client.heard[n])
        ]
        assert said[0] < methods.index("elicitation/complete")
        assert faults(version, "client", "elicitation/complete", "Notification", done) == []
        await other.settle()
        assert not any(message.get("method") == "elicitation/complete" for message in other.heard)


@VERSIONS
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/url", "You have seen it."),
        ("/outline", "That is the plan."),
        ("/compact", "I remember the gist."),
        ("/subagent", "The scout is back."),
        ("/search 0", "I found nothing."),
        ("/editor", "Your client has no terminals for me."),
    ],
)
async def test_the_demo_agent_shows_each_of_them(version: int, command: str, said: str) -> None:
    async with serving(demo) as host:
        client = await host.client(version, elicitation={"url": {}}, **(ALL_V1 if version == 1 else {}))
        client.answers["elicitation/create"] = lambda _: {"action": "accept"}
        assert await client.prompt(await client.new(), command) == "end_turn"
        told(client)
        assert client.said() == said


# Terminals of the client

EDITOR: dict[str, Any] = {"terminal": True, "fs": {}}


def with_terminal(client: Client, calls: list[str], *, runs: bool = True) -> None:
    """Let a client run commands; one that does not `run` never ends."""
    answers: dict[str, Any] = {
        "terminal/create": {"terminalId": "1"},
        "terminal/output": {"output": "all is well\n", "truncated": False},
        "terminal/kill": {},
        "terminal/release": {},
    }
    if runs:
        answers["terminal/wait_for_exit"] = {"exitCode": 3, "signal": None}
    for method, result in answers.items():
        client.answers[method] = lambda _, m=method, r=result: (calls.append(m), r)[1]


async def run_for_the_editor(turn: Turn) -> None:
    assert turn.client is not None
    async with turn.tool("Test", kind="execute") as call:
        status, _ = await turn.client.run("make", "test", call=call)
        await turn.say(f"{status}")


@pytest.mark.requirement("C11")
async def test_a_terminal_of_the_client_is_shown_in_a_tool_call_and_read_in_the_replay() -> None:
    async with serving(acting(run_for_the_editor)) as host:
        client, calls = await host.client(1, **EDITOR), list[str]()
        with_terminal(client, calls)
        session = await client.new()
        watching = await host.client(2)
        await watching.resume(session)
        assert await client.prompt(session, "go") == "end_turn"
        contents = [update["content"] for update in of_kind(told(client), "tool_call_update") if "content" in update]
        assert contents and all(content == [{"type": "terminal", "terminalId": "1"}] for content in contents)
        assert client.said() == "3"
        (call,) = of_kind(conversation(await client.replayed(session)), "tool_call_update")
        assert call["content"][0]["content"]["text"] == "```\nall is well\n```"
        await watching.until(lambda: watching.ends(session))
        (terminal,) = of_kind(conversation(of_kind(told(watching), "terminal_update")), "terminal_update")
        assert terminal["exitStatus"] == {"exitCode": 3} and terminal["command"] == "make test"
        assert terminal["terminalId"] != "1"


@pytest.mark.requirement("C5")
async def test_a_command_in_a_terminal_of_the_client_is_killed_with_the_turn() -> None:
    async with serving(acting(run_for_the_editor)) as host:
        client, calls = await host.client(1, **EDITOR), list[str]()
        with_terminal(client, calls, runs=False)
        session = await client.new()
        answer = client.begin_prompt(session, "go")
        await client.question()
        client.tell("session/cancel", {"sessionId": session})
        assert (await patiently(answer))["stopReason"] == "cancelled"
        assert calls == ["terminal/create", "terminal/kill", "terminal/output", "terminal/release"]
        (call,) = of_kind(conversation(await client.replayed(session)), "tool_call_update")
        assert call["status"] == "failed" and "all is well" in str(call["content"])


# Cancelling one thing


async def call_in(client: Client) -> Update:
    await client.until(lambda: client.updates("tool_call_update"))
    return client.updates("tool_call_update")[0]


@pytest.mark.requirement("C5")
async def test_one_tool_call_can_be_cancelled_where_the_author_offers_it() -> None:
    gates = Gates()

    async def act(turn: Turn) -> None:
        async with turn.tool("Search everything", cancellable=True) as call:
            await gates.wait()
        await turn.say(f"went on: {call.cancelled}")

    async with serving(acting(act)) as host:
        client = await host.client(2)
        session = await client.new()
        running = asyncio.create_task(client.prompt(session, "go"))
        await gates.reached()
        call = await call_in(client)
        assert call["capabilities"] == {"cancel": {}}
        named = {"sessionId": session, "toolCallId": call["toolCallId"]}
        assert await client.ask("tool_call/cancel", named) == {}
        assert await patiently(running) == "end_turn"
        assert client.said() == "went on: True"
        (ended,) = of_kind(conversation(of_kind(told(client), "tool_call_update")), "tool_call_update")
        assert ended["status"] == "cancelled" and not ended.get("capabilities")
        assert (await client.refusal("tool_call/cancel", named)).code == -32602


@pytest.mark.requirement("C5")
async def test_cancelling_the_turn_cancels_a_cancellable_call_and_the_turn() -> None:
    gates = Gates()

    async def act(turn: Turn) -> None:
        async with turn.tool("Search", cancellable=True):
            await gates.wait()
        await turn.say("never said")

    async with serving(acting(act)) as host:
        client = await host.client(2)
        session = await client.new()
        running = asyncio.create_task(client.prompt(session, "go"))
        await gates.reached()
        call = await call_in(client)
        client.tell("session/cancel", {"sessionId": session})
        asked = client.begin("tool_call/cancel", {"sessionId": session, "toolCallId": call["toolCallId"]})
        assert await patiently(running) == "cancelled"
        await asyncio.wait([asked])
        assert client.said() == ""


@pytest.mark.requirement("C5")
async def test_one_command_can_be_stopped_where_the_author_offers_it() -> None:
    async def act(turn: Turn) -> None:
        async with turn.tool("Serve", kind="execute") as call:
            slow = "import time; print('up', flush=True); time.sleep(600)"
            done = await call.terminal(sys.executable, "-c", slow, cancellable=True)
        await turn.say(f"{done.status} {done.text.strip()}")

    async with serving(acting(act)) as host:
        client = await host.client(2)
        session = await client.new("/")
        running = asyncio.create_task(client.prompt(session, "go"))
        await client.until(lambda: client.updates("terminal_output_chunk"))
        terminal = client.updates("terminal_update")[0]
        assert terminal["capabilities"] == {"cancel": {}}
        named = {"sessionId": session, "terminalId": terminal["terminalId"]}
        assert await client.ask("terminal/cancel", named) == {}
        assert await patiently(running) == "end_turn"
        assert client.said() == "143 up"
        (ended,) = of_kind(conversation(of_kind(told(client), "terminal_update")), "terminal_update")
        assert ended["exitStatus"] == {"signal": "15"} and not ended.get("capabilities")
        assert (await client.refusal("terminal/cancel", named)).code == -32602


# What a question shows


@VERSIONS
@pytest.mark.requirement("P13")
async def test_a_question_about_a_command_shows_the_command_and_says_why(version: int) -> None:
    command = "make clean && " + "x" * 500 + "; touch HIDDEN"

    async def act(turn: Turn) -> None:
        await turn.say(str(await turn.allow("Run this?", command=command, description="The build is stale.")))

    async with serving(acting(act)) as host:
        client = await host.client(version)
        session = await client.new()
        running = asyncio.create_task(client.prompt(session, "go"))
        asked = await client.question(1)
        assert faults(version, "client", "session/request_permission", "Request", asked.params) == []
        if version == 2:
            assert asked.params["description"] == "The build is stale."
            assert asked.params["subject"] == {"type": "command", "command": command, "cwd": CWD}
        else:
            call = asked.params["toolCall"]
            texts = [item["content"]["text"] for item in call["content"]]
            assert call["kind"] == "execute" and call["rawInput"] == {"command": command, "cwd": CWD}
            assert texts == ["The build is stale.", command, f"in {CWD}"]
        asked.select("allow_once")
        await patiently(running)
        assert client.said() == "True"


@VERSIONS
@pytest.mark.requirement("C8")
async def test_why_is_told_of_a_question_about_a_tool_call_too(version: int) -> None:
    async def act(turn: Turn) -> None:
        async with turn.tool("Clean", kind="execute", input={"command": "make clean"}) as call:
            await turn.allow("Clean up?", call, description="The build is stale.")

    async with serving(acting(act)) as host:
        client = await host.client(version)
        session = await client.new()
        running = asyncio.create_task(client.prompt(session, "go"))
        asked = await client.question(1)
        assert faults(version, "client", "session/request_permission", "Request", asked.params) == []
        call = asked.params["toolCall"] if version == 1 else asked.params["subject"]["toolCall"]
        assert call["title"] == "Clean" and call["rawInput"] == {"command": "make clean"}
        if version == 1:
            assert [item["content"]["text"] for item in call["content"]] == ["Clean up?", "The build is stale."]
        asked.select("reject_once")
        await patiently(running)


@pytest.mark.requirement("C8")
async def test_always_allowing_one_command_allows_no_other() -> None:
    async def act(turn: Turn) -> None:
        await turn.allow("Run this?", command="ls")
        await turn.say(str(await turn.allow("Run this?", command="rm -rf /")))

    async with serving(acting(act)) as host:
        client = await host.client(2)
        session = await client.new()
        running = asyncio.create_task(client.prompt(session, "go"))
        (await client.question(1)).select("allow_always")
        (await client.question(2)).select("reject_once")
        await patiently(running)
        assert client.said() == "False"


async def test_a_question_is_about_a_call_or_about_a_command() -> None:
    seen: list[str] = []

    async def act(turn: Turn) -> None:
        async with turn.tool("Clean") as call:
            with pytest.raises(UsageError, match="a tool call or about a command"):
                await turn.allow("Clean up?", call, command="make clean")
            seen.append("refused")

    async with serving(acting(act)) as host:
        client = await host.client(2)
        await client.prompt(await client.new(), "go")
    assert seen == ["refused"]


# Logging in


def agent_with_logins(keys: list[str]) -> Agent:
    agent = Agent("locked")

    @agent.auth("key", name="API key")
    async def use_key() -> None: ...

    @agent.auth("paste", name="Paste a key", description="In a terminal", terminal=True)
    async def paste() -> None: ...

    @agent.logged_in
    async def has_key() -> bool:
        return bool(keys)

    @agent.prompt
    async def answer(turn: Turn) -> None: ...

    return agent


@VERSIONS
@pytest.mark.requirement("C12")
async def test_a_login_in_a_terminal_is_offered_to_clients_that_have_one(version: int) -> None:
    keys: list[str] = []
    id_ = "id" if version == 1 else "methodId"
    terminal: dict[str, Any] = {"auth": {"terminal": True if version == 1 else {}}}
    async with serving(agent_with_logins(keys)) as host:
        answer = await host.connect(version).initialize()
        assert [method[id_] for method in answer["authMethods"]] == ["key"]
        client = host.connect(version)
        answer = await client.initialize(**terminal)
        assert faults(version, "agent", "initialize", "Response", answer) == []
        assert [method[id_] for method in answer["authMethods"]] == ["key", "paste"]
        method = answer["authMethods"][1]
        assert method["type"] == "terminal" and method["args"] == ["--login", "paste"]
        login = "authenticate" if version == 1 else "auth/login"
        assert (await client.refusal(login, {"methodId": "paste"})).code == -32602
        assert (await client.refusal("session/new", {"cwd": CWD, "mcpServers": []})).code == -32000
        keys.append("pasted by the same agent in a terminal")
        session = await client.new()
        assert await client.prompt(session, "hello") == "end_turn"


@VERSIONS
@pytest.mark.requirement("C12")
async def test_a_client_can_ask_whether_the_user_is_logged_in(version: int) -> None:
    keys: list[str] = []
    out = "logout" if version == 1 else "auth/logout"

    async with serving(agent_with_logins(keys)) as host:
        client = host.connect(version)
        answer = await client.initialize()
        capabilities = answer["agentCapabilities" if version == 1 else "capabilities"]
        assert capabilities["auth"]["status"] == {}

        async def state() -> str:
            status = await client.ask("auth/status", {})
            assert faults(version, "agent", "auth/status", "Response", status) == []
            return status["state"]

        assert await state() == "unauthenticated"
        await client.ask("authenticate" if version == 1 else "auth/login", {"methodId": "key"})
        assert await state() == "authenticated"
        await client.ask(out, {})
        assert await state() == "unauthenticated"
        keys.append("from elsewhere")
        assert await state() == "authenticated"


@VERSIONS
@pytest.mark.requirement("C12")
async def test_an_agent_without_logins_needs_none(version: int) -> None:
    async with serving(acting(lambda turn: turn.say("hello"))) as host:
        client = host.connect(version)
        answer = await client.initialize()
        assert "auth" not in answer["agentCapabilities" if version == 1 else "capabilities"]
        assert await client.ask("auth/status", {}) == {"state": "not_required"}


@VERSIONS
async def test_an_agent_lets_its_client_choose_where_its_model_is(version: int) -> None:
    agent = acting(lambda turn: turn.say("hello"))
    providers: dict[str, Any] = {"providerId": "main", "supported": ["openai"], "required": False, "current": None}

    @agent.on_request("providers/list")
    async def list_providers(params: Any, client: object) -> object:
        return {"providers": [providers]}

    @agent.on_request("providers/set")
    async def set_provider(params: Any, client: object) -> object:
        if params["providerId"] != "main":
            raise InvalidParams("There is only one, called main")
        providers["current"] = {"apiType": params["apiType"], "baseUrl": params["baseUrl"]}
        return {}

    @agent.on_request("providers/disable")
    async def disable(params: Any, client: object) -> object:
        providers["current"] = None
        return {}

    async with serving(agent) as host:
        client = host.connect(version)
        answer = await client.initialize()
        assert faults(version, "agent", "initialize", "Response", answer) == []
        assert answer["agentCapabilities" if version == 1 else "capabilities"]["providers"] == {}
        chosen = {"providerId": "main", "apiType": "openai", "baseUrl": "http://localhost:1/v1"}
        assert await client.ask("providers/set", chosen) == {}
        listed = await client.ask("providers/list", {})
        assert faults(version, "agent", "providers/list", "Response", listed) == []
        assert listed["providers"][0]["current"]["baseUrl"] == "http://localhost:1/v1"
        assert (await client.refusal("providers/set", {**chosen, "providerId": "other"})).code == -32602
        assert await client.ask("providers/disable", {"providerId": "main"}) == {}
