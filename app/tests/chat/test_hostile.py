"""Whatever an agent says, wherever it says it: the terminal does nothing of it, and all of it is shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from app.tests.chat.test_chat import CHATTY, SAID
from app.tests.support.terminal import chat

if TYPE_CHECKING:
    from pathlib import Path

    from app.tests.support.terminal import Window

STEERING = re.compile("[\u202a-\u202e\u2066-\u2069\x80-\x9f\x07\x08]")


def unharmed(window: Window) -> None:
    """Check that the terminal is as it was."""
    assert "owned" not in window.about("pane_title")
    assert window.tmux("list-buffers") == ""  # nothing got into the clipboard
    assert window.about("alternate_on") == "0"
    assert not STEERING.search(window.scrollback())


def test_nothing_an_agent_says_reaches_the_terminal_as_more_than_text(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path, columns=200, rows=60) as window:
        window.shows("Chatty␛]52;c;ZXZpbA==␇")
        window.say("something said before")
        window.shows("You said: something said before")
        window.type("/")
        window.shows("Be hostile␛]52")
        window.press("C-u")
        window.say("/evil")
        window.shows("[y] Allow")
        window.press("y")
        window.shows("label␛]52")
        window.say("me")
        window.shows("still here")
        window.shows_no_more("working")
        text = window.scrollback()
        for part in (
            "thought",
            "text",
            "code",
            "tool",
            "content",
            "diff",
            "question",
            "step",
            "notice",
            "about",
            "form",
        ):
            assert f"{part}␛]52;c;ZXZpbA==␇␛]0;owned␇␛[2J␛[H␛[10A␛[?1049h" in text
        for part in ("place", "file", "field", "printed"):
            assert part in text
        assert "You said: something said before" in text  # the screen was not cleared
        unharmed(window)
        window.press("C-c")
        window.shows("Ctrl-C again to leave")  # nothing was typed by the terminal's own answers
        window.say("/sessions")
        window.shows("title␛]52;c;ZXZpbA==␇")
        window.say("/help")
        window.shows("/bad␛[2J�")
        window.say("/mode")
        window.shows("one  First␛]52")
        unharmed(window)


MORTAL = """
import os, sys, threading, time
from pathlib import Path
from holdfast import Agent

agent = Agent("mortal")
if Path("dead").exists():
    sys.exit(5)

def die_later():
    while not Path("die").exists():
        time.sleep(0.05)
    Path("die").unlink()
    os._exit(7)

threading.Thread(target=die_later, daemon=True).start()

@agent.prompt
async def answer(turn):
    await turn.say(f"You said: {turn.text}.")
"""


def test_enter_in_a_half_typed_line_starts_an_agent_that_died_again_unless_it_dies_at_once(tmp_path: Path) -> None:
    (tmp_path / "mortal.py").write_text(MORTAL)
    with chat("mortal.py", cwd=tmp_path, rows=40) as window:
        window.shows("/help lists keys")
        window.say("one")
        window.shows("You said: one.")
        window.type("half a li")
        (tmp_path / "die").touch()
        window.shows("[r] Start it again with this session (Enter)")
        window.type("ne")
        window.press("Enter")
        window.shows("The agent runs again, in the same session.")
        window.press("C-c")
        window.say("two")
        window.shows("You said: two.")
        (tmp_path / "dead").touch()
        (tmp_path / "die").touch()
        window.shows("[r] Start it again with this session (Enter)")
        window.press("Enter")
        window.shows("[q] Leave (Enter)")
        window.press("Enter")
        assert window.status() == 1


def test_an_agent_that_dies_leaves_its_last_words_and_comes_back_with_the_session(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path, columns=120, rows=40) as window:
        window.shows("Chatty")
        window.say("remember this")
        window.shows("You said: remember this")
        window.say("/die")
        window.shows("✗ The agent exited with status 3")
        window.shows("last words␛]52;c;ZXZpbA==␇␛]0;owned␇")
        window.shows("[r] Start it again with this session (Enter)")
        window.press("r")
        window.shows("The agent runs again, in the same session.")
        window.say("and now?")
        screen = window.shows("You said: and now?")
        assert screen.count("remember this") == 2  # what was shown is not shown again
        unharmed(window)
        window.say("/die")
        window.until(lambda: "The agent is gone." in window.screen(), "not asked")
        window.press("q")
        assert window.status() == 1
        assert re.search(r"holdfast chat --resume sess_\w+ \S*chatty.py", window.scrollback())
    with chat(CHATTY, "--continue", cwd=tmp_path, columns=120, rows=60) as window:
        window.shows("You said: and now?")
        text = window.shows(f"{SAID}/die")
        assert text.index(f"{SAID}remember this") < text.index(f"{SAID}and now?")
        window.until(lambda: window.screen().count("These are my") == 2, "what was said last is not there")
        assert window.screen().count("broken off here: the agent's process died") == 2
        unharmed(window)
