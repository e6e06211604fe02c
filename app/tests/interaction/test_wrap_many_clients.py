"""Two editors and a chat on one wrapped session, in one process and across processes (F3, F4, F5)."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.wrapping import conversation, wrapping
from core.tests.support.acp import patiently

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from core.tests.support.acp import Client


@asynccontextmanager
async def three_clients(tmp_path: Path, *, apart: bool) -> AsyncGenerator[list[Client]]:
    """Connect two editors and a chat to one wrapped agent; `apart` in a process each, on one store."""
    async with AsyncExitStack() as stack:
        hosts = [await stack.enter_async_context(wrapping(tmp_path)) for _ in range(3 if apart else 1)]
        able = {"fs": {"readTextFile": True}}
        yield [
            await hosts[0].client(1, **able),
            await hosts[1 % len(hosts)].client(1, **able),
            await hosts[2 % len(hosts)].client(2),
        ]


@pytest.mark.requirement("F3", "F4", "F5", "G7")
@pytest.mark.parametrize("apart", [False, True], ids=["one process", "three processes"])
async def test_all_see_one_order_and_each_serves_its_own_turns(tmp_path: Path, *, apart: bool) -> None:
    cwd = str(tmp_path)
    async with three_clients(tmp_path, apart=apart) as (zed, emacs, chat):
        session = await zed.new(cwd)
        await zed.prompt(session, "remember heron")
        await emacs.load(session, cwd)
        await chat.resume(session, cwd, replayFrom={"type": "start"})
        assert await chat.prompt(session, "recall") == "end_turn"
        for client in (zed, emacs, chat):
            await client.until(lambda client=client: client.said() == "Noted.heron")
        zed.answers["fs/read_text_file"] = lambda _: {"content": "zed"}
        emacs.answers["fs/read_text_file"] = lambda _: {"content": "emacs"}
        emacs.forget()
        await emacs.prompt(session, 'request fs/read_text_file {"path": "/f"}')
        assert json.loads(emacs.said()) == {"content": "emacs"}
        turn = zed.begin_prompt(session, "propose")
        asked = [await client.question() for client in (zed, emacs, chat)]
        asked[2].select("yes")
        await patiently(turn)
        await zed.until(lambda: asked[0].withdrawn)
        await emacs.until(lambda: asked[1].withdrawn)
        loaded: list[list[dict[str, Any]]] = []
        for client in (zed, emacs):
            client.forget()
            await client.load(session, cwd)
            loaded.append(conversation(1, client.updates()))
        assert loaded[0] == loaded[1]
        assert [entry["sessionUpdate"] for entry in loaded[0]].count("user_message") == 4
