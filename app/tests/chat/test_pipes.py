"""`holdfast chat` in a pipe: one answer, or one line after the other, and how it exits."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from app.tests.chat.test_chat import CHATTY, SAID
from app.tests.chat.test_logins import BANK

if TYPE_CHECKING:
    from pathlib import Path


def holdfast(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "holdfast", "chat", *arguments)
    env = {"HOLDFAST_STORE": str(cwd / "store" / "sessions.db"), "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"}
    return subprocess.run(
        command, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, timeout=90, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("--protocol", "1"), "hi there\n"),
        (("--protocol", "2", "--prompt", "/tool"), "It is 21 °C; the barometer does not answer.\n"),
    ],
)
def test_only_the_answer_is_printed(arguments: tuple[str, ...], answer: str, tmp_path: Path) -> None:
    done = holdfast("demo", "--print", *arguments, cwd=tmp_path, stdin="hi there\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, answer, "")


def test_the_rest_is_told_on_stderr_to_whoever_wants_it(tmp_path: Path) -> None:
    done = holdfast("demo", "--print", "--verbose", "--prompt", "/tool", cwd=tmp_path)
    assert done.stdout == "It is 21 °C; the barometer does not answer.\n"
    assert "✓ Read thermometer · sensor.txt:1\n  21 °C\n" in done.stderr
    assert re.search(r"^holdfast chat --resume sess_\w+ demo$", done.stderr, re.MULTILINE)
    assert "\x1b" not in done.stderr


def test_permissions_are_denied_unless_allowed(tmp_path: Path) -> None:
    asked = ("demo", "--print", "--verbose", "--prompt", "/ask")
    assert "not allowed" in holdfast(*asked, "--permissions", "ask", cwd=tmp_path, stdin="y\ny\n").stderr
    assert "It flies." in holdfast(*asked, "--permissions", "allow", cwd=tmp_path).stderr


NARROW = """
from holdfast import Agent
from holdfast.errors import AuthRequired

agent = Agent("narrow")
logged_in = False

@agent.auth("key", name="Use the key", required=False)
async def with_key():
    global logged_in
    logged_in = True

@agent.auth("pin", name="Type the PIN", required=False, terminal=True)
async def with_pin():
    pass

@agent.prompt
async def answer(turn):
    if turn.text == "rewrite":
        await turn.say("Good morning.")
        await turn.rewrite("Good evening.")
    elif turn.text == "ask":
        await turn.say(str(await turn.allow("May I?")))
    elif not logged_in:
        raise AuthRequired("Your key, please", {"methods": ["key"]})
    else:
        await turn.say("You are rich.")
"""


def test_what_is_refused_because_nobody_can_be_asked_is_told_with_what_would_allow_it(tmp_path: Path) -> None:
    (tmp_path / "narrow.py").write_text(NARROW)
    asked = ("narrow.py", "--print", "--prompt", "ask")
    done = holdfast(*asked, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "False\n")
    assert "refused: May I?" in done.stderr and "--permissions allow" in done.stderr
    assert "--approve-reads" in done.stderr and done.stderr.count("\n") == 1
    meant = holdfast(*asked, "--permissions", "deny", cwd=tmp_path)
    assert (meant.stdout, meant.stderr) == ("False\n", "")


def test_how_to_log_in_is_told_where_nobody_can_be_asked_and_done_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "narrow.py").write_text(NARROW)
    done = holdfast("narrow.py", "--print", "--prompt", "hello", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-3:] == [
        "holdfast: Your key, please",
        "  Use the key: /login key in `holdfast chat narrow.py`",
        "  Type the PIN: run `holdfast run narrow.py --login pin` in a terminal",
    ]
    said = holdfast("narrow.py", cwd=tmp_path, stdin="hello\n/login\n/login nothing\n/login key\nhello\nask\n").stdout
    assert "The agent wants you to log in: type /login key, then say it again." in said
    assert "Use the key: /login key" in said  # of /login, which nobody here can choose from
    assert "there is no way to log in called nothing; there are: /login key (Use the key)" in said
    assert "Logged in: Use the key" in said and "You are rich." in said
    assert "refused: May I?" in said and "○" not in said


def test_a_message_said_again_in_other_words_is_a_paragraph_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "narrow.py").write_text(NARROW)
    done = holdfast("narrow.py", "--print", "--prompt", "rewrite", cwd=tmp_path)
    assert done.stdout == "Good morning.\n\nGood evening.\n"


def test_what_a_broken_file_says_is_printed_once(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f()\n")
    done = holdfast("broken.py", "--print", "--prompt", "x", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.count("expected ':'") == 1
    assert done.stderr == "holdfast: broken.py:1: expected ':'\n"


CLERK = """
from holdfast import Agent

agent = Agent("clerk")

@agent.prompt
async def answer(turn):
    await turn.say(str(await turn.ask("Where to?", {"city": {"type": "string"}})))
    await turn.say(str(await turn.ask_url("Pay the fare", "https://example.org/pay")))
"""


def test_a_form_that_nobody_can_fill_in_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "clerk.py").write_text(CLERK)
    for protocol in ("1", "2"):
        done = holdfast("clerk.py", "--print", "--prompt", "go", "--protocol", protocol, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "NoneFalse\n")
        assert done.stderr == (
            "holdfast: Nobody can be asked here, so this was declined: Where to?; Pay the fare https://example.org/pay"
            " Answer it in `holdfast chat` in a terminal.\n"
        )
        said = holdfast("clerk.py", "--protocol", protocol, cwd=tmp_path, stdin="go\n").stdout
        assert "so this was declined: Where to? Answer it" in said and "Pay the fare https://example.org/pay" in said


@pytest.mark.parametrize("protocol", ["1", "2"])
def test_a_login_that_needs_a_terminal_is_told_with_its_command_in_a_pipe(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "bank.py").write_text(BANK)
    done = holdfast("bank.py", "--protocol", protocol, cwd=tmp_path, stdin="hello\n")
    assert done.returncode == 1
    assert "Paste a key: run `holdfast run bank.py --login paste` in a terminal" in done.stdout + done.stderr
    later = BANK.replace("terminal=True", "terminal=True, required=False")
    (tmp_path / "bank.py").write_text(later.replace("    await turn.say", "    raise AuthRequired('Your key')  #"))
    said = holdfast("bank.py", "--protocol", protocol, cwd=tmp_path, stdin="hello\n").stdout
    assert "The agent wants you to log in:\n  Paste a key: run `holdfast run bank.py --login paste`" in said


READER = """
from holdfast import Agent

agent = Agent("reader")

@agent.prompt
async def answer(turn):
    for kind in ("read", "search", "edit", "execute"):
        async with turn.tool(f"Find and {kind}", kind=kind) as call:
            await turn.say(f"{kind}: {await turn.allow(call.title, call)}\\n\\n")
"""


@pytest.mark.requirement("P13")
def test_what_only_reads_is_allowed_where_that_is_wanted_by_its_kind_and_not_by_its_title(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(READER)
    for protocol in ("1", "2"):
        asked = ("reader.py", "--print", "--approve-reads", "--protocol", protocol)
        done = holdfast(*asked, cwd=tmp_path, stdin="go")
        said = done.stdout.split()
        assert said == ["read:", "True", "search:", "True", "edit:", "False", "execute:", "False"], done.stderr
    clash = holdfast(*asked, "--permissions", "allow", cwd=tmp_path, stdin="go")
    assert clash.returncode == 2 and "choose one" in clash.stderr


def test_programs_get_every_message_or_the_last_one_alone(tmp_path: Path) -> None:
    done = holdfast("demo", "--print", "--format", "json", "--prompt", "/tool", cwd=tmp_path)
    frames = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and all(frame["jsonrpc"] == "2.0" for frame in frames)
    assert [frame["method"] for frame in frames if "id" in frame and "method" in frame] == [
        "initialize", "session/new", "session/prompt",
    ]  # fmt: skip
    said = [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]
    assert any(update["sessionUpdate"] == "agent_message_chunk" for update in said)
    hostile = holdfast(CHATTY, "--print", "--format", "json", "--prompt", "/evil", cwd=tmp_path)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", hostile.stdout)
    quiet = holdfast("demo", "--print", "--format", "quiet", "--prompt", "/tool", cwd=tmp_path)
    assert quiet.stdout == "It is 21 °C; the barometer does not answer.\n"


def test_an_agent_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    done = holdfast("demo", "--print", "--timeout", "3", "--prompt", "/sleep 1000", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "holdfast: the agent was not done after 3 s\n")
    assert "go with --print" in holdfast("demo", "--timeout", "3", cwd=tmp_path).stderr


def test_a_turn_that_does_not_end_well_is_an_error(tmp_path: Path) -> None:
    done = holdfast("demo", "--print", "--prompt", "/fail", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "This will not end well. \n")
    assert done.stderr.startswith("holdfast: ") and done.stderr.count("\n") == 1
    done = holdfast(CHATTY, "--print", "--prompt", "/die", cwd=tmp_path)
    assert done.returncode == 1
    assert "exited with status 3" in done.stderr and "last words␛]52" in done.stderr


def test_hostile_text_in_a_pipe_is_only_text(tmp_path: Path) -> None:
    done = holdfast(CHATTY, "--print", "--verbose", "--prompt", "/evil", cwd=tmp_path)
    assert done.returncode == 0
    for printed in (done.stdout, done.stderr):
        assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", printed)
        assert "␛]52;c;ZXZpbA==␇" in printed


def test_nobody_reading_the_answer_is_no_reason_to_complain(tmp_path: Path) -> None:
    command = f"{sys.executable} -m holdfast chat {CHATTY} --print --prompt '/lines 30000' | head -2"
    env = {"HOLDFAST_STORE": str(tmp_path / "s.db"), "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"}
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=90, check=False
    )
    assert (done.stdout, done.stderr) == ("line 0\nline 1\n", "")


def test_lines_of_a_pipe_are_said_one_after_the_other(tmp_path: Path) -> None:
    done = holdfast("demo", cwd=tmp_path, stdin="one\n\n/ask\ny\n/form\n/plan\n")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    said = re.findall(f"^{SAID}(.*)$", done.stdout, re.MULTILINE)
    assert said == ["one", "/ask", "y", "/form", "/plan"]  # what comes from a pipe answers no question
    assert "not allowed" in done.stdout and "You did not say." in done.stdout and "[x] Act" in done.stdout
    assert done.stderr == ""


def test_a_session_is_continued_or_an_error_and_never_silently_new(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "store" / "sessions.db"))
    holdfast("demo", "--print", "--prompt", "/history", cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = holdfast("demo", *store, "--print", "--continue", "--prompt", "x", cwd=elsewhere)
    assert (done.returncode, done.stdout) == (1, "")
    assert "has no session in" in done.stderr and "begin one without --continue" in done.stderr
    done = holdfast("demo", "--continue", cwd=tmp_path, stdin="/history\n")
    assert done.stdout.count(f"{SAID}/history") == 2 and "You asked 2 times." in done.stdout
    session = re.search(r"--resume (sess_\w+)", done.stdout)
    assert session is not None
    done = holdfast("demo", *store, "--print", "--resume", session[1][5:15], "--prompt", "/history", cwd=elsewhere)
    assert done.stdout == "You asked 3 times.\n"  # it is found wherever one is
    done = holdfast("demo", "--resume", "nonsense", cwd=tmp_path, stdin="hello\n")
    assert done.returncode == 1 and "cannot restore session nonsense" in done.stderr and "hello" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("nowhere.py",), 1, "any other agent is given by its command: holdfast chat -- nowhere.py"),
        (("--", "no-such-program"), 1, "cannot start 'no-such-program'"),
        (("--",), 2, "name an agent, or give a command"),
        (("demo", "--", "x"), 2, "name an agent, or give a command"),
        (("demo", "--print", "good", "day"), 2, "behind --prompt: holdfast chat demo --prompt 'good day'"),
        (("gemini", "acp"), 2, "holdfast chat -- gemini acp"),
        (("http://127.0.0.1:1/acp", "--print", "--prompt", "x"), 1, "127.0.0.1:1 cannot be reached: nothing listens"),
        (("demo", "--continue", "--resume", "x"), 2, "choose one"),
        (("demo", "--print"), 1, "there is nothing to say"),
        (("--", "true"), 1, "exited with status 0"),
        (("--bare", "--store", "x.db", "--", "true"), 1, "--store and --bare do not go together"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_what_to_do(arguments: tuple[str, ...], status: int, says: str, tmp_path: Path) -> None:
    done = holdfast(*arguments, cwd=tmp_path)
    assert done.returncode == status
    assert says in done.stderr + done.stdout
    assert "Traceback" not in done.stderr and "initialize" not in done.stderr


def test_without_a_name_it_is_the_demo_agent_and_says_so(tmp_path: Path) -> None:
    done = holdfast(cwd=tmp_path, stdin="hello\n")
    assert "This is the demo agent: no agent was named" in done.stdout
    assert done.stdout.count("hello") == 2


def test_the_coding_agent_is_told_its_model_and_where_it_is(tmp_path: Path) -> None:
    model = ("--model", "sage", "--base-url", "http://127.0.0.1:9/v1")  # where nobody listens
    done = holdfast("code", *model, "--print", "--prompt", "hi", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "The provider of sage cannot be reached" in done.stderr
