"""`holdfast wrap` as an editor starts it: a process of its own, with the agent behind it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from app.tests.support.wrapping import agent_command
from core.tests.support.acp import Client
from holdfast.transport import spawn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from holdfast.transport import ProcessTransport


@asynccontextmanager
async def started(
    tmp_path: Path, *habits: str, version: int = 1, on_stderr: Callable[[bytes], None] | None = None, **more: str
) -> AsyncGenerator[tuple[Client, ProcessTransport]]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    store = str(tmp_path / "sessions.db")
    command = (sys.executable, "-m", "holdfast", "wrap", "--store", store, "--name", "mine", "--")
    env = {**os.environ, "AGENT_HOME": str(home), **more}
    transport = await spawn(*command, *agent_command(*habits), env=env, patience=20.0, on_stderr=on_stderr)
    try:
        client = Client(transport, version)
        await client.initialize()
        yield client, transport
    finally:
        await transport.close(0.1)


@pytest.mark.requirement("A1", "A11", "G8")
@pytest.mark.parametrize("habits", [(), ("ignores the end", "ignores sigterm", "ignores cancel")])
async def test_it_exits_in_order_when_the_client_is_gone_whatever_the_agent_does(
    tmp_path: Path, habits: tuple[str, ...]
) -> None:
    async with started(tmp_path, *habits) as (client, transport):
        session = await client.new(str(tmp_path))
        client.begin_prompt(session, "wait")
        await client.until(lambda: "waiting" in client.said())
    assert await transport.wait() == 0
    async with started(tmp_path) as (client, _):
        await client.load(session, str(tmp_path))
        assert client.said().startswith("waiting")


@pytest.mark.requirement("G3", "F1")
async def test_the_library_shows_a_wrapped_session_with_its_agent(tmp_path: Path) -> None:
    async with started(tmp_path, "talks on stdout") as (client, _):
        session = await client.new(str(tmp_path))
        await client.prompt(session, "say The heron is a bird")
    env = {**os.environ, "HOLDFAST_STORE": str(tmp_path / "sessions.db")}

    async def holdfast(*arguments: str) -> str:
        command = (sys.executable, "-m", "holdfast", "sessions", *arguments)
        done = await asyncio.create_subprocess_exec(*command, env=env, cwd=tmp_path, stdout=asyncio.subprocess.PIPE)
        printed, _ = await done.communicate()
        assert done.returncode == 0
        return printed.decode()

    (listed,) = json.loads(await holdfast("list", "--json"))["sessions"]
    assert (listed["sessionId"], listed["agent"]) == (session, "mine")
    assert "The heron is a bird" in await holdfast("show", session)
    assert "heron" in await holdfast("search", "heron")
    assert "The heron is a bird" in await holdfast("export", session, "--format", "markdown")


@pytest.mark.requirement("P10", "P13")
async def test_what_an_agent_writes_to_stderr_is_shown_without_controls_and_keys(tmp_path: Path) -> None:
    written, has_ended = bytearray(), asyncio.Event()

    def take(chunk: bytes) -> None:
        written.extend(chunk)
        if b"no end" in written:
            has_ended.set()

    said = "\x1b[2J\x1b]0;owned\x07\x1b[31mred\x1b[0m \x9b31m \u202e 10%\r90% my key is very-private\nand é\nno end"
    async with started(tmp_path, on_stderr=take, MY_API_KEY="very-private") as (client, _):
        session = await client.new(str(tmp_path))
        assert await client.prompt(session, f"stderr {json.dumps(said)}") == "end_turn"
        async with asyncio.timeout(client.patience):
            await has_ended.wait()
    shown = written.decode()
    assert "90% my key is …\nand é\nno end" in shown
    assert not {"\x1b", "\x07", "\r", "\x9b", "\u202e"} & set(shown) and "very-private" not in shown
