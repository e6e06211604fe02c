"""One conversation, one name: the sessions of a wrapped agent are the same ones whatever starts it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.wrapping import agent_command, wrapping
from core.tests.support.acp import Client
from holdfast.model import LOCAL, Scope, SessionState
from holdfast.store import Changes, open_store
from holdfast.transport import spawn
from holdfast_app.cli.name_joining import join_and_log
from holdfast_app.wrap.record import AgentRecord

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("F1")


async def listed(client: Client) -> list[str]:
    return [session["sessionId"] for session in (await client.ask("session/list", {}))["sessions"]]


@pytest.fixture
def called_gemini(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the wrapped agent call itself what Gemini calls itself."""
    monkeypatch.setenv("AGENT_NAME", "gemini-cli")


@pytest.mark.usefixtures("called_gemini")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_session_is_there_whether_the_agent_is_named_or_names_itself(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path) as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say hello")
    for name in ("gemini", "gemini-cli", None):
        async with wrapping(tmp_path, name=name) as wrapped:
            client = await wrapped.client(version)
            assert await listed(client) == [session]
            await client.load(session, str(tmp_path)) if version == 1 else await client.resume(session, str(tmp_path))


@pytest.mark.requirement("G9")
@pytest.mark.parametrize("version", [1, 2])
async def test_a_session_of_the_agent_is_not_adopted_once_more_under_another_name(tmp_path: Path, version: int) -> None:
    async with wrapping(tmp_path, name="mine") as wrapped:
        client = await wrapped.client(version)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say hello")
        (own,) = [file.stem for file in wrapped.home.glob("*-*.json")]
    async with wrapping(tmp_path) as wrapped:
        client = await wrapped.client(version)
        assert await listed(client) == []
        method = "session/load" if version == 1 else "session/resume"
        refused = await client.refusal(method, {"sessionId": own, "cwd": str(tmp_path), "mcpServers": []})
        assert refused.code == -32002
    async with wrapping(tmp_path, name="mine") as wrapped:
        assert await listed(await wrapped.client(version)) == [session]


@pytest.mark.requirement("G9")
async def test_an_id_that_may_be_a_counter_hides_no_session_of_another_agent(tmp_path: Path) -> None:
    async with wrapping(tmp_path, "counts", name="one") as wrapped:
        client = await wrapped.client()
        await client.prompt(await client.new(str(tmp_path)), "say hello")
    async with wrapping(tmp_path, "counts", name="other") as wrapped:
        assert len(await listed(await wrapped.client())) == 1


async def stored_as(tmp_path: Path, name: str) -> str:
    """Store a session of a wrapped agent as it was stored under a name."""
    async with wrapping(tmp_path, name="mine") as wrapped:
        client = await wrapped.client()
        session = await client.new(str(tmp_path))
        await client.prompt(session, "remember heron")
    store = await open_store(str(tmp_path / "sessions.db"))
    try:
        record = await store.get(session)
        own_id = AgentRecord.read(record.state.memory).session
        await store.hand_over(session, name)
        claimed = await store.claim(session)
        state = SessionState(memory=record.state.memory, permissions={"rm": True})
        await store.save(claimed.claim, Changes(state=state))
        await store.release(claimed.claim)
        assert own_id is not None
        await store.set_alias(Scope(LOCAL, name), own_id, session)
    finally:
        await store.close()
    return session


@pytest.mark.usefixtures("called_gemini")
@pytest.mark.requirement("P13")
async def test_the_agent_remembers_a_session_of_its_old_name_and_no_right_goes_along(tmp_path: Path) -> None:
    session = await stored_as(tmp_path, "gemini-cli")
    async with wrapping(tmp_path, on_open=join_and_log) as wrapped:
        client = await wrapped.client()
        assert await listed(client) == [session]
        await client.load(session, str(tmp_path))
        client.forget()
        await client.prompt(session, "recall heron")
        assert "heron" in client.said()
        engine = wrapped.host.opened
        assert engine is not None
        assert engine.get(session, Scope(LOCAL, "gemini")).state.permissions == {}


async def run_holdfast(tmp_path: Path, *arguments: str) -> tuple[str, str]:
    """Run a command; return what it printed, and what it told on stderr."""
    env = {**os.environ, "HOLDFAST_STORE": str(tmp_path / "sessions.db")}
    command = (sys.executable, "-m", "holdfast", *arguments)
    pipe = asyncio.subprocess.PIPE
    done = await asyncio.create_subprocess_exec(*command, env=env, cwd=tmp_path, stdout=pipe, stderr=pipe)
    printed, told = await done.communicate()
    assert done.returncode == 0, told.decode()
    return printed.decode(), told.decode()


async def test_the_user_is_told_once_that_sessions_have_another_name_now(tmp_path: Path) -> None:
    session = await stored_as(tmp_path, "gemini-cli")
    printed, told = await run_holdfast(tmp_path, "sessions", "list", "--json", "--agent", "gemini-cli")
    sessions: list[dict[str, Any]] = json.loads(printed)["sessions"]
    assert [(item["sessionId"], item["agent"]) for item in sessions] == [(session, "gemini")]
    assert "1 session was listed under gemini-cli and is listed under gemini now" in told
    _, told = await run_holdfast(tmp_path, "sessions", "list")
    assert told == ""


async def test_a_wrap_says_on_stderr_that_sessions_have_another_name_now(tmp_path: Path) -> None:
    session = await stored_as(tmp_path, "gemini-cli")
    told: list[bytes] = []
    command = (sys.executable, "-m", "holdfast", "wrap", "--store", str(tmp_path / "sessions.db"), "--name", "gemini")
    env = {**os.environ, "AGENT_HOME": str(tmp_path / "home")}
    transport = await spawn(*command, "--", *agent_command(), env=env, patience=20.0, on_stderr=told.append)
    try:
        client = Client(transport)
        await client.initialize()
        await client.load(session, str(tmp_path))
        assert "remember heron" in client.said("user_message")
    finally:
        await transport.close(0.1)
    assert b"listed under gemini now" in b"".join(told)


async def test_a_session_is_handed_over_to_an_agent_by_any_of_its_names(tmp_path: Path) -> None:
    session = await stored_as(tmp_path, "mine")
    await run_holdfast(tmp_path, "sessions", "hand-over", session, "--to", "claude-agent-acp")
    printed, _ = await run_holdfast(tmp_path, "sessions", "list", "--json")
    assert [item["agent"] for item in json.loads(printed)["sessions"]] == ["claude"]
