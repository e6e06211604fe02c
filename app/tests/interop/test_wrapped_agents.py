"""Two real agents of others behind `holdfast wrap`, one of Node, one of Python, driven by the TypeScript SDK's client.

Nothing but the words of the model is played. `make field` does the same with many more agents, and tries more with
each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.tests.field.agents import declared, node_directory
from app.tests.field.scenes import SCENES, Play
from app.tests.field.stage import Stage
from core.tests.support.schemas import SDK, lacking
from holdfast.testing.model_server import ModelServer, obey

if TYPE_CHECKING:
    from pathlib import Path

PLAYED = ("talk", "tool", "load", "kill-agent", "kill-both", "fork", "delete")
"""Each scene starts the agent once or twice, which takes seconds; these are the ones that break first."""


@pytest.mark.timeout(900)
@pytest.mark.requirement("G1", "G3", "G4", "G5", "G8", "G9", "P1", "P3")
@pytest.mark.parametrize("name", ["kimi-code", "hermes"])
async def test_a_real_agent_wrapped_loses_nothing_and_goes_on(name: str, tmp_path: Path) -> None:
    agent = declared()[name]
    if not agent.is_installed:
        lacking(f"{agent.title} is not installed: `make test` does it")
    if not (node_directory() / "node").exists() or not SDK.is_dir():
        lacking("Node 22 and the TypeScript SDK are not installed: `make test` does it")
    async with ModelServer(obey) as model:
        play = Play(Stage(tmp_path, agent, model.root))
        for scene in SCENES:
            if scene.name in PLAYED:
                await scene.play(play)
