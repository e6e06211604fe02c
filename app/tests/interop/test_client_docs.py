"""The examples of docs/client.md run, as they stand."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from core.tests.support.links import PATIENCE
from core.tests.support.schemas import ROOT
from holdfast.model import Elicitation, Permission

EXAMPLES = [part.split("```", 1)[0] for part in (ROOT / "docs" / "client.md").read_text().split("```python\n")[1:]]
WHOLE = [example for example in EXAMPLES if "asyncio.run" in example]
PARTS = [example for example in EXAMPLES if "asyncio.run" not in example]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `holdfast` be found, and keep its sessions elsewhere."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "sessions.db"))
    monkeypatch.chdir(tmp_path)


def test_the_programs_of_the_page_run() -> None:
    (program,) = WHOLE
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert "tool_call_update: Read thermometer, in_progress" in done.stdout
    assert "## Tool: Read thermometer" in done.stdout
    assert "sess_" in done.stdout.splitlines()[-1]


async def test_so_do_its_other_examples(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"holdfast": holdfast, "Permission": Permission, "Elicitation": Elicitation, "Any": Any}
    async with holdfast.connect("holdfast", "run", "demo") as agent, asyncio.timeout(4 * PATIENCE):
        names |= {"agent": agent, "session": await agent.new_session()}
        for part in PARTS:
            code = compile(part, "docs/client.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            if (running := eval(code, names)) is not None:
                await running
    printed = capsys.readouterr().out
    assert "agent_message_chunk Coun" in printed
    assert "That was that. Hello, Ada." in printed
    assert names["frames"][0][0] == "out"


async def test_so_does_the_example_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    """With another agent than it names, which not everybody has."""
    shown = (ROOT / "README.md").read_text().split("```python\n")[2].split("```", 1)[0]
    assert '"gemini", "--acp"' in shown
    program = shown.replace('"gemini", "--acp"', '"holdfast", "run", "demo"')
    names: dict[str, Any] = {"holdfast": holdfast, "Path": Path}
    async with asyncio.timeout(2 * PATIENCE):
        await eval(compile(program, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    assert "> Explain this repo" in capsys.readouterr().out
