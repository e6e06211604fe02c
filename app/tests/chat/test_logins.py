"""`holdfast chat` and logins: again where one fails, out again, and where nobody can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.tests.support.terminal import chat

if TYPE_CHECKING:
    from pathlib import Path

BANK = """
from pathlib import Path
from holdfast import Agent
from holdfast.errors import AuthRequired, RequestError

agent = Agent("bank")
KEY = Path("key")

@agent.auth("paste", name="Paste a key", terminal=True)
async def paste():
    key = input("Key: ")
    if not key.startswith("bank-"):
        raise RequestError("a key of the bank begins with bank-")
    KEY.write_text(key)

@agent.logged_in
async def has_key():
    return KEY.exists()

@agent.logout
async def forget():
    KEY.unlink()

@agent.prompt
async def answer(turn):
    await turn.say(f"You said {turn.text}.")
"""


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    (tmp_path / "bank.py").write_text(BANK)
    return tmp_path


def test_a_login_by_its_name_that_fails_is_asked_for_again_with_what_it_said(bank: Path) -> None:
    (bank / "key").write_text("bank-0")
    with chat("bank.py", cwd=bank, rows=40) as window:
        window.shows("/help lists keys")
        for wrong in ("/login past", "/login paste"):
            window.say(wrong)
            if wrong == "/login paste":
                window.shows("Key:")
                window.say("sesame")
                window.shows("✗ You are not logged in: a key of the bank begins with bank-")
            window.shows("Log in another way, or once more? Escape gives up.")
            window.press("Escape")
            window.shows_no_more("Log in another way")
        window.say("/login paste")
        window.until(lambda: window.scrollback().count("Key:") == 2, "not asked")
        window.say("bank-1")
        window.shows("Logged in: Paste a key")
        assert (bank / "key").read_text() == "bank-1"
        assert "You said" not in window.scrollback()


@pytest.mark.parametrize("protocol", ["1", "2"])
def test_one_logs_out_where_the_agent_offers_it(protocol: str, bank: Path) -> None:
    (bank / "key").write_text("bank-0")
    with chat("bank.py", "--protocol", protocol, cwd=bank, rows=60) as window:
        window.shows("/help lists keys")
        window.type("/logo")
        window.shows("Log out of the agent")
        window.press("Tab", "Enter")
        window.shows("✓ Logged out.")
        assert not (bank / "key").exists()
        window.say("/help")
        window.shows("/logout  Log out of the agent")
    with chat("demo", "--protocol", protocol, cwd=bank, rows=60) as window:  # which has no logins
        window.shows("/help lists keys")
        window.say("/logout")
        window.shows("✗ this agent offers no way to log out")
        window.say("/chat:help")
        assert "/logout" not in window.shows("/login [WAY]").rpartition("Keys and commands")[2]
