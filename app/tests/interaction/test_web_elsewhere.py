"""Sessions that other programs have open, in the browser; and agents that the page starts itself."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from app.tests.support.pages import Pages
from app.tests.support.wrapping import agent_command
from core.tests.support.acp import cut_links, serving
from core.tests.support.links import PATIENCE
from core.tests.support.remote import served
from core.tests.support.searches import HeldSearches
from holdfast.store import open_store
from holdfast.testing.demo_agent import agent as demo
from holdfast_app.cli.web import start_agent
from holdfast_app.web import WebPages, watching
from holdfast_app.web.agents_file import AgentEntry, AgentsFile, AgentsOfFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from holdfast.store import SessionStore


@asynccontextmanager
async def pages_of(store: Path) -> AsyncGenerator[Pages]:
    """Serve the page as `holdfast web` does: on a store that others use too, with the agents of the file beside it."""
    file = AgentsFile(store.with_name("agents.toml"))
    agents = AgentsOfFile(file, lambda name, entry: start_agent(name, entry, str(store)))
    library = await open_store(str(store))

    async def opened() -> SessionStore:
        return library

    pages = WebPages(opened, agents)
    try:
        yield Pages(pages, library)
    finally:
        await pages.close()
        await library.close()


def allow(store: Path, name: str, entry: AgentEntry) -> None:
    AgentsFile(store.with_name("agents.toml")).put(name, entry)


def words(text: str) -> dict[str, object]:
    return {"prompt": [{"type": "text", "text": text}]}


async def test_a_session_in_an_editor_is_followed_and_its_question_answered_in_the_browser(tmp_path: Path) -> None:
    store = tmp_path / "sessions.db"
    allow(store, "holdfast-demo", AgentEntry(run="demo"))
    async with serving(demo, store) as editor, pages_of(store) as pages:
        client = await editor.client(2)
        session = await client.new(str(tmp_path))
        client.begin_prompt(session, "/ask")
        asked = await client.question()
        async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
            question = await tab.until("question")
            assert "Launch the rocket" in question["html"]
            answer = {"question": question["id"], "option": "allow_once"}
            assert (await pages.post(f"/sessions/{session}/answer", answer)).json() == {"answered": True}
            await tab.until_shown("That was that")
            await pages.post(f"/sessions/{session}/prompt", words("from the browser"))
            await tab.until_shown("from the browser")
            await tab.until("state", state="idle")
        assert asked.withdrawn
        assert any("from the browser" in str(message) for message in client.heard)


@pytest.mark.requirement("F4")
async def test_a_tab_that_is_closed_while_its_session_is_found_again_does_not_watch_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "sessions.db"
    allow(store, "holdfast-demo", AgentEntry(run="demo"))
    searches, close = HeldSearches(monkeypatch), watching.WatchedSession.close

    async def close_and_tell(self: watching.WatchedSession) -> None:
        await close(self)
        searches.may_go_on.set()

    monkeypatch.setattr(watching.WatchedSession, "close", close_and_tell)
    monkeypatch.setattr(watching, "LINGER_SECONDS", 0.0)
    async with serving(demo, store) as editor, pages_of(store) as pages:
        client = await editor.client(2)
        session = await client.new(str(tmp_path))
        await client.prompt(session, "hello")
        async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
            await pages.post(f"/sessions/{session}/prompt", words("from the browser"))
            await tab.until_shown("from the browser")
            cut_links(editor)
            await asyncio.wait_for(searches.begun.wait(), PATIENCE)
        await asyncio.wait_for(searches.is_over.wait(), PATIENCE)
        assert editor.host.opened is not None
        async with asyncio.timeout(PATIENCE):
            while len(editor.host.opened.get(session).attachments) != 1:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


@pytest.mark.requirement("P13")
async def test_a_session_in_an_editor_whose_agent_is_unknown_is_followed_but_not_answered(tmp_path: Path) -> None:
    store = tmp_path / "sessions.db"
    async with serving(demo, store) as editor, pages_of(store) as pages:
        client = await editor.client(2)
        session = await client.new(str(tmp_path))
        client.begin_prompt(session, "/ask")
        asked = await client.question()
        async with pages.feed(f"/sessions/{session}/live?lines=0") as tab:
            await tab.until("state", state="requires_action")
            asked.select("allow_once")
            await tab.until_shown("That was that")
        assert not any(message.get("type") == "question" for message in tab.messages)


async def test_a_wrapped_agent_is_started_when_one_talks_and_its_session_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the agent keeps its own sessions where it is started
    store = tmp_path / "sessions.db"
    allow(store, "mine", AgentEntry(command=agent_command()))
    async with pages_of(store) as pages:
        made = (await pages.post("/sessions", {"agent": "mine", "cwd": str(tmp_path)})).json()
        async with pages.feed(f"{made['href']}/live?lines=0") as tab:
            await pages.post(f"{made['href']}/prompt", words("hello"))
            await tab.until("entries")
    async with pages_of(store) as pages:
        text = (await pages.get(made["href"])).text
        assert "hello" in text and 'id="composer"' in text
        async with pages.feed(f"{made['href']}/live?lines=100") as tab:
            await pages.post(f"{made['href']}/prompt", words("hello again"))
            await tab.until_shown("hello again")


async def test_an_agent_that_cannot_be_started_says_so_and_its_sessions_are_still_read(tmp_path: Path) -> None:
    store = tmp_path / "sessions.db"
    allow(store, "broken", AgentEntry(command=("/nonexistent/agent",)))
    async with pages_of(store) as pages:
        answer = await pages.post("/sessions", {"agent": "broken", "cwd": str(tmp_path)})
        assert answer.status in (400, 409) and "nonexistent" in answer.json()["error"]


async def test_a_browser_that_is_not_signed_in_is_told_how_to(tmp_path: Path) -> None:
    async with served(store=tmp_path / "s.db") as remote:
        answer = await remote.ask("GET", "/", token=None, accept="text/html,*/*")
        assert answer.status == 401 and answer.headers["content-type"].startswith("text/html")
        assert b"Open the link" in answer.body and "default-src 'none'" in answer.headers["content-security-policy"]
        assert (await remote.ask("GET", "/", token=None)).headers["content-type"] == "application/json"
