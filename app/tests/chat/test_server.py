"""`holdfast chat URL` for somebody who may work in some directories of the server only."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from app.tests.support.remote_process import ServeProcess

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

AGENT = """
from holdfast import Agent

agent = Agent("where")

@agent.prompt
async def answer(turn):
    await turn.say(str(turn.session.cwd))
"""


@pytest.fixture
def server(tmp_path: Path) -> Generator[ServeProcess]:
    (tmp_path / "where.py").write_text(AGENT)
    (tmp_path / "srv").mkdir()
    (tmp_path / "home").mkdir()
    process = ServeProcess(tmp_path, str(tmp_path / "where.py"))
    token = process.tokens.add("ada", [str(tmp_path / "srv")])
    (tmp_path / "ada.token").write_text(token)
    process.start()
    yield process
    process.stop()


def asked(server: ServeProcess, *options: str) -> subprocess.CompletedProcess[str]:
    command = (
        sys.executable,
        "-m",
        "holdfast",
        "chat",
        server.url,
        "--token-file",
        "../ada.token",
        "--print",
        *options,
    )
    home = server.directory / "home"
    return subprocess.run(
        (*command, "--prompt", "where?"), cwd=home, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.requirement("H10")
def test_where_one_may_not_work_is_told_with_the_options_that_lead_elsewhere(server: ServeProcess) -> None:
    here, there = server.directory / "home", server.directory / "srv"
    done = asked(server)
    assert done.returncode == 1 and done.stdout == ""
    assert f"{here} is not among the directories that you may work in on this server ({there})" in done.stderr
    assert f"--cwd {there}" in done.stderr and f"--map {here}={there}" in done.stderr
    assert "{" not in done.stderr
    assert asked(server, "--cwd", str(there)).stdout == f"{there}\n"
    assert asked(server, "--map", f"{here}={there}").stdout == f"{there}\n"
    wrong = asked(server, "--map", "home=srv")
    assert wrong.returncode == 1 and "write --map /home/ada/project=/srv/project" in wrong.stderr
