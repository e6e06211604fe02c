"""`make field`: install real agents, play every scene with each, alone and wrapped, and write the table in docs.

python -m app.tests.field                       all agents
python -m app.tests.field claude codex          some
python -m app.tests.field gemini --scene load   one scene, and those it needs
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console

from app.tests.field.agents import CACHE, declared
from app.tests.field.client import Gone, Refused
from app.tests.field.install import NotInstalled, install, install_node
from app.tests.field.scenes import ONLY_WRAPPED, SCENES, Failed, Play
from app.tests.field.stage import Stage
from app.tests.field.table import write_table
from holdfast.testing.model_server import ModelServer, obey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.tests.field.agents import FieldAgent
    from app.tests.field.table import Results

RESULTS = CACHE / "results"
NEEDED = ("talk",)
"""The scene that others build on."""


async def play_all(agent: FieldAgent, version: int, *, wrapped: bool, only: Sequence[str], console: Console) -> Results:
    """Play the scenes with one agent; return what each showed: an empty text or a note, or ``!`` and why it failed."""
    manner = "wrapped" if wrapped else "alone"
    directory = CACHE / "runs" / f"{agent.name}-v{version}-{manner}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    results: Results = {}
    async with ModelServer(obey, log=directory / "model.jsonl") as model:
        play = Play(Stage(directory, agent, model.root, version=version, wrapped=wrapped))
        for scene in SCENES:
            if (not wrapped and scene.name in ONLY_WRAPPED) or (only and scene.name not in (*only, *NEEDED)):
                continue
            began = time.monotonic()
            try:
                results[scene.name] = await scene.play(play)
            except (Failed, Refused, Gone, TimeoutError) as e:
                results[scene.name] = f"!{e}"
            except Exception as e:  # noqa: BLE001  (an agent's oddity must not end the run)
                results[scene.name] = f"!{type(e).__name__}: {e}"
            _note(f"{agent.name}-v{version}-{manner}", {scene.name: results[scene.name]})
            took = time.monotonic() - began
            shown = results[scene.name]
            mark = "✗" if shown.startswith("!") else "✓"
            console.print(
                f"{agent.name} v{version} {manner}: {mark} {scene.name} {shown[:300]} ({took:.1f} s)", markup=False
            )
    return results


def _known() -> dict[str, Results]:
    """Return all results so far, those of earlier runs too, by agent, protocol version and manner."""
    return {file.stem: json.loads(file.read_bytes()) for file in RESULTS.glob("*.json")}


def _note(run: str, results: Results) -> None:
    """Note results of a run beside those of earlier ones; runs of different agents may go on at the same time."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / f"{run}.json"
    known: Results = json.loads(file.read_bytes()) if file.exists() else {}
    file.write_text(json.dumps(known | results, indent=1))


async def main() -> int:
    """Run the field; return 0 where nothing failed that was wrapped."""
    agents = declared()
    parser = argparse.ArgumentParser(
        "python -m app.tests.field", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("agents", nargs="*", choices=[*agents, []], help="which agents (default: all)")
    parser.add_argument("--scene", action="append", default=[], choices=[scene.name for scene in SCENES])
    parser.add_argument("--only", choices=("alone", "wrapped"))
    parser.add_argument("--protocol", type=int, choices=(1, 2))
    parser.add_argument("--no-table", action="store_true", help="leave docs/editors.md as it is")
    chosen = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    failed = 0
    install_node()
    for agent in (agents[name] for name in chosen.agents or agents):
        try:
            with console.status(f"installing {agent.title}"):
                install(agent)
        except NotInstalled as e:
            console.print(f"{agent.name}: skipped, it cannot be installed: {e}", markup=False)
            continue
        for version in agent.protocols if chosen.protocol is None else [chosen.protocol]:
            for manner in ("alone", "wrapped") if chosen.only is None else [chosen.only]:
                results = await play_all(
                    agent, version, wrapped=manner == "wrapped", only=chosen.scene, console=console
                )
                failed += manner == "wrapped" and any(result.startswith("!") for result in results.values())
    if not chosen.no_table:
        write_table(agents, _known())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
