"""The plugin as pytest loads it, in a project that has nothing but a test file."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import pytest

from core.tests.support.schemas import ROOT

if TYPE_CHECKING:
    from pathlib import Path

TEST = """
from holdfast import Agent

agent = Agent("small")


@agent.prompt
async def answer(turn):
    await turn.say("WORD")


async def test_it(connect_to, compare_transcript):
    async with connect_to(agent) as client:
        await client.say("hello")
        compare_transcript(client)
"""


def run_pytest(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    known = any(entry.value == "holdfast.testing.pytest_plugin" for entry in entry_points(group="pytest11"))
    loaded = () if known else ("-p", "holdfast.testing.pytest_plugin")  # an environment from before the plugin
    others = ("cacheprovider", "hypothesispytest", "xdist", "anyio", "timeout")  # they only take time
    without = (part for name in others for part in ("-p", f"no:{name}"))
    command = (sys.executable, "-m", "pytest", "-q", *without, *loaded, *arguments)
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.timeout(400)
def test_a_transcript_is_written_compared_and_a_change_is_told(tmp_path: Path) -> None:
    file = tmp_path / "test_small.py"
    file.write_text(TEST)
    missing = run_pytest(cwd=tmp_path)
    assert missing.returncode == 1 and "`pytest --update-transcripts` writes it" in missing.stdout
    assert run_pytest("--update-transcripts", cwd=tmp_path).returncode == 0
    assert (tmp_path / "transcripts" / "it.txt").read_text() == "> hello\nWORD\n= end_turn\n"
    assert run_pytest(cwd=tmp_path).returncode == 0
    file.write_text(TEST.replace("WORD", "OTHER"))
    changed = run_pytest(cwd=tmp_path)
    assert changed.returncode == 1 and "- WORD" in changed.stdout and "+ OTHER" in changed.stdout


@pytest.mark.timeout(150)
def test_the_tests_of_the_documentation_pass() -> None:
    done = run_pytest("-c", "/dev/null", "--rootdir", "examples", "examples/tests", cwd=ROOT)
    assert done.returncode == 0, done.stdout
