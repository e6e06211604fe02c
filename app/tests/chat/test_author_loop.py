"""What an author sees of an agent while writing it: failures, prints, warnings, a blocked loop, the wire, reloading."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

PATIENCE = 60.0

AGENT = """
import time
import warnings
from holdfast import Agent, Turn

agent = Agent("clumsy")


def divide(by: int) -> float:
    return 1 / by


@agent.prompt
async def answer(turn: Turn) -> None:
    print("printed:", turn.text)
    match turn.text:
        case "fail":
            divide(0)
        case "forget":
            turn.say("never seen")
        case "warn":
            warnings.warn("old ways", DeprecationWarning)
        case "block":
            time.sleep(4)
        case "return":
            return "never seen"
    await turn.say("Done.")
"""


def environment(place: Path) -> dict[str, str]:
    return {"HOLDFAST_STORE": str(place / "store" / "sessions.db"), "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"}


def holdfast(*arguments: str, place: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "holdfast", *arguments)
    return subprocess.run(
        command,
        cwd=place,
        env=environment(place),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "clumsy.py").write_text(AGENT)
    return tmp_path


@pytest.mark.requirement("P6")
def test_an_author_sees_what_the_code_does_wrong(place: Path) -> None:
    done = holdfast("chat", "clumsy.py", place=place, stdin="fail\nforget\nwarn\nblock\nreturn\n")
    seen = done.stdout
    assert seen.index("The agent failed;") < seen.index("ZeroDivisionError: division by zero")
    assert (done.returncode, done.stderr) == (0, "")
    line = {text: number for number, text in enumerate(AGENT.split("\n"), 1)}
    assert f'clumsy.py", line {line["    return 1 / by"]}, in divide' in seen
    assert "ZeroDivisionError: division by zero" in seen
    assert "holdfast/agent/author_session.py" not in seen  # the author's frames, and no others
    assert "printed: fail" in seen
    forgotten = line['            turn.say("never seen")']
    assert f"clumsy.py:{forgotten}: RuntimeWarning: coroutine 'Turn.say' was never awaited: write `await`" in seen
    assert "DeprecationWarning: old ways" in seen
    assert "The event loop is blocked, here:" in seen and "time.sleep(4)" in seen and "asyncio.to_thread" in seen
    assert re.search(r"the handler answer \(.*clumsy.py:\d+\) returned a string, .*`await turn.say", seen)
    assert seen.count("Done.") == 3

    # What a client is shown leads to the traceback, from any terminal.
    reference = re.findall(r"The agent failed; `holdfast logs` shows why \(reference (ref_\w+)\)", seen)[0]
    found = holdfast("logs", reference[:20], place=place)
    assert (
        found.returncode == 0
        and "ZeroDivisionError" in found.stdout
        and "holdfast/agent/author_session.py" in found.stdout
    )
    # Where it is printed, and in the log of `holdfast run`, the last line is the cause.
    printed = holdfast("chat", "clumsy.py", "--print", "--prompt", "fail", place=place)
    assert printed.returncode == 1 and printed.stdout == ""
    assert printed.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "The agent failed" in printed.stderr and "holdfast/agent" not in printed.stderr

    listed = holdfast("logs", place=place).stdout.splitlines()
    assert reference in listed[0] and listed[0].endswith("ZeroDivisionError: division by zero")
    assert any("was never awaited" in entry for entry in listed)
    missing = holdfast("logs", "ref_unknown", place=place)
    assert missing.returncode == 1 and "--store FILE" in missing.stderr
    assert holdfast("logs", "last", "--json", place=place).stdout.startswith('{"time":')


def test_a_forgotten_await_is_told_of_in_every_turn_that_has_it(place: Path) -> None:
    done = holdfast("chat", "clumsy.py", place=place, stdin="forget\nhello\nforget\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("'Turn.say' was never awaited: write `await`") == 2


def test_the_wire_is_shown_in_both_directions_by_the_chat_and_by_run(place: Path) -> None:
    done = holdfast("chat", "clumsy.py", "--wire", "--print", "--prompt", "hello", place=place)
    assert done.stdout == "Done.\n"
    assert re.search(r"client → agent  session/prompt #\d+  \{.*hello", done.stderr)
    assert re.search(r"agent → client  session/update  \{.*Done\.", done.stderr)
    assert "printed: hello" in done.stderr
    agent = f"{sys.executable} -m holdfast run clumsy.py --wire-file wire.txt"
    done = holdfast("chat", "--print", "--prompt", "hello", "--", *agent.split(), place=place)
    assert (done.stdout, done.stderr) == ("Done.\n", "")
    wire = (place / "wire.txt").read_text()
    assert re.search(r"client → agent  session/prompt #\d+  \{.*hello", wire)
    assert re.search(r"agent → client  answer to session/prompt #\d+ \(\d", wire)


DECLARED = "from holdfast import Agent\nagent = Agent('a')\n\n"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = (\n", r"broken\.py:1: '\(' was never closed\n$"),
        ("def f():\n    return 1 / 0\n\nf()\n", r'broken\.py", line 2, in f\n(.*\n)*ZeroDivisionError'),
        ("import nothing_like_this\n", r"broken\.py:1: No module named 'nothing_like_this'\n$"),
        (
            f"{DECLARED}@agent.prompt\nasync def one(turn): ...\n\n@agent.prompt\nasync def two(turn): ...\n",
            r"broken\.py:7: the agent 'a' has two prompt handlers, one and two; .*\n$",
        ),
        (
            DECLARED + 2 * "@agent.command('x', 'X')\nasync def one(turn): ...\n\n",
            r"broken\.py:7: there is a command /x already, one; .*\n$",
        ),
        (
            f"{DECLARED}@agent.prompt\nasync def one(): ...\n",
            r"broken\.py:4: a prompt handler is called with other arguments .*`async def one\(turn\)`\n$",
        ),
    ],
)
def test_a_file_that_cannot_be_loaded_says_where(source: str, told: str, place: Path) -> None:
    (place / "broken.py").write_text(source)
    done = holdfast("run", "broken.py", place=place)
    assert done.returncode == 1 and re.search(told, done.stderr)
    assert "importlib" not in done.stderr


class Terminal:
    """A chat whose input and output are pipes."""

    def __init__(self, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self.seen = ""
        os.set_blocking(stdout.fileno(), False)

    def say(self, line: str) -> None:
        self._stdin.write(f"{line}\n".encode())
        self._stdin.flush()

    def shows(self, text: str) -> None:
        """Wait until a text is shown after what was waited for last."""
        give_up = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert time.monotonic() < give_up, f"{text!r} was not shown:\n{self.seen}"
            self.seen += (self._stdout.read() or b"").decode(errors="replace")
            time.sleep(0.02)
        self.seen = self.seen.partition(text)[2]


@contextmanager
def chatting(*arguments: str, place: Path) -> Generator[Terminal]:
    command = (sys.executable, "-m", "holdfast", "chat", *arguments)
    with subprocess.Popen(
        command, cwd=place, env=environment(place), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield Terminal(process.stdin, process.stdout)
            process.stdin.close()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


REMEMBERING = """
from holdfast import Agent, Turn

agent = Agent("remembering")


@agent.prompt
async def answer(turn: Turn) -> None:
    turn.session.state["count"] = turn.session.state.get("count", 0) + 1
    await turn.say(f"WORD {turn.session.state['count']}.")
"""


@pytest.mark.timeout(150)
def test_a_changed_file_starts_the_agent_again_in_the_same_session(tmp_path: Path) -> None:
    file = tmp_path / "remembering.py"
    file.write_text(REMEMBERING.replace("WORD", "Old"))
    with chatting("remembering.py", "--reload", place=tmp_path) as terminal:
        terminal.say("one")
        terminal.shows("Old 1.")
        file.write_text(REMEMBERING.replace("WORD", "New"))
        terminal.shows("remembering.py has changed.")
        terminal.shows("The agent runs again, in the same session.")
        terminal.say("two")
        terminal.shows("New 2.")
        file.write_text("agent = (\n")
        terminal.shows("was never closed")
        terminal.shows("Waiting for a change of remembering.py.")
        file.write_text(REMEMBERING.replace("WORD", "Newest"))
        terminal.shows("The agent runs again, in the same session.")
        terminal.say("three")
        terminal.shows("Newest 3.")
