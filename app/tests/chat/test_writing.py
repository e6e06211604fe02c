"""Writing prompts in a real terminal: several lines, files, images, commands, what was said before, other sessions."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from app.tests.support.terminal import chat
from core.tests.support.schemas import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CHATTY = str(ROOT / "core" / "tests" / "programs" / "chatty.py")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_lines_are_broken_found_again_and_written_in_an_editor(tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "edited: %s" "$(cat "$1")" > "$1.new"; mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    with chat(CHATTY, cwd=tmp_path, rows=50, env={"EDITOR": str(editor), "VISUAL": ""}) as window:
        window.shows("Chatty")
        window.type("/blocks one")
        window.press("C-j")
        window.type("two")
        window.tmux("send-keys", "-H", *(f"{code:x}" for code in b"\x1b[27;2;13~"))  # Shift-Enter
        window.type("three")
        window.press("Enter")
        window.shows('"one\\ntwo\\nthree"')
        window.say("/blocks another")
        window.shows('"another"')
        window.press("C-r")
        window.type("one")
        window.shows("I-search")
        window.press("Enter", "Enter")
        window.until(lambda: window.screen().count('✓ said "one\\ntwo\\nthree"') == 2, "it was not found again")
        window.type("/blocks draft")
        window.press("C-x", "C-e")
        window.shows("edited: /blocks draft")
        window.press("C-c")
        window.shows_no_more("edited: /blocks draft")


def test_escape_stops_the_turn_and_closes_menus(tmp_path: Path) -> None:
    with chat("demo", cwd=tmp_path, rows=40) as window:
        window.shows("Holdfast demo")
        window.say("/sleep 100")
        window.shows("working")
        window.press("Escape")
        window.shows("cancelled")
        window.shows_no_more("working")
        window.type("/thi")
        window.shows("Think, then answer")
        window.press("Escape")
        window.shows_no_more("Think, then answer")


def test_files_are_named_completed_and_sent_only_from_inside_the_directory(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "weather.py").write_text("degrees = 21\n")
    (project / "large.txt").write_text("x" * 100_000)
    (tmp_path / "secret.txt").write_text("hidden")
    (project / "out").symlink_to(tmp_path / "secret.txt")
    with chat(CHATTY, cwd=project, rows=60, columns=120) as window:
        window.shows("Chatty")
        window.type("/blocks see @weat")
        window.shows("@src/weather.py")
        window.press("Tab")
        window.shows("see @src/weather.py")
        window.press("Enter")
        window.shows('resource weather.py "degrees = 21\\n"')
        window.say("/blocks @large.txt")
        window.shows("resource_link large.txt")
        window.say("/blocks @out and @../secret.txt")
        window.shows("@out")
        window.shows("@../secret.txt is no file inside")
        screen = window.shows('"@out and @../secret.txt"\n')
        assert "hidden" not in screen


def test_images_are_pasted_by_name_and_from_the_clipboard(tmp_path: Path) -> None:
    image = tmp_path / "my picture.png"
    image.write_bytes(PNG)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "wl-paste").write_text(f"#!/bin/sh\ncat '{image}'\n")
    (programs / "wl-paste").chmod(0o755)
    path = f"{programs}:/usr/bin:/bin"
    with chat(CHATTY, cwd=tmp_path, rows=50, env={"PATH": path, "WAYLAND_DISPLAY": "w"}) as window:
        window.shows("Chatty")
        window.type("/blocks look ")
        window.tmux("set-buffer", str(image).replace(" ", "\\ "))
        window.tmux("paste-buffer", "-p")
        window.shows("look [image 1]")
        window.press("C-v")
        window.shows("look [image 1][image 2]")
        window.press("Enter")
        window.shows(f"image image/png {len(PNG)}, image image/png {len(PNG)}")


def test_a_command_runs_here_and_its_output_goes_along_if_the_user_wants(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path, rows=50) as window:
        window.shows("Chatty")
        window.say("!echo one-$((1+1)); exit 3")
        window.shows("✗ ! echo one-$((1+1)); exit 3 · exit status 3")
        window.shows("Shall the agent know of this?")
        window.press("y")
        window.shows("It goes along with your next message.")
        window.say("/blocks hello")
        window.shows("one-2")
        window.shows('"hello"')
        window.say("!sleep 1000")
        window.shows("running sleep 1000")
        window.press("Escape")
        window.shows_no_more("running sleep 1000")
        window.say("/blocks again")
        screen = window.shows('said "again"')
        assert "1000" not in screen.split('said "again"')[0].rpartition("again")[2]


def test_a_message_is_said_otherwise_and_that_can_be_undone(tmp_path: Path) -> None:
    with chat("demo", cwd=tmp_path, rows=60) as window:
        window.shows("Holdfast demo")
        for said in ("first words", "second words", "third words"):
            window.say(said)
            window.until(lambda: window.screen().count(said) == 2, "no answer")  # noqa: B023
        window.say("/edit")
        window.shows("Which of your messages do you want to edit?")
        window.type("second")
        window.shows("1 of 1")
        window.press("Enter")
        window.shows("You are editing what you said")
        window.press("C-u")
        window.say("other words")
        window.shows("You go on from before this message, in a copy")
        window.until(lambda: window.screen().count("other words") == 2, "no answer to what was edited")
        window.say("/undo")
        window.shows("— first words")
        window.until(lambda: window.screen().count("third words") >= 4, "it was not undone")
        window.press("Escape", "Escape")
        window.shows("Which of your messages do you want to edit?")
        window.press("Escape")
        window.shows_no_more("Which of your messages")
        window.say("/edit 3")
        window.shows("You are editing what you said")
        window.press("C-u")
        window.say("from the very beginning")
        window.until(lambda: window.screen().count("from the very beginning") == 2, "no answer from the beginning")


def test_a_session_is_picked_from_a_list(tmp_path: Path) -> None:
    for said in ("the red one", "the blue one"):
        with chat("demo", "--prompt", said, cwd=tmp_path) as window:
            window.until(lambda: window.screen().count(said) >= 2, "no answer")  # noqa: B023
            window.press("C-d")
            assert window.status() == 0
    with chat("demo", cwd=tmp_path, rows=40) as window:
        window.shows("Holdfast demo")
        window.say("/resume")
        window.shows("Go on with which session?")
        window.press("Down", "Up")
        window.type("red")
        window.shows("1 of 1")
        window.press("Enter")
        window.shows("— the red one")


def test_an_agent_that_dies_while_a_list_is_open_is_told_of(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path, rows=40) as window:
        window.shows("Chatty")
        window.say("/die-later 2")
        window.shows("soon")
        window.say("/edit")
        window.shows("Which of your messages")
        window.shows("The agent exited with status 7")
        window.shows("[r] Start it again")
        window.press("q")
        assert window.status() == 1


def test_the_user_logs_in_from_the_chat_and_is_told_why_it_fails(tmp_path: Path) -> None:
    agent = tmp_path / "locked.py"
    agent.write_text(LOCKED)
    with chat(str(agent), cwd=tmp_path, rows=40) as window:
        window.shows("The agent wants you to log in")
        window.press("1")
        window.shows("You are not logged in: the key is wrong")
        window.shows("Log in another way")
        window.press("2")
        window.shows("your word:")
        window.say("sesame")
        window.shows("Logged in: By a word")
        window.say("hello")
        window.shows("you are in")


LOCKED = """
from pathlib import Path
from holdfast import Agent
from holdfast.errors import RequestError

agent = Agent("locked")
WORD = Path(__file__).with_name("word")

@agent.auth("key", name="By a key")
async def key():
    raise RequestError("the key is wrong")

@agent.auth("word", name="By a word", terminal=True)
async def word():
    WORD.write_text(input("your word: "))

@agent.logged_in
async def logged_in():
    return WORD.exists()

@agent.prompt
async def answer(turn):
    await turn.say("you are in")
"""


def test_colours_follow_the_terminal(tmp_path: Path) -> None:
    for theme, expected in (("dark", "\x1b[33m"), ("light", "\x1b[35m")):
        with chat("demo", "--theme", theme, "--prompt", "/sleep 60", cwd=tmp_path) as window:
            window.shows("working")
            (line,) = [line for line in window.scrollback("-e").split("\n") if "working" in line]
            assert expected in line
    with chat("demo", "--theme", "light", "--prompt", "/sleep 60", cwd=tmp_path, env={"NO_COLOR": "1"}) as window:
        window.shows("working")
        assert "\x1b[35m" not in window.scrollback("-e")
