"""One session in three programs: an editor-shaped client, the chat in a terminal, a client on the TypeScript SDK.

The editor speaks version 1, the others version 2; each starts a `holdfast run` of its own on the same store.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.field.agents import node_directory
from app.tests.field.client import Client as TypeScriptClient
from app.tests.support.terminal import chat
from core.tests.support.acp import agent_of, conversation, patiently, running
from core.tests.support.schemas import lacking

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from app.tests.support.terminal import Window
    from core.tests.support.acp import Client

pytestmark = [pytest.mark.timeout(600), pytest.mark.requirement("F4", "F5")]


class Programs:
    """Three programs, and the session that all of them have open; the editor's process owns it."""

    def __init__(self, editor: Client, script: TypeScriptClient, window: Window, session: str) -> None:
        self.editor = editor
        self.script = script
        self.window = window
        self.session = session

    async def script_prompts(self, text: str) -> None:
        """Prompt in version 2; the answer says that the prompt is part of the conversation."""
        prompt = [{"type": "text", "text": text}]
        await self.script.request("session/prompt", {"sessionId": self.session, "prompt": prompt})

    def script_was_told(self, words: str) -> bool:
        """Whether a notice with these words came to the script."""
        updates = self.script.of(self.session)
        return any(words in update["title"] for update in updates if update["sessionUpdate"] == "notice")

    async def script_has(self, text: str, times: int = 1) -> None:
        """Wait until a text was said so often to the TypeScript client."""
        said = f"{text!r} was said {times} times"
        await self.script.until(lambda: _spoken(self.script.of(self.session)).count(text) >= times, said)

    async def chat_shows(self, text: str) -> None:
        await asyncio.to_thread(self.window.shows, text)

    async def all_idle(self, turns: int) -> None:
        """Wait until everybody was told the end of so many turns."""
        session, script = self.session, self.script
        await script.until(lambda: sum("stopReason" in it for it in script.of(session)) >= turns, f"{turns} ends")
        await asyncio.to_thread(self.window.shows_no_more, "working")


@asynccontextmanager
async def programs(place: Path) -> AsyncGenerator[Programs]:
    """Let three programs open one session."""
    if not (node_directory() / "node").exists():
        lacking("there is no Node that is new enough: it comes with npm, by `make test`")
    store = place / "store" / "sessions.db"
    store.parent.mkdir()
    run = (sys.executable, "-m", "holdfast", "run", "demo", "--store", str(store))
    async with (
        running(store, version=1, cwd=place, session={"notices": {}}) as editor,
        TypeScriptClient(run, os.environ, place, version=2) as script,
    ):
        session = await editor.new(str(place))
        await editor.prompt(session, "hello")
        script.allow(None)
        roots: dict[str, Any] = {"cwd": str(place), "mcpServers": []}
        await script.request("session/resume", {"sessionId": session, "replayFrom": {"type": "start"}, **roots})
        assert entries(script.of(session)) == [("user_message", "hello"), ("agent_message", "hello")]
        with chat("demo", "--resume", session, cwd=place, rows=40) as window:
            await asyncio.to_thread(window.has_shown, "/help lists keys and commands")
            await asyncio.to_thread(window.shows, "hello")
            yield Programs(editor, script, window, session)


def entries(updates: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What a client was told of the conversation: who said what, and how tool calls ended."""
    told: list[tuple[str, str]] = []
    for entry in conversation(update for update in updates if update["sessionUpdate"] != "notice"):
        kind = entry["sessionUpdate"]
        if kind in ("user_message", "agent_message"):
            told.append((kind, "".join(block["text"] for block in entry["content"])))
        elif kind == "tool_call_update":
            told.append((entry["title"], entry["status"]))
    return told


def _spoken(updates: list[dict[str, Any]]) -> str:
    return "\n".join(text for _, text in entries(updates))


def _prompts(told: list[tuple[str, str]]) -> list[str]:
    return [text for kind, text in told if kind == "user_message"]


async def loaded(place: Path, session: str) -> list[tuple[str, str]]:
    """What somebody is told who comes later."""
    async with running(place / "store" / "sessions.db", version=2, cwd=place) as late:
        await late.resume(session, str(place), replayFrom={"type": "start"})
        return entries(late.updates(session=session))


async def test_the_first_answer_closes_a_question_in_every_program(tmp_path: Path) -> None:
    async with programs(tmp_path) as shared:
        editor, script, window = shared.editor, shared.script, shared.window

        async def asked(times: int) -> Any:
            """Wait until all three put the question to their users."""
            await shared.chat_shows("[y]")
            await script.until(lambda: len(script.asked) == times, "it was asked")
            return await editor.question(times)

        await shared.script_prompts("/ask")
        first = await asked(1)
        window.press("y")
        await editor.until(lambda: first.withdrawn)
        await script.until(lambda: len(script.withdrawn) == 1, "the question was withdrawn")
        await shared.all_idle(1)
        window.say("/ask")
        second = await asked(2)
        second.select("allow_once")
        await asyncio.to_thread(window.shows_no_more, "[y]")
        await script.until(lambda: len(script.withdrawn) == 2, "the question was withdrawn")
        await shared.all_idle(2)
        script.allow("reject_once")
        assert await editor.prompt(shared.session, "/ask") == "end_turn"
        await asyncio.to_thread(window.shows_no_more, "[y]")
        assert all(it.withdrawn for it in editor.asked if it is not second)
        await shared.all_idle(3)
        seen = entries(script.of(shared.session))
        assert [status for title, status in seen if title == "Launch the rocket"] == [
            "completed", "completed", "failed",
        ]  # fmt: skip
    assert await loaded(tmp_path, shared.session) == seen


async def test_each_program_stops_what_another_has_begun(tmp_path: Path) -> None:
    async with programs(tmp_path) as shared:
        editor, script, window, session = shared.editor, shared.script, shared.window, shared.session
        sleeping = editor.begin_prompt(session, "/sleep 600")
        await shared.script_has("Good night.")
        script.notify("session/cancel", {"sessionId": session})
        assert (await patiently(sleeping))["stopReason"] == "cancelled"
        await shared.all_idle(1)
        await shared.script_prompts("/sleep 601")
        await shared.chat_shows("/sleep 601")
        await shared.script_has("Good night.", 2)
        await shared.chat_shows("working for another client")
        window.press("C-c")
        await shared.all_idle(2)
        window.say("/sleep 602")
        await shared.script_has("Good night.", 3)
        editor.tell("session/cancel", {"sessionId": session})
        await shared.all_idle(3)
        window.press("C-d")
        assert await asyncio.to_thread(window.status) == 0
        seen = entries(script.of(session))
        assert _prompts(seen) == ["hello", "/sleep 600", "/sleep 601", "/sleep 602"]
        assert [status for title, status in seen if title == "Sleep"] == ["cancelled"] * 3
    assert await loaded(tmp_path, session) == seen


@pytest.mark.requirement("A11", "P1", "P3")
@pytest.mark.parametrize(
    ("number", "prompter"),
    [(signal.SIGKILL, "editor"), (signal.SIGKILL, "script"), (signal.SIGTERM, "editor"), (signal.SIGTERM, "chat")],
)
async def test_when_the_owner_goes_in_mid_turn_the_others_are_told_and_one_goes_on(
    number: signal.Signals, prompter: str, tmp_path: Path
) -> None:
    async with programs(tmp_path) as shared:
        editor, script, window, session = shared.editor, shared.script, shared.window, shared.session
        if prompter == "editor":
            editor.begin_prompt(session, "/sleep 600")
        elif prompter == "script":
            await shared.script_prompts("/sleep 600")
        else:
            window.say("/sleep 600")
        await shared.script_has("Good night.")
        await shared.chat_shows("Good night.")  # what was seen is not lost
        os.kill(agent_of(editor), number)
        await asyncio.to_thread(window.has_shown, "test has left")
        await shared.all_idle(1)
        await script.until(lambda: shared.script_was_told("test has left; the session goes on"), "it was told who left")
        await shared.script_prompts("still here")
        await shared.script_has("still here", 2)
        await shared.chat_shows("still here")
        window.say("me too")
        await shared.script_has("me too", 2)
        await shared.all_idle(3)
        window.press("C-d")
        assert await asyncio.to_thread(window.status) == 0
        seen = entries(script.of(session))
        assert _prompts(seen) == ["hello", "/sleep 600", "still here", "me too"]
        assert [status for title, status in seen if title == "Sleep"] == [
            "failed" if number is signal.SIGKILL else "cancelled"
        ]
    assert await loaded(tmp_path, session) == seen
