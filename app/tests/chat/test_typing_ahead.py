"""`holdfast chat`: what is typed ahead is a prompt, and never an answer; what waits says what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.tests.support.terminal import chat

if TYPE_CHECKING:
    from pathlib import Path

SLOW = """
import asyncio
from pathlib import Path
from holdfast import Agent

agent = Agent("slow")
logged_in = []

@agent.auth("key", name="With a key")
async def with_key():
    logged_in.append(True)

@agent.auth("other", name="With another key")
async def with_other_key():
    Path("other").touch()

@agent.logged_in
async def has_key():
    return bool(logged_in)

@agent.on_open
async def wait(session):
    while not Path("go").exists():
        await asyncio.sleep(0.05)

@agent.prompt
async def answer(turn):
    await turn.say(f"You said {turn.text}.")
"""


def test_a_text_typed_ahead_answers_no_login_and_is_sent_after_it(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    with chat("slow.py", cwd=tmp_path, rows=40) as window:
        window.shows("wants you to log in")
        window.press("in step 2 fix 1 thing", "Enter")  # in one go
        window.shows("then: in step 2 fix 1 thing")
        window.shows("What you typed is kept. Answer with one of the keys.")
        assert "Logged in" not in window.scrollback()
        window.press("1")
        window.shows("Logged in: With a key")
        window.shows("opening the session")  # what the prompt waits for
        assert "then: in step 2 fix 1 thing" in window.screen()
        (tmp_path / "go").touch()
        window.shows("You said in step 2 fix 1 thing.")
        assert not (tmp_path / "other").exists()


@pytest.mark.requirement("P13")
def test_a_text_typed_ahead_permits_nothing(tmp_path: Path) -> None:
    with chat("demo", cwd=tmp_path, rows=40) as window:
        window.shows("/help lists keys")
        window.say("/ask")
        window.shows("May I launch the rocket?")
        window.type("yes, and always")
        window.shows("What you typed is kept")
        window.press("n")
        window.shows("That was that.")
        assert "It flies" not in window.scrollback()
        window.until(lambda: "yes, and always" in window.screen(), "what was typed is lost")
        window.press("C-c")
        window.say("/ask")
        window.until(lambda: window.screen().count("May I launch the rocket?") > 1, "not asked again")
        window.press("y")
        window.shows("It flies")


def test_lines_typed_ahead_in_a_plain_terminal_stay_prompts(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "go").touch()
    with chat("slow.py", cwd=tmp_path, rows=40, env={"TERM": "dumb"}) as window:
        window.say("1")  # before anything was asked
        window.shows("wants you to log in")
        window.say("what is this")
        window.until(lambda: window.scrollback().count("wants you to log in") > 1, "not asked again")
        assert "Logged in" not in window.scrollback()
        window.say("1")
        window.shows("Logged in: With a key")
        window.shows("You said 1.")
