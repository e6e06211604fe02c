"""Doubles of Zed and of a JetBrains IDE drive our agents as those editors do: nothing they show is lost."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from core.tests.doubles.jetbrains import TOKEN, JetBrains
from core.tests.doubles.zed import Zed
from core.tests.support.acp import CWD, Refused, patiently, serving
from holdfast.testing.demo_agent import agent as demo

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.doubles.thread import Shown, Thread

PROMPTS = ("hello", "/tool", "/think", "/plan", "/diff", "/usage", "/title Pebbles")


@pytest.mark.requirement("B5", "B6", "B13", "C10", "D2", "D4", "P5")
async def test_zed_shows_the_same_thread_live_and_in_a_new_process(place: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    async with serving(demo, place) as host:
        zed = Zed(host.connect())
        await zed.start()
        session = await zed.new_session(CWD, str(more), mode="auto", tone="pirate", model="no such model")
        for text in PROMPTS:
            assert await zed.prompt(session, text) == "end_turn"
        await zed.settle()
        live = zed.threads[session]
        assert not zed.dropped
        assert "Tool call not found" not in live.text("tool")
        assert live.text("user") == "".join(PROMPTS)
        assert live.title == "Pebbles"
        await zed.close_session(session)
        await zed.settle()
        assert not zed.dropped
    async with serving(demo, place) as host:
        zed = Zed(host.connect())
        await zed.start()
        assert [row["sessionId"] for row in await zed.list_sessions(CWD)] == [session]
        answer = await zed.load_session(session, CWD, str(more), tone="formal")
        assert values(answer)["tone"] == "pirate"
        again = zed.threads[session]
        assert entries(again) == entries(live)
        assert (again.title, again.usage) == (live.title, live.usage)
        assert await zed.prompt(session, "and on") == "end_turn"
        assert again.commands
        assert not zed.dropped
        await zed.delete_session(session)
        assert await zed.list_sessions(CWD) == []


@pytest.mark.requirement("B13")
async def test_zed_closes_a_view_while_its_session_is_being_loaded(place: Path) -> None:
    async with serving(demo, place) as host:
        zed = Zed(host.connect())
        await zed.start()
        session = await zed.new_session(CWD)
        await zed.prompt(session, "/stream 200")
        await zed.close_session(session)
        loading = zed.client.begin("session/load", {"sessionId": session, "cwd": CWD, "mcpServers": []}, "load")
        closing = zed.client.begin("session/close", {"sessionId": session}, "close")
        with suppress(Refused):  # a load that was overtaken by a close may say so
            await patiently(loading)
        assert await patiently(closing) == {}
        await zed.load_session(session, CWD)
        assert await zed.prompt(session, "still there") == "end_turn"


@pytest.mark.requirement("C8")
async def test_zed_cancels_a_turn_that_asks(place: Path) -> None:
    async with serving(demo, place) as host:
        zed = Zed(host.connect())
        await zed.start()
        session = await zed.new_session(CWD)
        prompted = zed.begin_prompt(session, "/ask")
        await zed.client.question()
        zed.cancel(session)
        assert (await patiently(prompted))["stopReason"] == "cancelled"
        assert await zed.prompt(session, "hello") == "end_turn"


@pytest.mark.requirement("A6", "B6", "D2", "P5")
async def test_an_ide_of_jetbrains_shows_the_same_thread_live_and_in_a_new_process(place: Path) -> None:
    async with serving(demo, place) as host:
        ide = JetBrains(host.connect())
        await ide.start()
        session = await ide.new_session(CWD)
        opened = ide.client.heard
        named = next(at for at, message in enumerate(opened) if session in str(message.get("result")))
        assert all(message.get("method") != "session/update" for message in opened[:named])
        for text in PROMPTS:
            assert await ide.prompt(session, text) == "end_turn"
        await ide.settle()
        live = ide.threads[session]
        assert not ide.failures
        assert not spoken(ide.after_the_turn)
        assert live.text("user") == "".join(PROMPTS)
        assert not any(TOKEN in str(message) for message in ide.client.heard)
    async with serving(demo, place) as host:
        ide = JetBrains(host.connect())
        await ide.start()
        await ide.load_session(session, CWD)
        assert entries(ide.threads[session]) == entries(live)
        assert await ide.prompt(session, "and on") == "end_turn"
        await ide.close_session(session)
        await ide.settle()
        assert not ide.failures
    for file in place.parent.rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes()


@pytest.mark.requirement("A10")
async def test_an_ide_of_jetbrains_gives_up_a_prompt_and_goes_on(place: Path) -> None:
    async with serving(demo, place) as host:
        ide = JetBrains(host.connect())
        await ide.start()
        session = await ide.new_session(CWD)
        ended = await ide.give_up(session, "/stream 100000")
        assert ended == {"stopReason": "cancelled"} or (isinstance(ended, Refused) and ended.code == -32800)
        assert await ide.prompt(session, "hello") == "end_turn"


def values(answer: dict[str, list[dict[str, object]]]) -> dict[object, object]:
    return {option["id"]: option["currentValue"] for option in answer["configOptions"]}


def spoken(kinds: list[str]) -> list[str]:
    return [kind for kind in kinds if kind.startswith(("agent_", "tool_call", "plan"))]


def entries(thread: Thread) -> list[Shown]:
    """Return what is shown; live, the editor does not know which id its own prompt got."""
    return [replace(entry, key=None) if entry.kind == "user" else entry for entry in thread.entries]
