"""Who asks: several principals, agents and connections on one host and one store (F1 to F6)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from core.tests.support.acp import CWD, Client, conversation, serving
from core.tests.support.mcp import wire
from holdfast import Agent, Session, Turn
from holdfast.errors import McpError

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("version", [1, 2])
PAIRS = pytest.mark.parametrize(("version", "other_version"), [(1, 1), (1, 2), (2, 1), (2, 2)])


def talker(name: str = "talker") -> Agent:
    """An agent that tells what it works with: its roots, servers, memory, and what it may."""
    agent = Agent(name)
    agent.modes({"ask": "Ask", "act": "Act"}, default="ask")
    gates: dict[str, asyncio.Event] = {}

    @agent.prompt
    async def answer(turn: Turn) -> None:
        verb, _, rest = turn.text.partition(" ")
        match verb:
            case "roots":
                await turn.say(json.dumps(turn.session.roots))
            case "servers":
                states = await turn.session.mcp.ready()
                await turn.say(json.dumps(sorted(status.name for status in states)))
            case "call":
                try:
                    result = await turn.call_tool(rest, "echo", {"text": f"from {rest}"})
                    await turn.say(result.text)
                except McpError as e:
                    await turn.say(f"none: {type(e).__name__}")
            case "read":
                await turn.say(await turn.files.read_text(rest))
            case "editor":
                offers = sorted(turn.client.offers) if turn.client else []
                text = await turn.client.read_text(f"{CWD}/x") if turn.client and "read" in offers else ""
                await turn.say(json.dumps([offers, text]))
            case "remember":
                turn.session.state["word"] = rest
                await turn.keep({"word": rest})
            case "memory":
                await turn.say(json.dumps([turn.session.state.get("word"), await turn.session.kept()]))
            case "may":
                await turn.say("yes" if await turn.allow(f"May I {rest}?", remember=rest) else "no")
            case "wait":
                await turn.say("waiting")
                gates[rest] = asyncio.Event()
                await gates[rest].wait()
                await turn.say(json.dumps(turn.session.roots))
            case "open":
                gates[rest].set()
            case _:
                await turn.say(turn.text)

    @agent.on_notification("_gate")
    async def open_gate(params: Any, client: object) -> None:
        gates[params["gate"]].set()

    return agent


async def told(client: Client, session: str, text: str) -> str:
    """Prompt, and return what was answered."""
    client.forget()
    assert await client.prompt(session, text) == "end_turn"
    return client.said()


async def heard(client: Client, text: str) -> None:
    await client.until(lambda: text in client.said())


# F1: a session belongs to a principal and to an agent

METHODS = ["session/load", "session/resume", "session/fork", "session/status", "session/set_title", "session/prompt"]


@pytest.mark.requirement("F1", "P12")
@VERSIONS
@pytest.mark.parametrize("method", [*METHODS, "session/archive", "session/unarchive", "session/set_config_option"])
@pytest.mark.parametrize("foreign", ["principal", "agent"])
async def test_what_belongs_to_others_is_refused_as_what_is_not_there(
    version: int, method: str, foreign: str, tmp_path: Path
) -> None:
    store = tmp_path / "store.db"
    async with serving(talker("one"), store) as ours, serving(talker("two"), store) as others:
        mine = await ours.client(version, "anna")
        session = await mine.new()
        await mine.prompt(session, "hello")
        stranger = await (ours.client(version, "bert") if foreign == "principal" else others.client(version, "anna"))
        more: dict[str, Any] = {
            "cwd": CWD, "mcpServers": [], "title": "t", "prompt": [{"type": "text", "text": "x"}],
            "configId": "mode", "value": "act", "type": "id",
        }  # fmt: skip
        refused = await stranger.refusal(method, {"sessionId": session, **more})
        absent = await stranger.refusal(method, {"sessionId": "sess_absent", **more})
        assert refused.code == absent.code == -32002
        assert refused.message.replace(session, "sess_absent") == absent.message
        assert refused.data == {"sessionId": session} and absent.data == {"sessionId": "sess_absent"}
        assert await told(mine, session, "still mine") == "still mine"


@pytest.mark.requirement("F1", "P12")
@VERSIONS
@pytest.mark.parametrize("foreign", ["principal", "agent"])
async def test_others_neither_list_nor_delete_nor_close_nor_cancel_it(
    version: int, foreign: str, tmp_path: Path
) -> None:
    store = tmp_path / "store.db"
    async with serving(talker("one"), store) as ours, serving(talker("two"), store) as others:
        mine = await ours.client(version, "anna")
        session = await mine.new()
        await mine.prompt(session, "hello")
        stranger = await (ours.client(version, "bert") if foreign == "principal" else others.client(version, "anna"))
        running = mine.begin_prompt(session, "wait gate")
        await heard(mine, "waiting")
        assert (await stranger.ask("session/list", {}))["sessions"] == []
        assert await stranger.ask("session/delete", {"sessionId": session}) == {}
        assert await stranger.ask("session/close", {"sessionId": session}) == {}
        stranger.tell("session/cancel", {"sessionId": session})
        await stranger.settle()
        mine.tell("_gate", {"gate": "gate"})
        await running
        await heard(mine, CWD)
        assert [it["sessionId"] for it in (await mine.ask("session/list", {}))["sessions"]] == [session]


# F2: what one agent was allowed holds for that agent


@pytest.mark.requirement("F2", "P13")
async def test_another_agent_on_the_same_store_has_sessions_rights_and_memory_of_its_own(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    async with serving(talker("one"), store) as ours:
        client = await ours.client()
        session = await client.new()
        client.answers["session/request_permission"] = lambda _: {
            "outcome": {"outcome": "selected", "optionId": "allow_always"}
        }
        assert await told(client, session, "may write") == "yes"
        await client.prompt(session, "remember secret")
    async with serving(talker("two"), store) as others:
        client = await others.client()
        assert (await client.ask("session/list", {}))["sessions"] == []
        fresh = await client.new()
        assert await told(client, fresh, "memory") == "[null, []]"
        asking = client.begin_prompt(fresh, "may write")
        (await client.question()).select("reject_once")
        await asking
    async with serving(talker("one"), store) as ours:
        client = await ours.client()
        await client.load(session)
        assert await told(client, session, "may write") == "yes"  # and it was not asked again
        assert await told(client, session, "memory") == '["secret", [{"word": "secret"}]]'


# F3: login, roots, MCP servers and services belong to a connection


@pytest.mark.requirement("F3")
@PAIRS
async def test_one_clients_login_logs_nobody_else_in(version: int, other_version: int) -> None:
    agent = talker()

    @agent.auth("key", name="Key")
    async def log_in() -> None: ...

    methods = {1: "authenticate", 2: "auth/login"}
    async with serving(agent) as host:
        first, second = await host.client(version), await host.client(other_version)
        await first.ask(methods[version], {"methodId": "key"})
        session = await first.new()
        params: dict[str, Any] = {"cwd": CWD, "mcpServers": []}
        assert (await second.refusal("session/new", params)).code == -32000
        assert (await second.refusal("session/load", {**params, "sessionId": session})).code == -32000
        await second.ask(methods[other_version], {"methodId": "key"})
        await second.load(session)
        await first.ask({1: "logout", 2: "auth/logout"}[version])
        assert await told(second, session, "hello") == "hello"
        assert (await first.refusal("session/new", params)).code == -32000


@pytest.mark.requirement("F3", "B3")
@PAIRS
async def test_a_turn_works_with_the_roots_of_the_client_that_prompted_it(version: int, other_version: int) -> None:
    async with serving(talker()) as host:
        first, second = await host.client(version), await host.client(other_version)
        session = await first.new(additionalDirectories=["/one"])
        running = first.begin_prompt(session, "wait gate")
        await heard(first, "waiting")
        await second.load(session, additionalDirectories=["/two", "/three"])
        first.tell("_gate", {"gate": "gate"})
        await running
        await heard(first, json.dumps([CWD, "/one"]))  # a load by another changed nothing for the turn that ran
        assert json.loads(await told(second, session, "roots")) == [CWD, "/two", "/three"]
        assert json.loads(await told(first, session, "roots")) == [CWD, "/one"]
        await first.load(session)
        assert json.loads(await told(first, session, "roots")) == [CWD]
        assert json.loads(await told(second, session, "roots")) == [CWD, "/two", "/three"]


@pytest.mark.requirement("F3", "P9")
async def test_files_of_one_clients_directories_are_not_anothers(tmp_path: Path) -> None:
    project, extra = tmp_path / "project", tmp_path / "extra"
    for directory in (project, extra):
        directory.mkdir()
    (extra / "secret.txt").write_text("secret")
    async with serving(talker()) as host:
        first, second = await host.client(), await host.client()
        session = await first.new(str(project), additionalDirectories=[str(extra)])
        await second.load(session, str(project))
        assert await told(first, session, f"read {extra / 'secret.txt'}") == "secret"
        refused = await second.refusal(
            "session/prompt",
            {"sessionId": session, "prompt": [{"type": "text", "text": f"read {extra / 'secret.txt'}"}]},
        )
        assert refused.code == -32603


@pytest.mark.requirement("F3", "E3", "E6")
async def test_each_client_has_its_own_mcp_servers(tmp_path: Path) -> None:
    async with serving(talker()) as host:
        first, second = await host.client(), await host.client()
        session = await first.new(str(tmp_path), mcpServers=[wire(name="ours")])
        assert await told(first, session, "call ours") == "from ours"
        await second.load(session, str(tmp_path), mcpServers=[wire(name="theirs")])
        assert json.loads(await told(second, session, "servers")) == ["theirs"]
        assert json.loads(await told(first, session, "servers")) == ["ours"]
        assert await told(second, session, "call theirs") == "from theirs"
        assert (await told(second, session, "call ours")).startswith("none")
        await second.ask("session/close", {"sessionId": session})
        assert await told(first, session, "call ours") == "from ours"


@pytest.mark.requirement("F3", "C11")
async def test_the_editor_that_prompted_is_asked_for_files_and_no_other() -> None:
    async with serving(talker()) as host:
        able = await host.client(1, fs={"readTextFile": True})
        unable = await host.client(1)
        able.answers["fs/read_text_file"] = lambda _: {"content": "from the editor"}
        session = await able.new()
        await unable.load(session)
        assert json.loads(await told(able, session, "editor")) == [["read"], "from the editor"]
        assert json.loads(await told(unable, session, "editor")) == [[], ""]


# F4: all see one order


@pytest.mark.requirement("F4")
@PAIRS
async def test_two_clients_watch_and_prompt_one_session_and_see_one_order(version: int, other_version: int) -> None:
    async with serving(talker()) as host:
        first, second = await host.client(version), await host.client(other_version)
        session = await first.new()
        await second.load(session)
        prompts = [client.begin_prompt(session, f"{name}{n}") for n in range(3) for client, name in
                   ((first, "a"), (second, "b"))]  # fmt: skip
        await asyncio.gather(*prompts)
        answers = {f"{name}{n}" for n in range(3) for name in "ab"}
        for client in (first, second):
            await client.until(lambda client=client: all(answer in client.said() for answer in answers))
            assert client.said() == first.said()
        spoken = second.updates("user_message", "user_message_chunk")
        assert {"a0", "a1", "a2"} <= {_text(it) for it in spoken}  # another client's prompts are seen as messages
        loaded = await host.client(2)
        replay = conversation(await loaded.replayed(session))
        assert "".join(_text(it) for it in replay if it["sessionUpdate"] == "agent_message") == first.said()
        ids = {it["messageId"] for it in replay if it["sessionUpdate"] == "user_message"}
        assert {it["messageId"] for it in spoken} <= ids


def _text(update: dict[str, Any]) -> str:
    content: Any = update["content"]
    blocks = cast("list[dict[str, str]]", content if isinstance(content, list) else [content])
    return "".join(block["text"] for block in blocks)


@pytest.mark.requirement("B13", "F4")
@PAIRS
async def test_closing_detaches_one_client_and_cancels_only_its_own_prompts(version: int, other_version: int) -> None:
    async with serving(talker()) as host:
        first, second = await host.client(version), await host.client(other_version)
        session = await first.new()
        await second.load(session)
        running = second.begin_prompt(session, "wait gate")
        await heard(second, "waiting")
        waiting = first.begin_prompt(session, "never")
        await first.settle()
        await first.ask("session/close", {"sessionId": session})
        if version == 1:
            assert (await waiting)["stopReason"] == "cancelled"
        else:
            with pytest.raises(Exception, match="32800"):
                await waiting
        first.forget()
        second.tell("_gate", {"gate": "gate"})
        await running
        await heard(second, CWD)
        assert await told(second, session, "still here") == "still here"
        assert not first.updates() and "never" not in second.said()


@pytest.mark.requirement("B13", "F4")
async def test_closing_while_ones_own_turn_runs_ends_that_turn_for_all() -> None:
    async with serving(talker()) as host:
        first, second = await host.client(1), await host.client(2)
        session = await first.new()
        await second.resume(session)
        running = first.begin_prompt(session, "wait gate")
        await heard(first, "waiting")
        await first.ask("session/close", {"sessionId": session})
        assert (await running)["stopReason"] == "cancelled"
        await second.until(lambda: second.states()[-1:] == ["cancelled"])
        assert await told(second, session, "go on") == "go on"


@pytest.mark.requirement("B13", "B16")
@pytest.mark.parametrize("method", ["session/archive", "session/delete"])
async def test_archive_and_delete_end_it_for_all_and_say_so(method: str) -> None:
    async with serving(talker()) as host:
        first, second = await host.client(1), await host.client(2)
        session = await first.new()
        await second.resume(session)
        running = second.begin_prompt(session, "wait gate")
        await running
        await heard(second, "waiting")
        await first.ask(method, {"sessionId": session})
        await second.until(lambda: second.updates("notice"))
        assert "cancelled" in second.states()
        assert method.removeprefix("session/") in second.updates("notice")[0]["title"]
        assert not first.updates("notice")


# Questions


@pytest.mark.requirement("F5", "C8")
@PAIRS
async def test_the_first_valid_answer_counts_and_the_others_are_withdrawn(version: int, other_version: int) -> None:
    async with serving(talker()) as host:
        first, second = await host.client(version), await host.client(other_version)
        session = await first.new()
        await second.load(session)
        running = first.begin_prompt(session, "may write")
        ours, theirs = await first.question(), await second.question()
        theirs.select("nonsense")
        await second.settle()
        assert not ours.withdrawn
        ours.select("allow_once")
        await running
        await heard(first, "yes")
        third, fourth = first.begin_prompt(session, "may run"), await second.question(2)
        mine = await first.question(2)
        fourth.select("reject_once")
        await third
        await first.until(lambda: mine.withdrawn)
        await heard(second, "no")


@pytest.mark.requirement("F5")
@PAIRS
async def test_a_client_that_attaches_gets_the_open_question_after_its_answer(version: int, other_version: int) -> None:
    async with serving(talker()) as host:
        first, second = await host.client(version), await host.client(other_version)
        session = await first.new()
        running = first.begin_prompt(session, "may write")
        await first.question()
        await second.load(session)
        asked = await second.question()
        answered = next(n for n, it in enumerate(second.heard) if "method" not in it and n > 0)
        put = next(n for n, it in enumerate(second.heard) if it.get("id") == asked.id and "method" in it)
        assert answered < put
        asked.select("allow_once")
        await running
        await heard(first, "yes")


@pytest.mark.requirement("F5")
async def test_a_question_outlives_the_connection_that_saw_it() -> None:
    async with serving(talker()) as host:
        first = await host.client(2)
        session = await first.new()
        await first.begin_prompt(session, "may write")
        await first.question()
        await host.disconnect(first)
        second = await host.client(2)
        await second.resume(session)
        assert second.states() == ["requires_action"]
        (await second.question()).select("allow_once")
        await heard(second, "yes")


# Options and commands of one session (D1)


@pytest.mark.requirement("D1", "C10")
@VERSIONS
async def test_options_and_commands_may_differ_from_session_to_session_and_change_while_it_lives(version: int) -> None:
    agent = talker("various")

    async def shout(turn: Turn) -> None:
        await turn.say(turn.text.upper())

    @agent.on_open
    async def prepare(session: Session) -> None:
        if session.cwd == "/special":
            await session.models({"s": "Small", "l": "Large"}, default="s")
            await session.command("shout", "Say it loud", shout)
            await session.remove_option("mode")

    @agent.command("grow", "Offer more")
    async def grow(turn: Turn) -> None:
        await turn.session.option("speed", name="Speed", values={"1": "Slow", "2": "Fast"}, default="1")
        await turn.session.command("whisper", "Say it softly", shout)

    def option_ids(options: list[dict[str, Any]]) -> list[str]:
        return [it.get("id") or it["configId"] for it in options]

    async with serving(agent) as host:
        client = await host.client(version)
        plain = await client.ask("session/new", {"cwd": CWD, "mcpServers": []})
        special = await client.ask("session/new", {"cwd": "/special", "mcpServers": []})
        assert option_ids(plain["configOptions"]) == ["mode"]
        assert option_ids(special["configOptions"]) == ["model"]
        assert ("modes" in special, "models" in special) == (False, version == 1)
        session = special["sessionId"]
        await client.ask("session/set_config_option", {"sessionId": session, "configId": "model", "value": "l"})
        refusal = {"sessionId": plain["sessionId"], "configId": "model", "value": "l"}
        assert (await client.refusal("session/set_config_option", refusal)).code == -32602
        assert await told(client, session, "/shout hello") == "HELLO"
        assert await told(client, plain["sessionId"], "/shout hello") == "/shout hello"
        await client.prompt(session, "/grow")
        await client.until(lambda: client.updates("available_commands_update", session=session))
        names = [it["name"] for it in client.updates("available_commands_update")[-1]["availableCommands"]]
        assert names == ["grow", "shout", "whisper"]
        assert option_ids(client.updates("config_option_update")[-1]["configOptions"]) == ["model", "speed"]


# What the protocol does not define has a way through, both ways


@VERSIONS
@pytest.mark.requirement("A3")
async def test_requests_and_notifications_of_the_authors_own_pass_both_ways(version: int) -> None:
    agent = talker("custom")

    @agent.on_request("_weather/refresh")
    async def refresh(params: Any, client: Any) -> object:
        return {"fresh": params["place"], "for": client.info.name}

    @agent.command("ask_client", "Ask the client something of its own")
    async def ask_client(turn: Turn) -> None:
        assert turn.client is not None
        answer = await turn.client.request("_editor/mood", {"why": "curious"})
        turn.client.notify("_editor/noted", {"mood": answer["mood"]})
        await turn.say(answer["mood"])

    async with serving(agent) as host:
        client = await host.client(version)
        client.answers["_editor/mood"] = lambda params: {"mood": f"good, {params['why']}"}
        assert await client.ask("_weather/refresh", {"place": "Rome"}) == {"fresh": "Rome", "for": "test"}
        assert (await client.refusal("_weather/other", {})).code == -32601
        session = await client.new()
        assert await told(client, session, "/ask_client") == "good, curious"
        assert any(it.get("method") == "_editor/noted" for it in client.heard)
