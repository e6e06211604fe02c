"""A session whose agent the page may not start: what it says to do works."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.tests.support.web_process import PATIENCE, WebProcess, is_ready, say
from app.tests.support.wrapping import agent_command
from core.tests.support.acp import Client
from holdfast.transport import spawn

if TYPE_CHECKING:
    from app.tests.support.browser import Browser

pytestmark = pytest.mark.timeout(300)

BAD = ("error", "complaint", "violation", "dialog")


async def wrap_and_leave(place: Path, name: str, *more: str) -> str:
    """Let a person wrap an agent, say something, and close the editor; return the session."""
    (place / "home").mkdir(exist_ok=True)
    command = (sys.executable, "-m", "holdfast", "wrap", "--store", str(place / "sessions.db"), "--name", name)
    env = {**os.environ, "AGENT_HOME": str(place / "home")}
    transport = await spawn(*command, "--", *agent_command(*more), env=env, patience=PATIENCE)
    try:
        client = Client(transport)
        await client.initialize()
        session = await client.new(str(place))
        await client.prompt(session, "remember heron")
        return session
    finally:
        await transport.close(PATIENCE)


@pytest.mark.parametrize("width", [390, 1100])
def test_the_line_that_is_shown_lets_the_page_start_a_wrapped_agent(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("AGENT_HOME", str(tmp_path / "home"))
    session = asyncio.run(wrap_and_leave(tmp_path, "docs 'writer'", "no close"))
    web = WebProcess(tmp_path)
    with web, browser.page(viewport={"width": width, "height": 800}, permissions=["clipboard-write"]) as page:
        web.sign_in(page)
        page.open(f"{web.base}/sessions/{session}")
        line = page.text(".read-only code")
        assert shlex.split(line)[-2:] == [agent_command()[-1], "no close"]
        page.click("role=button[name='Copy the command']")
        page.sees("#messages >> text=The command is copied.")
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        assert page.barriers() == []
        program = Path(sys.executable).with_name("holdfast")
        done = subprocess.run(
            ["/bin/sh", "-c", line.replace("holdfast", shlex.quote(str(program)), 1)],
            capture_output=True, text=True, check=False, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        page.call(["reload"])
        is_ready(page)
        say(page, "recall")
        page.sees(".entry.agent >> text=heron")
        assert page.noted(*BAD) == []


@pytest.mark.requirement("P13", "P10")
def test_a_command_with_a_secret_or_a_name_with_control_characters_is_in_no_line(
    browser: Browser, tmp_path: Path
) -> None:
    secret = asyncio.run(wrap_and_leave(tmp_path, "keyed", "--api-key=sk-ant-api03-Vq7zR2mX9kLw4TnB8yHc"))
    hostile = asyncio.run(wrap_and_leave(tmp_path, "\x1b[201~\nrm -rf ~\n"))
    with WebProcess(tmp_path) as web, browser.page() as page:
        web.sign_in(page)
        for session in (secret, hostile):
            page.open(f"{web.base}/sessions/{session}")
            shown = page.text(".read-only")
            assert "COMMAND" in shown and "sk-ant" not in shown and "rm -rf" not in shown
    noted = tmp_path / "wrapped.toml"
    assert not noted.exists() or "sk-ant" not in noted.read_text()
