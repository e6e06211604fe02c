"""`holdfast chat` and what goes on beside the turns: shown by its title, with its output, listed, and stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.tests.chat.test_pipes import holdfast
from app.tests.support.terminal import chat

if TYPE_CHECKING:
    from pathlib import Path

AGENT = """
import asyncio, sys
from pathlib import Path
from holdfast import Agent

agent = Agent("gardener")
COUNTER = '''
import os, time
while not os.path.exists("enough"):
    for name in sorted(os.listdir(".")):
        if name.endswith(".line"):
            print("saw", name, flush=True)
            os.remove(name)
    time.sleep(0.05)
print("enough seen", flush=True)
'''

@agent.prompt
async def answer(turn):
    if turn.text == "serve":
        async with turn.tool("A server", kind="execute") as call:
            await call.start_terminal(sys.executable, "-c", COUNTER)
        await turn.say("It runs.")
        return
    async def work():
        while not Path("ripe").exists():
            await asyncio.sleep(0.05)
        await call.text("grown")
    async with turn.tool("Grow") as call:
        call.go_on(work())
    await turn.say("It grows.")
"""

pytestmark = pytest.mark.requirement("C13")


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    (tmp_path / "gardener.py").write_text(AGENT)
    return tmp_path


@pytest.mark.parametrize("protocol", ["1", "2"])
def test_what_goes_on_has_its_title_and_its_output_when_it_ends(protocol: str, garden: Path) -> None:
    with chat("gardener.py", "--protocol", protocol, cwd=garden, rows=60) as window:
        window.shows("gardener")
        window.say("grow")
        window.shows("It grows.")
        window.shows("◐ Grow")
        (garden / "ripe").touch()
        window.shows("✓ Grow\n  grown\n")
        window.say("serve")
        window.shows("It runs.")
        (garden / "1.line").touch()
        window.shows("A server\n  saw 1.line\n")
        (garden / "2.line").touch()
        screen = window.shows("  saw 1.line\n  saw 2.line\n")
        assert "call_" not in screen and "```" not in screen
        window.say("/details")
        window.until(lambda: window.scrollback().count("saw 2.line") > 1, "not in the details")
        (garden / "enough").touch()
        window.shows("enough seen")


def test_what_goes_on_is_listed_and_stopped_alone(garden: Path) -> None:
    with chat("gardener.py", "--protocol", "2", cwd=garden, rows=60) as window:
        window.shows("gardener")
        window.say("/jobs")
        window.shows("nothing goes on in the background")
        window.say("grow")
        window.shows("1 in the background: /jobs")
        window.say("serve")
        window.shows("2 in the background: /jobs")
        window.say("/jobs")
        window.shows("  1  Grow\n  2  A server: ")
        window.say("/stop 3")
        window.shows("say which one by its number, as in /stop 1")
        window.say("/stop")
        window.shows("Stop which one?")
        window.press("Enter")
        window.has_shown("⊘ Grow")
        window.shows("1 in the background: /jobs")
        window.say("/stop")
        window.has_shown("✗ A server · signal 15")
        window.shows_no_more("in the background: /jobs")


def test_version_1_is_said_not_to_tell_what_goes_on(garden: Path) -> None:
    with chat("gardener.py", "--protocol", "1", cwd=garden) as window:
        window.shows("gardener")
        window.say("/stop")
        window.shows("version 1 of the protocol")


@pytest.mark.parametrize("protocol", ["1", "2"])
def test_what_ends_with_the_agent_is_told_when_the_chat_ends(protocol: str, garden: Path) -> None:
    done = holdfast("gardener.py", "--protocol", protocol, "--print", "--prompt", "grow", cwd=garden)
    assert (done.returncode, done.stdout) == (0, "It grows.\n")
    assert done.stderr == "holdfast: Cancelled, because the agent ends with the chat: Grow\n"
    said = holdfast("gardener.py", "--protocol", protocol, cwd=garden, stdin="grow\n").stdout
    assert "Cancelled, because the agent ends with the chat: Grow\n" in said
    (garden / "ripe").touch()
    assert holdfast("demo", "--print", "--prompt", "/tool", cwd=garden).stderr == ""
