"""Sessions from before sessions had agents, as clients see them (F6)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.tests.support.acp import Client, serving
from holdfast import Agent, Session, Turn

pytestmark = pytest.mark.requirement("F6")

OLD = Path(__file__).parents[1] / "faults" / "store_format_1"
LONG = "sess_00000000000000000000000000000001"
VERSIONS = pytest.mark.parametrize("version", [1, 2])


def rememberer(name: str) -> Agent:
    agent = Agent(name)
    opened: list[int] = []

    @agent.on_open
    async def look(session: Session) -> None:
        opened.append(len(session.state))

    @agent.prompt
    async def answer(turn: Turn) -> None:
        if turn.text == "may":
            await turn.say("yes" if await turn.allow("May I?", remember="write") else "no")
        else:
            await turn.say(json.dumps([opened[-1], len(turn.session.state)]))

    return agent


async def listed(client: Client) -> list[str]:
    return [info["sessionId"] for info in (await client.ask("session/list", {}))["sessions"]]


@VERSIONS
async def test_every_agent_lists_them_and_the_first_prompt_binds_them(version: int, tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "store")
    store = tmp_path / "store" / "sessions.db"
    async with serving(rememberer("one"), store) as first, serving(rememberer("two"), store) as second:
        ours, theirs = await first.client(version), await second.client(version)
        assert LONG in await listed(ours) and LONG in await listed(theirs)
        await ours.load(LONG, "/work")
        assert LONG in await listed(theirs)  # to load it binds nothing
        ours.forget()
        await ours.prompt(LONG, "x")
        before, bound = json.loads(ours.said())
        assert before == 0 and bound > 0  # what was remembered is unread until the session is bound
        assert LONG in await listed(ours) and LONG not in await listed(theirs)
        params: dict[str, Any] = {"sessionId": LONG, "cwd": "/work", "mcpServers": []}
        assert (await theirs.refusal("session/load", params)).code == -32002


@VERSIONS
async def test_what_was_allowed_always_is_asked_again(version: int, tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "store")
    async with serving(rememberer("one"), tmp_path / "store" / "sessions.db") as host:
        client = await host.client(version)
        await client.load(LONG, "/work")
        client.forget()
        answered = client.begin_prompt(LONG, "may")
        (await client.question()).select("reject_once")
        await answered
        await client.until(lambda: "no" in client.said())
