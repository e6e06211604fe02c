"""`holdfast chat` in a real terminal: typed to, and read from the screen."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from app.tests.support.terminal import chat
from core.tests.support.schemas import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = ROOT / "core" / "tests" / "programs"
COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:[34][0-7]|[39]8|9[0-7])[0-9;]*m")
SAID = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
"""Stands before what the user said."""
CHATTY = str(PROGRAMS / "chatty.py")


@pytest.mark.parametrize("protocol", ["1", "2"])
def test_a_conversation_as_one_has_it_every_day(protocol: str, tmp_path: Path) -> None:
    with chat("demo", "--protocol", protocol, cwd=tmp_path, rows=80) as window:
        window.shows("Holdfast demo 1")
        window.say("hello **you**")
        window.shows("hello you")
        window.say("/think")
        window.shows("I have thought about it.")
        window.say("/tool")
        window.shows("the barometer does not answer")
        window.say("/diff")
        window.shows("Two files changed.")
        window.say("/terminal")
        window.shows("It exited with status 0.")
        window.say("/plan")
        window.shows("Done as planned.")
        window.say("/usage")
        window.shows("53k of 200k tokens (26%) · $0.045")
        window.say("/fail")
        screen = window.shows("the turn failed")
        for expected in (
            "┊ Let me think about that.\n",
            "✓ Read thermometer · sensor.txt:1\n  21 °C\n✗ Read barometer\n  there is no barometer\n",
            '  hello.py  +1 -1\n  @@ -1 +1 @@\n  -print("hello")\n  +print("hello, world")\n  new.py  +1 -0\n',
            "✓ Count to three\n",
            "[x] Look\n[x] Think\n[x] Act\n",
        ):
            assert expected in screen
        assert screen.index("┊ Let me") < screen.index("✓ Read thermo") < screen.index("[x] Look")
        assert screen.count("hello **you**") == 1
        assert screen.count("the turn failed") == 1
        assert COLOUR.search(window.scrollback("-e"))


def test_a_command_that_failed_is_not_ticked_and_its_output_keeps_its_indent(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path, columns=60, rows=40) as window:
        window.shows("Chatty")
        window.say("/exit 3")
        window.shows("✗ Run a command · exit status 3")
        screen = window.shows("ran")
        rows = [row for row in screen.split("\n") if "aaaa" in row or "END" in row]
        assert rows == [f"  {'a' * 58}", f"  {'a' * 58}", f"  {'a' * 34}END"]
        window.say("/exit 0")
        window.shows("✓ Run a command\n")


def test_help_always_tells_the_keys(tmp_path: Path) -> None:
    with chat("demo", cwd=tmp_path, rows=60) as window:
        window.shows("Holdfast demo")
        window.say("/help")  # which the demo agent has, too
        window.shows("Ctrl-C stops the turn; twice in a row, or Ctrl-D, leaves.")
        window.shows("/chat:help lists the commands of the chat.")
        window.shows("/think")
    with chat(CHATTY, cwd=tmp_path, rows=60) as window:
        window.shows("Chatty")
        window.say("/help")
        window.shows("Ctrl-C stops the turn; twice in a row, or Ctrl-D, leaves.")


def test_keys_edit_complete_and_bring_back(tmp_path: Path) -> None:
    with chat("demo", cwd=tmp_path, rows=40) as window:
        window.shows("Holdfast demo")
        window.type("first line")
        window.press("M-Enter")
        window.type("second line")
        window.press("Enter")
        window.until(lambda: window.screen().count("second line") == 2, "no answer")
        window.press("Up", "Up")
        window.until(lambda: window.screen().count("first line") == 3, "not brought back")
        window.press("C-c")
        window.until(lambda: window.screen().count("first line") == 2, "not forgotten")
        window.type("/thi")
        window.shows("Think, then answer")
        window.press("Tab", "Enter")
        window.shows("I have thought about it.")
        window.type("/chat:m")
        window.shows("Switch the mode, or show which there are")
        window.press("C-u")
        window.shows_no_more("/chat:m")


def test_what_is_said_while_the_agent_works_is_shown_to_wait_and_is_answered_then(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path, rows=40) as window:
        window.shows("Chatty")
        window.say("/until finished")
        window.shows("working")
        window.say("and then this")
        window.shows("… then: and then this")
        assert "You said: and then this" not in window.screen()
        (tmp_path / "finished").touch()
        window.shows("You said: and then this")
        window.shows_no_more("… then: and then this")


def test_modes_models_and_options_are_switched(tmp_path: Path) -> None:
    with chat("demo", cwd=tmp_path, rows=50) as window:
        window.shows("Ask · Small")
        window.say("/chat:mode")  # the demo agent has a /mode of its own
        window.shows("ask  Ask (now)")
        window.say("/chat:mode auto")
        window.shows("Auto · Small")
        window.say("/model large")
        window.shows("Auto · Large")
        window.say("/model huge")
        window.shows("there is no model huge; there are: small, large")
        window.say("/option tone pirate")
        window.shows("Tone: Pirate")
        window.say("/option verbose true")
        window.shows("Verbose: on")
        window.say("/option")
        window.shows("tone  Tone: Pirate")
        window.shows("verbose  Verbose: on")


TALKER = """
from holdfast import Agent

agent = Agent("talker")
agent.modes({"ask": ("Careful", "Asks before each step"), "auto": "Goes ahead"}, default="ask")
agent.option("tone2", name="Way of talking", values={"dry": ("Dry", "Few words"), "warm": "Warm"}, default="dry",
             description="How to talk")
agent.option("brief", name="Brief answers", default=False, description="One sentence at most")

@agent.prompt
async def answer(turn):
    await turn.say("Hello.")
"""


@pytest.mark.parametrize("protocol", ["1", "2"])
def test_options_and_their_values_are_called_by_their_names_and_described(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "talker.py").write_text(TALKER)
    with chat("talker.py", "--protocol", protocol, cwd=tmp_path, rows=60, columns=100) as window:
        window.shows("/help lists keys")
        window.say("/option")
        window.shows("tone2  Way of talking: Dry — How to talk")
        window.shows("brief  Brief answers: off — One sentence at most")
        window.say("/option tone2")
        window.shows("Way of talking — How to talk:\n  dry  Dry (now) — Few words\n  warm  Warm\n")
        window.say("/option tone2 warm")
        window.shows("✓ Way of talking: Warm")
        window.say("/option brief on")
        window.shows("✓ Brief answers: on")
        window.say("/mode")
        window.shows("ask  Careful (now) — Asks before each step\n  auto  Goes ahead\n")
        window.type("/option tone2 d")
        window.shows("Dry — Few words")
        window.press("C-u")
        window.type("/option b")
        window.shows("Brief answers — One sentence at most")


def test_sessions_are_left_forked_listed_and_resumed(tmp_path: Path) -> None:
    with chat("demo", cwd=tmp_path, rows=60) as window:
        window.shows("Holdfast demo")
        window.say("apples")
        window.until(lambda: window.screen().count("apples") == 2, "no answer")
        window.say("/fork")
        window.shows("You go on in a copy")
        window.say("bananas")
        window.until(lambda: window.screen().count("bananas") == 2, "no answer")
        window.say("/new")
        window.say("cherries")
        window.until(lambda: window.screen().count("cherries") == 2, "no answer")
        window.say("/sessions")
        screen = window.shows("(this one)")
        rows = re.findall(r"  (sess_\w+)  \d{4}-\d\d-\d\d \d\d:\d\d  (\S+)", screen)
        assert sorted(title for _, title in rows) == ["apples", "apples", "cherries"]
        original = rows[2][0]  # the oldest
        window.press("C-l")
        window.say(f"/resume {original[:12]}")
        screen = window.shows("— apples")
        window.until(lambda: window.screen().count("apples") == 3, "the past is not shown")
        assert "bananas" not in window.screen()
        window.say("/resume nonsense")
        window.shows("cannot restore session nonsense: There is no session 'nonsense'")
        window.say("/quit")
        assert window.status() == 0
        assert f"holdfast chat --resume {original} demo" in window.scrollback()


def test_ctrl_c_stops_the_turn_and_a_second_one_leaves(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path) as window:
        window.shows("Chatty")
        window.say("/nap")
        window.shows("◐ Nap")
        window.shows("Good night.")
        window.type("half a thought")
        window.press("C-c")
        window.shows("— cancelled")
        window.shows("⊘ Nap · cancelled")
        window.shows("half a thought")  # stopping the agent does not take away what was being typed
        window.press("C-u")
        window.say("are you there?")
        window.shows("You said: are you there?")
        window.press("C-c")
        window.shows("Ctrl-C again to leave")
        window.press("C-c")
        assert window.status() == 0
        assert re.search(r"holdfast chat --resume sess_\w+ \S*chatty.py", window.scrollback())


def test_an_agent_that_never_answers_can_be_left(tmp_path: Path) -> None:
    with chat("--", "sleep", "90", cwd=tmp_path) as window:
        window.shows("starting -- sleep 90")
        window.press("C-c")
        window.shows("Ctrl-C again to leave")
        window.press("C-c")
        assert window.status() == 0


def test_leaving_in_the_middle_of_a_turn_ends_it(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path) as window:
        window.shows("Chatty")
        window.say("/nap")
        window.shows("Good night.")
        window.press("C-c", "C-c")
        assert window.status() == 0
    with chat(CHATTY, "--continue", cwd=tmp_path) as window:
        window.shows("⊘ Nap · cancelled")
        window.shows("— cancelled")


def test_permission_is_given_by_a_key_that_means_it(tmp_path: Path) -> None:
    with chat("demo", cwd=tmp_path, rows=50) as window:
        window.shows("Holdfast demo")
        window.type("/ask")
        window.press("Enter", "y", "y", "Y")  # typed before anything was asked: no answer
        window.shows("[n] Reject (Enter)")
        assert "It flies" not in window.screen()
        window.press("Enter")
        window.shows("not allowed")
        window.shows("yyY")
        window.press("C-u")
        window.say("/ask")
        window.shows("[y] Allow")
        window.press("x", "Escape")
        window.until(lambda: window.screen().count("not allowed") == 2, "Escape does not refuse")
        window.say("/ask")
        window.shows("[y] Allow")
        window.press("y")
        window.shows("It flies.")
        window.shows("✓ May I launch the rocket? Allow")
        window.say("/ask")
        window.shows("[y] Allow")
        window.press("C-c")
        window.shows("— cancelled")
        window.shows_no_more("[y] Allow")


@pytest.mark.requirement("P13")
def test_nobody_agrees_to_what_is_not_shown(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path, rows=50) as window:
        window.shows("Chatty")
        window.say("/risk")
        window.shows("[y] Allow")
        shown = "".join(window.scrollback().split())
        assert "harmless;touchHIDDEN1" in shown  # the end of what is asked about
        assert "harmless;touchHIDDEN2?" in shown  # and the end of the question
        assert "(all of it stands above)" in " ".join(window.screen().split())
        window.press("n")
        window.shows("allowed: False")


@pytest.mark.requirement("P13")
def test_a_command_of_5000_characters_that_disguises_itself_is_shown_whole_in_a_small_window(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path, columns=80, rows=24) as window:
        window.shows("Chatty")
        window.say("/disguise")
        window.shows("[y] Allow")
        shown = window.scrollback()
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x80-\x9f]", shown)
        words = "".join(shown.split())
        assert "".join(f"w{n}" for n in range(1_000)) in words
        assert "touchHIDDEN" in words
        assert "␛[8m␛[2K␛[1A" in words  # nothing of it steered the terminal
        window.press("n")
        window.shows("allowed: False")


def test_forms_are_filled_in_field_by_field_and_without_colours_where_none_are_wanted(tmp_path: Path) -> None:
    with chat("demo", cwd=tmp_path, rows=50, env={"NO_COLOR": "1"}) as window:
        window.shows("Holdfast demo")
        window.say("/form")
        window.shows("Your name (Esc to decline)")
        window.press("Enter")
        window.shows("this one is needed")
        window.say("Ann")
        window.shows("age (a whole number")
        window.say("-4")
        window.shows("it must be at least 0")
        window.press("C-u")
        window.say("33")
        window.shows("2 M")
        window.say("2")
        window.shows("Hello, Ann.")
        window.shows("You answered: name: Ann, age: 33, size: M")
        window.say("/form")
        window.shows("Your name (Esc to decline)")
        window.press("Escape")
        window.shows("You did not say.")
        window.say("/diff")
        window.shows("Two files changed.")
        assert not COLOUR.search(window.scrollback("-e"))


def test_the_window_changes_its_size_while_the_agent_speaks(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path, columns=80, rows=24) as window:
        window.shows("Chatty")
        window.say("/slowly 200")
        for word, columns, rows in (("w25", 40, 24), ("w62", 70, 12), ("w102", 25, 10), ("w142", 90, 30)):
            window.has_shown(f"{word} ")
            window.resize(columns, rows)
        window.has_shown("all said")
        window.shows_no_more("working")
        text = window.scrollback()
        words = re.findall(r"w\d+", text[text.index("/slowly") :])
        assert list(dict.fromkeys(words)) == [f"w{n}" for n in range(200)], "nothing is lost, and all is in order"
        # A terminal rewraps its lines before it tells us: a paragraph painted in that instant is left there, too.
        assert len(words) <= 200 + 2 * 10, "at most the paragraph being written is there twice, for each narrowing"
        assert "working" not in text


def test_ten_thousand_lines_are_all_there_and_in_order(tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path) as window:
        window.shows("Chatty")
        window.say("/lines 10000")
        window.shows("all said")
        window.shows_no_more("working")
        lines = [line for line in window.lines() if line.startswith("line ")]
        assert lines == [f"line {n}" for n in range(10_000)]


@pytest.mark.parametrize("columns", [20, 47])
def test_text_of_any_width_stays_whole(columns: int, tmp_path: Path) -> None:
    with chat(CHATTY, cwd=tmp_path, columns=columns, rows=50) as window:
        window.shows("Chatty")
        window.say("/wide")
        window.shows("22")
        window.shows_no_more("working")
        lines = [line.rstrip() for line in window.screen().split("\n")]
        whole = "日本語の文字は二桁の幅があります。" * 4
        first = next(n for n, line in enumerate(lines) if line.startswith("日本語"))
        rows = lines[first : lines.index("", first)]
        assert "".join(rows) == whole
        assert {len(row) for row in rows[:-1]} == {columns // 2}
        assert any("👩" in line for line in lines)
        if columns > 20:
            table = [line for line in lines if re.fullmatch(r"(名前|東京|x) +(n|1|22)", line)]
            assert len(table) == 3
            assert len({_columns(row.rpartition(" ")[0]) for row in table}) == 1


def _columns(text: str) -> int:
    return sum(2 if ord(character) > 0x2E80 else 1 for character in text)


def test_a_terminal_that_can_do_nothing_will_do(tmp_path: Path) -> None:
    with chat("demo", cwd=tmp_path, env={"TERM": "dumb"}, rows=40) as window:
        window.shows("Holdfast demo")
        window.say("hello **you**")
        window.until(lambda: window.screen().count("hello **you**") == 3, "no answer")
        window.say("/ask")
        window.shows("[y] Allow")
        window.say("y")
        window.shows("It flies.")
        window.say("/sleep 60")
        window.until(lambda: window.screen().count("/sleep 60") == 2, "not said")
        window.press("C-c")
        window.shows("cancelled")
        window.press("C-d")
        assert window.status() == 0
        assert "\x1b" not in window.scrollback("-e")


@pytest.mark.parametrize("bare", [True, False], ids=["bare", "wrapped"])
def test_an_agent_of_somebody_else(bare: bool, tmp_path: Path) -> None:
    other = str(PROGRAMS / "sdk_agent.py")
    with chat(*["--bare"] * bare, "--", sys.executable, other, cwd=tmp_path, rows=40) as window:
        window.shows("[1] With a key")
        window.press("1")
        window.shows("other 7")
        window.say("/mode bold")
        window.shows("Mode: Bold")
        window.say("what is here")
        screen = window.shows("[y] Yes, do it")
        assert "○ Look around\n  Input\n  ls -l\n" in screen  # nobody agrees to what is not shown
        window.press("y")
        window.shows("That is all.")
        screen = window.shows("✓ Look around")
        assert "┊ Well," in screen and "# what" not in screen
        window.say("/sessions")
        window.shows("this agent cannot list its sessions" if bare else "(this one)")
        window.press("C-d")
        assert window.status() == 0
        assert ("To go on" in window.scrollback()) is not bare  # it cannot by itself, and wrapped it can


def test_why_something_failed_is_told(tmp_path: Path) -> None:
    odd = (sys.executable, str(PROGRAMS / "odd_agent.py"))
    with chat("--bare", "--", *odd, cwd=tmp_path, rows=40) as window:
        window.shows("/help lists keys and commands.")
        window.say("explain")
        window.shows("Internal error: The key has expired")
    with chat("--bare", "--", *odd, "dies talking", cwd=tmp_path, rows=40) as window:
        window.has_shown("✗ The agent exited with status 4")  # tmux moves the first line up when a program ends
        window.shows("Please log in first:")
        assert window.status() == 1


def test_the_picture_in_the_readme_is_of_a_real_chat(tmp_path: Path) -> None:
    script = ROOT / "docs" / "pictures" / "chat.py"
    subprocess.run((sys.executable, str(script), str(tmp_path / "chat.svg")), check=True, timeout=50)
    assert (tmp_path / "chat.svg").read_text() == script.with_suffix(".svg").read_text()


@pytest.mark.parametrize("protocol", ["1", "2"])
@pytest.mark.requirement("P13")
@pytest.mark.requirement("C9")
def test_a_command_that_is_asked_about_is_shown_and_an_address_is_done_with(protocol: str, tmp_path: Path) -> None:
    with chat(CHATTY, "--protocol", protocol, cwd=tmp_path, columns=100, rows=60) as window:
        window.shows("Chatty")
        window.say("/visit")
        window.shows("[y]")
        screen = window.shows("Run this first?")
        assert "make clean; touch HIDDEN3" in screen and "The build is stale." in screen and str(tmp_path) in screen
        window.type("y")
        window.shows("I have been there")
        window.type("y")
        window.shows("Done: Log in there")
        window.shows("you have been there")
