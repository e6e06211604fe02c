"""The agent of the README, under the clients of the official SDKs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from app.tests.support.peers import PEERS, Stage
from core.tests.support.schemas import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def program(source: str) -> str:
    """Parse a program, and leave out what it says about itself."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.AsyncFunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.dump(tree)


def test_the_agent_of_the_readme_is_the_example() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = readme.split("```python\n", 1)[1].split("```", 1)[0]
    assert program(shown) == program((ROOT / "examples" / "weather.py").read_text())


@pytest.mark.parametrize("name", PEERS)
def test_the_agent_of_the_readme_runs_under(name: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, "examples/weather.py")
    report = stage.play(PEERS[name], ["How warm is it?"], [])
    assert report["version"] == PEERS[name].version
    assert report["options"] == {"mode": "ask"}
    (turn,) = report["turns"]
    assert (turn["stop"], turn["text"]) == ("end_turn", "Reading the thermometer… It is 21 °C.")
    assert turn["calls"] == ["completed"]
    assert report["exits"] == [0]
    assert [fault for it in stage.recordings() for fault in it.faults()] == []


def test_the_agent_of_the_page_on_pydantic_ai_is_the_example() -> None:
    page = (ROOT / "docs" / "pydantic-ai.md").read_text()
    shown = page.split("```python\n", 1)[1].split("```", 1)[0]
    assert program(shown) == program((ROOT / "examples" / "pydantic_agent.py").read_text())
