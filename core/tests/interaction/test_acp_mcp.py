"""MCP servers that clients give to sessions, over both versions (E1 to E6, P10)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import CWD, conversation, running, serving
from core.tests.support.links import PATIENCE
from core.tests.support.mcp import all_dead, files_with, marked, marks, wire, written
from core.tests.support.mcp_web import web
from core.tests.support.wire import wait_for_death
from holdfast import Agent, Session, Turn
from holdfast.engine import EngineLimits
from holdfast.errors import McpError

if TYPE_CHECKING:
    from core.tests.support.acp import Client

VERSIONS = pytest.mark.parametrize("version", [1, 2])

SECRET = "hunter2-planted-secret"

NOTICES: dict[str, Any] = {"notices": {}}


def caller() -> Agent:
    """An agent that calls the tool a prompt names: `SERVER TOOL [JSON]`; `servers` lists them."""
    agent = Agent("caller")

    @agent.prompt
    async def call(turn: Turn) -> None:
        if turn.text == "servers":
            states = await turn.session.mcp.ready()
            await turn.say(json.dumps([[it.name, it.state, it.reason] for it in states]))
            return
        server, tool, arguments = (*turn.text.split(maxsplit=2), "{}")[:3]
        try:
            await turn.say((await turn.call_tool(server, tool, json.loads(arguments))).text)
        except McpError as e:
            await turn.say(f"{type(e).__name__}: {e}")

    return agent


async def said(client: Client, session: str, prompt: str) -> str:
    """Prompt, and give what was answered."""
    client.forget()
    assert await client.prompt(session, prompt) == "end_turn"
    return client.said()


async def new(client: Client, tmp_path: Path, *servers: dict[str, Any]) -> str:
    return await client.new(str(tmp_path), mcpServers=list(servers))


# What is advertised, and what is refused


@pytest.mark.requirement("E1")
async def test_what_can_be_connected_is_advertised() -> None:
    async with serving(caller()) as host:
        one = await host.connect(1).initialize()
        assert one["agentCapabilities"]["mcpCapabilities"] == {"http": True, "sse": True}
        two = await host.connect(2).initialize()
        assert two["capabilities"]["session"]["mcp"] == {"stdio": {}, "http": {}}


@pytest.mark.requirement("E1")
@VERSIONS
@pytest.mark.parametrize("kind", ["_custom", "acp", "sse"])
async def test_a_type_that_is_not_advertised_is_refused_and_leaves_no_session(version: int, kind: str) -> None:
    async with serving(caller()) as host:
        client = await host.client(version)
        session = await client.new()
        server: dict[str, Any] = {"type": kind, "name": "it", "url": "http://127.0.0.1:9/sse", "headers": []}
        params: dict[str, Any] = {"cwd": CWD, "mcpServers": [server]}
        if (version, kind) == (1, "sse"):
            assert await client.ask("session/new", params)
            return
        for method in ("session/new", "session/load", "session/resume", "session/fork"):
            refused = await client.refusal(method, {"sessionId": session, **params})
            assert refused.code == -32602
            assert kind in refused.message


@pytest.mark.requirement("E1")
async def test_version_2_wants_a_type() -> None:
    async with serving(caller()) as host:
        client = await host.client(2)
        assert (await client.refusal("session/new", {"cwd": CWD, "mcpServers": [wire()]})).code == -32602


# Using them


@pytest.mark.requirement("E2", "E4")
@VERSIONS
async def test_a_tool_call_is_shown_as_one_of_the_agents_own(version: int, tmp_path: Path) -> None:
    async with serving(caller()) as host:
        client = await host.client(version)
        session = await new(client, tmp_path, wire(version=version))
        assert await said(client, session, 'it echo {"text": "hi"}') == "hi"
        (call,) = [it for it in conversation(client.updates()) if it.get("toolCallId")]
        assert call["title"] == "it: echo"
        assert call["status"] == "completed"
        assert call["rawInput"] == {"text": "hi"}
        assert call["content"] == [{"type": "content", "content": {"type": "text", "text": "hi"}}]


@pytest.mark.requirement("E4")
@VERSIONS
async def test_progress_is_shown_while_it_runs(version: int, tmp_path: Path) -> None:
    async with serving(caller()) as host:
        client = await host.client(version)
        session = await new(client, tmp_path, wire(version=version))
        assert await said(client, session, "it progress") == "done"
        titles = [it["title"] for it in client.updates("tool_call_update") if "title" in it]
        assert "it: progress (1/3 step 1)" in titles
        assert titles[-1] == "it: progress"


@pytest.mark.requirement("E4")
@VERSIONS
async def test_a_call_is_cancelled_with_its_turn(version: int, tmp_path: Path) -> None:
    async with serving(caller()) as host:
        client = await host.client(version)
        session = await new(client, tmp_path, wire(version=version, MARKS=str(tmp_path / "marks")))
        prompt = asyncio.ensure_future(client.prompt(session, "it wait"))
        await marked(tmp_path / "marks", 1)
        await written(tmp_path / "marks", "\n0\n")
        client.tell("session/cancel", {"sessionId": session})
        assert await prompt == "cancelled"
        await written(tmp_path / "marks", "\n-")  # over there too
        assert await said(client, session, 'it echo {"text": "still there"}') == "still there"


@pytest.mark.requirement("E3")
@VERSIONS
async def test_a_server_that_fails_is_told_to_the_client_and_the_agent_goes_on(version: int, tmp_path: Path) -> None:
    async with serving(caller()) as host:
        client = await host.client(version, session=NOTICES)
        bad = wire("exit", name="bad", version=version, KEY=SECRET)
        session = await new(client, tmp_path, bad, wire(version=version))
        (name, state, reason), (_, other, _) = json.loads(await said(client, session, "servers"))
        assert (name, state, other) == ("bad", "failed", "ready")
        assert "the key [hidden] does not fit" in reason
        await client.until(lambda: bool(client.updates("notice")))
        (notice,) = client.updates("notice")
        assert notice["title"] == "MCP server bad is not available"
        assert "does not fit" in notice["description"]
        assert (await said(client, session, "bad echo")).startswith("ServerUnavailable")
        client.forget()
        await client.resume(session, str(tmp_path), mcpServers=[bad, wire(version=version)])
        await client.until(lambda: bool(client.updates("notice")))  # also to who comes later


@VERSIONS
async def test_a_servers_question_is_put_to_the_user_of_the_turn(version: int, tmp_path: Path) -> None:
    async with serving(caller()) as host:
        client = await host.client(version, elicitation={"form": {}})
        client.answers["elicitation/create"] = lambda _: {"action": "accept", "content": {"name": "Ada"}}
        session = await new(client, tmp_path, wire(version=version))
        answer = json.loads(await said(client, session, "it elicit"))
        assert answer == {"action": "accept", "content": {"name": "Ada"}}
        plain = await host.client(version)
        session = await new(plain, tmp_path, wire(version=version))
        assert "not supported" in await said(plain, session, "it elicit")


@VERSIONS
async def test_a_server_sends_the_user_to_an_address_where_the_client_can_show_one(
    version: int, tmp_path: Path
) -> None:
    async with serving(caller()) as host:
        client = await host.client(version, elicitation={"url": {}})
        asked: list[Any] = []
        client.answers["elicitation/create"] = lambda params: asked.append(params) or {"action": "accept"}
        session = await new(client, tmp_path, wire(version=version))
        assert json.loads(await said(client, session, "it visit"))["action"] == "accept"
        address = {"url": "https://a.test/sign-in", "elicitationId": "visit-1"}
        assert asked == [{"sessionId": session, "mode": "url", "message": "Sign in", **address}]
        assert json.loads(await said(client, session, "it elicit")) == {"action": "decline"}


@VERSIONS
async def test_an_address_is_declined_where_the_client_shows_only_forms(version: int, tmp_path: Path) -> None:
    async with serving(caller()) as host:
        client = await host.client(version, elicitation={"form": {}})
        session = await new(client, tmp_path, wire(version=version))
        assert json.loads(await said(client, session, "it visit")) == {"action": "decline"}
        assert client.asked == []


async def test_what_a_server_may_ask_is_what_the_client_can_show_that_has_the_session_now(tmp_path: Path) -> None:
    async with serving(caller()) as host:
        one, two = await host.client(1, elicitation={"form": {}}), await host.client(2, elicitation={"url": {}})
        two.answers["elicitation/create"] = lambda _: {"action": "accept"}
        session = await new(one, tmp_path, wire())
        assert json.loads(await said(one, session, "it visit")) == {"action": "decline"}
        await two.resume(session, str(tmp_path), mcpServers=[wire(version=2)])
        assert json.loads(await said(two, session, "it visit"))["action"] == "accept"


@VERSIONS
async def test_the_roots_of_a_server_are_the_sessions(version: int, tmp_path: Path) -> None:
    other, heard = tmp_path / "other", tmp_path / "heard"
    async with serving(caller()) as host:
        client = await host.client(version)
        server = wire(version=version, HEARD=str(heard))
        session = await client.new(str(tmp_path), mcpServers=[server], additionalDirectories=[str(other)])
        roots = json.loads(await said(client, session, "it roots"))["roots"]
        assert [it["uri"] for it in roots] == [tmp_path.as_uri(), other.as_uri()]
        await client.resume(session, str(tmp_path), mcpServers=[server])
        await written(heard, "notifications/roots/list_changed")
        roots = json.loads(await said(client, session, "it roots"))["roots"]
        assert [it["uri"] for it in roots] == [tmp_path.as_uri()]


async def test_hooks_have_the_servers_too(tmp_path: Path) -> None:
    agent = caller()
    seen: list[str] = []

    @agent.on_open
    async def opened(session: Session) -> None:
        seen.extend(it.name for it in await session.mcp.tools())

    async with serving(agent) as host:
        client = await host.client()
        await new(client, tmp_path, wire())
        assert "echo" in seen


# Which servers a session has


@pytest.mark.requirement("E6")
@VERSIONS
async def test_two_sessions_never_share_a_server(version: int, tmp_path: Path) -> None:
    async with serving(caller()) as host:
        client = await host.client(version)
        file = tmp_path / "marks"
        server = wire(version=version, MARKS=str(file))
        first = await new(client, tmp_path, server)
        await said(client, first, "it echo")
        forked = {"sessionId": first, "cwd": str(tmp_path), "mcpServers": [server]}
        fork = (await client.ask("session/fork", forked))["sessionId"]
        second = await new(client, tmp_path, server)
        for session in (fork, second):
            await said(client, session, "it echo")
        assert len(set(marks(file))) == 3
        assert "died" not in await said(client, first, "it echo")
        assert (await said(client, second, "it crash")).startswith("ServerUnavailable")
        assert await said(client, first, 'it echo {"text": "untouched"}') == "untouched"
        assert len(set(marks(file))) == 3


@pytest.mark.requirement("E5", "E6")
@VERSIONS
async def test_what_a_client_names_when_it_comes_back_is_the_whole_list(version: int, tmp_path: Path) -> None:
    async with serving(caller()) as host:
        client = await host.client(version)
        file = tmp_path / "marks"
        session = await new(client, tmp_path, wire(version=version, MARKS=str(file)))
        await said(client, session, "it echo")
        await client.resume(session, str(tmp_path), mcpServers=[wire(name="other", version=version)])
        assert all_dead(file) == 1
        assert [it[0] for it in json.loads(await said(client, session, "servers"))] == ["other"]
        await client.resume(session, str(tmp_path), mcpServers=[])
        assert json.loads(await said(client, session, "servers")) == []


# Ending


@pytest.mark.requirement("B13", "B14", "E5")
@VERSIONS
@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_closing_and_deleting_stop_the_servers(version: int, method: str, tmp_path: Path) -> None:
    async with serving(caller()) as host:
        client = await host.client(version)
        file = tmp_path / "marks"
        session = await new(client, tmp_path, wire("deaf", "family", version=version, MARKS=str(file)))
        await said(client, session, "it echo")
        await client.ask(method, {"sessionId": session})
        assert all_dead(file) == 4


@pytest.mark.requirement("B18", "E5")
async def test_an_idle_session_stops_its_servers_and_starts_them_when_it_is_revived(tmp_path: Path) -> None:
    async with serving(caller(), limits=EngineLimits(idle=0.1)) as host:
        file = tmp_path / "marks"
        client, other = await host.client(), await host.client()
        session = await new(client, tmp_path, wire(MARKS=str(file)))
        await said(client, session, "it echo")
        await other.ask("session/archive", {"sessionId": session})  # to `client` it is as if it were idle
        assert all_dead(file) == 1
        assert await said(client, session, 'it echo {"text": "again"}') == "again"
        assert len(marks(file)) == 2
        await host.disconnect(client)
        await asyncio.to_thread(wait_for_death, marks(file))  # it takes a sweep
        assert all_dead(file) == 2


# Secrets


@pytest.mark.requirement("E6", "P10")
@VERSIONS
async def test_secrets_are_in_no_file_log_or_message(version: int, tmp_path: Path) -> None:
    log, store = tmp_path / "log", tmp_path / "store.db"
    arguments = ("demo", "--log-level", "debug", "--log-file", str(log))
    with web() as good, web(refuses=True) as bad:
        async with running(store, *arguments, version=version, session=NOTICES) as client:
            servers = [
                wire(name="it", version=version, KEY=SECRET),
                wire("exit", name="exits", version=version, KEY=SECRET),
                remote("http", "web", good.url(f"mcp?key={SECRET}")),
                remote("http", "refusing", bad.url(f"mcp?key={SECRET}")),
                remote("http", "nobody", f"http://me:{SECRET}@127.0.0.1:9/mcp"),
            ]
            if version == 1:
                servers.append(remote("sse", "old", good.url(f"sse?key={SECRET}")))
                servers.append(remote("sse", "old-refusing", bad.url(f"sse?key={SECRET}")))
            session = await new(client, tmp_path, *servers)
            calls = ["it crash", "it refuse", "it fail", "exits echo", "web tell", "refusing echo", "nobody echo"]
            for prompt in ("", *calls, *(["old tell", "old-refusing echo"] if version == 1 else [])):
                client.forget()
                await client.prompt(session, f"/mcp {prompt}")
                assert client.said()
                assert SECRET not in json.dumps(client.heard)
                assert "tell" not in prompt or "I was told [hidden]" in client.said()
            await client.ask("session/fork", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": servers})
            await client.refusal("session/new", {"cwd": str(tmp_path), "mcpServers": [{**servers[0], "args": SECRET}]})
            assert SECRET not in json.dumps(client.heard)
        for it in (*good.seen, *bad.seen):
            assert it.headers["authorization"] == f"Bearer {SECRET}"
        assert {it.method for it in good.seen} >= {"GET", "POST", "DELETE"}
    assert files_with(SECRET, tmp_path) == []
    for name in ("exits", "refusing", "nobody"):
        # Where the author asked for it, and in the log beside the store that `holdfast logs` shows.
        assert {log, tmp_path / "store.db.log"} == set(files_with(f"MCP server {name} failed", tmp_path))


def remote(kind: str, name: str, url: str) -> dict[str, Any]:
    headers = [{"name": "Authorization", "value": f"Bearer {SECRET}"}]
    return {"type": kind, "name": name, "url": url, "headers": headers}


# Loading the SDK


def test_the_loop_goes_on_while_the_sdk_is_loaded() -> None:
    script = f"""
import asyncio, sys
sys.path.insert(0, {str(Path.cwd())!r})
from core.tests.support.mcp import hostile, toolbox

async def main():
    assert "mcp" not in sys.modules
    seen = 0
    async with toolbox(hostile()) as box:
        while box.servers[0].state == "connecting":
            seen += "mcp" in sys.modules and not hasattr(sys.modules.get("holdfast.mcp.sdk_client"), "open_client")
            await asyncio.sleep(0)
        assert box.servers[0].state == "ready"
    assert seen > 3, seen

asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE * 2)


# Without servers


def test_without_servers_the_sdk_is_never_loaded(tmp_path: Path) -> None:
    script = f"""
import asyncio, sys
sys.path.insert(0, {str(Path.cwd())!r})
from core.tests.support.acp import serving
from holdfast.testing.demo_agent import agent

async def main():
    for version in (1, 2):
        async with serving(agent) as host:
            client = await host.client(version)
            session = await client.new({str(tmp_path)!r})
            assert await client.prompt(session, "/mcp") == "end_turn"
            assert "no MCP servers" in client.said()

asyncio.run(main())
unneeded = {{"mcp", "mcp_types", "anyio", "pydantic", "httpx2", "holdfast.mcp.sdk_client"}}
assert not unneeded & set(sys.modules), unneeded & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE * 2)
