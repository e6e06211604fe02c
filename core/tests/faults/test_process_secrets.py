"""What is secret in our environment is not read by the commands that we run (P10). Linux, as a user who is not root."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from core.tests.support.acp import running
from core.tests.support.links import PATIENCE, PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.requirement("P10"),
    pytest.mark.skipif(sys.platform != "linux", reason="other systems show nobody's environment in files"),
]

AGENT = """
import ctypes
from holdfast import Agent

agent = Agent("undumpable")

@agent.prompt
async def answer(turn):
    await turn.say(str(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)))
"""
"""Says what PR_GET_DUMPABLE says of it."""


def read_by_a_command(who: str) -> str:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "unprivileged.py"), who],
        env={**os.environ, "SECRET": "sesame"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout.endswith("looked\n")
    return done.stdout.removesuffix("looked\n")


def test_a_process_that_does_nothing_about_it_can_be_read() -> None:
    assert read_by_a_command("readable") == "SECRET=sesame\n"


@pytest.mark.parametrize("who", ["agent", "guards"])
def test_the_environment_of_an_agent_and_of_its_guards_cannot_be_read(who: str) -> None:
    assert read_by_a_command(who) == ""


async def test_an_agent_that_is_run_is_undumpable(tmp_path: Path) -> None:
    file = tmp_path / "agent.py"
    file.write_text(AGENT)
    async with running(tmp_path / "store.db", str(file)) as client:
        await client.prompt(await client.new(str(tmp_path)), "Are you?")
        assert client.said() == "0"
