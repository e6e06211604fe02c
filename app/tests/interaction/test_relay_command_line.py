"""Sessions that are open in some program, at the command line: which they are, and what happens in them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import agent_of, running
from core.tests.support.links import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path


async def holdfast(*arguments: str, cwd: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "holdfast", *arguments, cwd=cwd, stdout=-1, env={**os.environ, "NO_COLOR": "1"}
    )
    async with asyncio.timeout(2 * PATIENCE):
        out, _ = await process.communicate()
    return out.decode()


@asynccontextmanager
async def following(*arguments: str, cwd: Path) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamReader]]:
    """Run `holdfast sessions follow` until the block has ended; give its stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "holdfast", "sessions", "follow", *arguments, cwd=cwd, stdout=-1, stderr=-1
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        yield process.stdout, process.stderr
    finally:
        process.kill()
        await process.wait()


async def printed(stream: asyncio.StreamReader, text: str) -> str:
    """Read until a text was printed; give all that was read."""
    seen = ""
    async with asyncio.timeout(2 * PATIENCE):
        while text not in seen:
            line = await stream.readline()
            assert line, f"it has ended before it said {text!r}: {seen}"
            seen += line.decode()
    return seen


@pytest.mark.timeout(180)
@pytest.mark.requirement("F4")
async def test_a_list_says_which_sessions_are_open_where_and_what_they_do(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    async with running(store, version=1) as client:
        session = await client.new(str(tmp_path))
        await client.prompt(session, "hello")
        place = ("--store", str(store), "--cwd", str(tmp_path))
        assert "open in test" in await holdfast("sessions", "list", *place, cwd=tmp_path)
        client.begin_prompt(session, "/ask")
        await client.question()
        assert "waits for an answer in test" in await holdfast("sessions", "list", *place, cwd=tmp_path)
        listed: Any = json.loads(await holdfast("sessions", "list", *place, "--json", cwd=tmp_path))
        assert listed["sessions"][0]["open"] == {"in": "test", "state": "requires_action", "clients": ["test"]}
    assert "test" not in await holdfast("sessions", "list", *place, cwd=tmp_path)


@pytest.mark.timeout(180)
@pytest.mark.requirement("F4")
async def test_a_session_is_followed_from_program_to_program(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    async with running(store, version=1) as client:
        session = await client.new(str(tmp_path))
        await client.prompt(session, "before")
        async with following(session, "--store", str(store), cwd=tmp_path) as (out, _):
            assert "before" in await printed(out, "Open in test")
            await client.prompt(session, "/stream 5")
            assert "/stream 5" in await printed(out, "0 1 2 3 4")
            client.begin_prompt(session, "/ask")
            (await client.question()).select("allow_once")
            seen = await printed(out, "That was that.")
            assert "waits for an answer" in seen
            assert "Launch the rocket" in seen
            await client.transport.close(0)
            await printed(out, "test has left")
            async with running(store, version=2) as other:
                await other.resume(session, str(tmp_path))
                await printed(out, "Open in test")
                assert await other.prompt(session, "after all") == "end_turn"
                await printed(out, "after all")


@pytest.mark.timeout(180)
@pytest.mark.requirement("F4", "P3")
async def test_who_follows_is_told_that_a_program_was_killed_and_that_the_session_was_deleted(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    async with running(store, version=2) as client, running(store, version=1) as other:
        session = await client.new(str(tmp_path))
        async with following(session, "--store", str(store), cwd=tmp_path) as (out, told):
            await printed(out, "Open in test")
            client.begin_prompt(session, "/sleep 90")
            await printed(out, "/sleep 90")
            os.kill(agent_of(client), signal.SIGKILL)
            await printed(out, "test has left")
            await other.load(session, str(tmp_path))
            await printed(out, "Open in test")
            assert await other.prompt(session, "after all") == "end_turn"
            await printed(out, "after all")
            await other.ask("session/delete", {"sessionId": session})
            await printed(out, "deleted")
            await printed(told, "there is no session")


@pytest.mark.timeout(180)
@pytest.mark.requirement("F4", "H4")
async def test_what_is_followed_can_be_read_by_programs(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    async with running(store, version=2) as client:
        session = await client.new(str(tmp_path))
        await client.prompt(session, "before")
        async with following(session, "--store", str(store), "--json", cwd=tmp_path) as (out, told):
            await printed(told, "Open in test")
            answer = client.begin_prompt(session, "/stream 3")
            seen = await printed(out, '"stopReason"')
            updates = [json.loads(line) for line in seen.splitlines()]
            positions = [it["position"] for it in updates if it["position"]]
            assert len(set(positions)) == len(positions)
            assert [it["update"]["sessionUpdate"] for it in updates][-1] == "state_update"
            await answer


@pytest.mark.timeout(180)
@pytest.mark.requirement("F4")
async def test_the_chat_joins_a_session_that_is_open_in_an_editor(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    async with running(store, version=2) as client:
        session = await client.new(str(tmp_path))
        await client.prompt(session, "hello")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "holdfast", "chat", "demo", "--resume", session, "--store", str(store), "--print"),
            cwd=tmp_path, stdin=-1, stdout=-1,
        )  # fmt: skip
        async with asyncio.timeout(4 * PATIENCE):
            out, _ = await process.communicate(b"/stream 3")
        assert out.decode().strip() == "0 1 2"
        await client.until(lambda: client.said() == "hello0 1 2 ")
        assert client.said("user_message") == "hello/stream 3"
