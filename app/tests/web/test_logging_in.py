"""Agents that want a login before they work, and agents that cannot be started: the page says so, and what to do."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from app.tests.support.web_process import WebProcess, is_ready, say
from core.tests.support.schemas import ROOT
from core.tests.support.stored_sessions import add_session
from holdfast.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.browser import Browser

pytestmark = pytest.mark.timeout(300)

BAD = ("error", "violation", "dialog")
AGENT = ROOT / "core" / "tests" / "programs" / "login_agent.py"


@pytest.mark.requirement("C12")
def test_an_agent_that_wants_a_login_gets_it_from_the_page(browser: Browser, tmp_path: Path) -> None:
    with WebProcess(tmp_path, agent=str(AGENT), name="login-agent") as web, browser.page() as page:
        web.sign_in(page)
        page.click("#new")
        page.fill("#new-session input[name=cwd]", str(web.project))
        page.click("#new-session button[type=submit]")
        page.sees("dialog >> text=Log in to Careful agent")
        page.click("dialog >> text=With an old key")
        page.sees("dialog .error >> text=expired")
        assert page.barriers() == []
        page.click("dialog >> text=With the key <b>in the file</b>")
        page.until("location.pathname.startsWith('/sessions/')")
        is_ready(page)
        say(page, "hello")
        page.sees(".entry.agent >> text=You said: hello")
        web.kill()
        web.start()  # which knows of no login
        page.until("document.querySelector('#state').dataset.state !== 'offline'")
        page.fill("#prompt", "again")
        page.press("Enter", "#prompt")
        page.click("dialog >> text=With the key <b>in the file</b>")
        page.sees(".entry.agent >> text=You said: again")
        assert page.count(".entry.user >> text=again") == 1
        assert page.noted(*BAD) == []


TERMINAL_AGENT = """
from pathlib import Path
from holdfast import Agent

KEY = Path(__file__).with_name("key")
agent = Agent("login-agent", title="Careful agent", version="1")


@agent.auth("code", name="With a code", terminal=True)
async def with_code():
    KEY.write_text("x")


@agent.logged_in
async def logged_in():
    return KEY.exists()


@agent.prompt
async def answer(turn):
    await turn.say(f"You said: {turn.text}")
"""


@pytest.mark.requirement("C12")
def test_where_a_login_needs_a_terminal_the_page_names_the_command_and_goes_on_after_it(
    browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "agent with blanks.py"
    file.write_text(TERMINAL_AGENT)
    with WebProcess(tmp_path, agent=str(file), name="login-agent") as web, browser.page() as page:
        web.sign_in(page)
        page.click("#new")
        page.fill("#new-session input[name=cwd]", str(web.project))
        page.click("#new-session button[type=submit]")
        page.sees("dialog >> text=With a code")
        page.click("dialog >> role=button[name='Try again']")
        page.sees("dialog >> text=With a code")  # nothing has changed
        assert page.barriers() == []
        command = page.run("document.querySelector('.way input').value")
        name, *arguments = shlex.split(command)
        assert (name, arguments) == ("holdfast", ["run", str(file), "--login", "code"])
        subprocess.run([sys.executable, "-m", "holdfast", *arguments], check=True, timeout=60, stdin=subprocess.DEVNULL)
        page.click("dialog >> role=button[name='Try again']")
        page.until("location.pathname.startsWith('/sessions/')")
        is_ready(page)
        say(page, "hello")
        page.sees(".entry.agent >> text=You said: hello")
        assert page.noted(*BAD) == []


async def sessions_of(place: Path, *agents: str) -> list[str]:
    store = await open_store(str(place))
    made = [await add_session(store, [("user", "hello")], title=agent, agent=agent) for agent in agents]
    await store.close()
    return made


def test_sessions_whose_agent_cannot_be_started_are_there_to_read_and_say_why(browser: Browser, tmp_path: Path) -> None:
    web = WebProcess(tmp_path)
    file = web.store.with_name("agents.toml")
    known = file.read_text()
    file.write_text(
        f"{known}\n[agents.gone]\nrun = '/nowhere/agent.py'\n[agents.never]\ncommand = ['/nowhere/never']\n"
    )
    unknown, gone, never, page_agent = asyncio.run(sessions_of(web.store, "unknown", "gone", "never", "page-agent"))
    with web, browser.page() as page:
        web.sign_in(page)
        page.open(f"{web.base}/sessions/{unknown}")
        page.sees(".entry.user >> text=hello")
        page.sees(".read-only >> text=holdfast web add --name unknown -- COMMAND")
        assert page.count("#composer") == 0
        page.open(f"{web.base}/sessions/{gone}")
        page.sees(".read-only >> text=nowhere/agent.py")
        page.open(f"{web.base}/sessions/{never}")
        is_ready(page)
        page.fill("#prompt", "hello?")
        page.press("Enter", "#prompt")
        page.sees("#composer .error >> text=nowhere/never")
        assert page.run("document.querySelector('#prompt').value") == "hello?"
        page.open(f"{web.base}/sessions/{page_agent}")
        is_ready(page)
        say(page, "and you?")
        page.sees(".entry.agent >> text=You said: and you?")
        file.chmod(0o666)
        page.open(f"{web.base}/sessions/{page_agent}")
        page.sees(".read-only >> text=others can write")
        assert page.noted(*BAD) == []
