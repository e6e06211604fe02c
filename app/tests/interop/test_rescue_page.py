"""The agent of docs/rescue.md runs on every version of the official SDK that a reader may have."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from app.tests.support.peers import PATIENCE, SDK1
from core.tests.support.schemas import ROOT, lacking

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("python", [sys.executable, str(SDK1)], ids=["0.12", "1.0"])
def test_the_agent_that_forgets_answers_on_both_versions_of_its_sdk(python: str, tmp_path: Path) -> None:
    if python == str(SDK1) and not SDK1.is_file():
        lacking("the Python SDK's pre-release is not installed: `make test` does it")
    agent = [python, str(ROOT / "examples" / "forgetful.py")]
    command = [sys.executable, "-m", "holdfast", "chat", "--print", "--prompt", "The word is heron.", "--", *agent]
    environment = {**os.environ, "HOLDFAST_STORE": str(tmp_path / "s.db")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (0, "I will remember that, until I am killed.\n"), done.stderr
