"""Draws `code_agent.svg`: the coding agent at work, in a real terminal.

    python docs/pictures/code_agent.py

`holdfast chat code` runs in tmux, and what is on its screen in the end, with its colours, is the picture. Agent and
chat are the real ones; only the model is a script (a provider of ours on loopback): the story is the same each time.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from drawing import draw

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from app.tests.support.terminal import chat  # noqa: E402
from holdfast.testing.model_server import ModelServer, Say, calls  # noqa: E402

MEAN = "def mean(values):\n    return sum(values) / (len(values) - 1)\n"
TEST = "from stats import mean\n\nassert mean([1, 2, 3]) == 2\nprint('all is well')\n"
SCRIPT = [
    calls(("read", {"path": "stats.py"}), ("read", {"path": "test_stats.py"}), text="Let me look at both files."),
    calls(
        ("edit", {"path": "stats.py", "old": "(len(values) - 1)", "new": "len(values)"}),
        ("run", {"command": "python3 test_stats.py"}),
        text="The sum is divided by one too few.",
    ),
    Say("`mean` divided by `len(values) - 1`, as one does for a variance. I fixed it, and **the test passes**."),
]
WIDTH = 84


def play(place: Path, url: str) -> str:
    """Chat with the agent, allow what it asks for, and give what is on the screen."""
    project = place / "project"
    project.mkdir()
    (project / "stats.py").write_text(MEAN)
    (project / "test_stats.py").write_text(TEST)
    env = {"HOME": str(place), "HOLDFAST_STORE": f"{place}/s.db", "HOLDFAST_MODEL": "small", "HOLDFAST_BASE_URL": url}
    with chat("code", cwd=project, env=env, columns=WIDTH, rows=70) as window:
        window.shows("Holdfast code")
        window.say("The test fails. Why? Please fix it.")
        for question in ("Edit stats.py", "Run python3 test_stats.py"):
            window.shows(question)
            window.shows("[y] Allow")
            window.press("y")
            window.shows_no_more("[y] Allow")
        window.shows("test passes")
        window.shows_no_more("working")
        return window.tmux("capture-pane", "-p", "-e")


async def main() -> None:
    """Chat, and draw the screen."""
    with tempfile.TemporaryDirectory() as place:
        async with ModelServer(SCRIPT) as server:
            screen = await asyncio.to_thread(play, Path(place), server.url)
    draw(screen, Path(__file__).with_suffix(".svg"), title="holdfast chat code", width=WIDTH)


if __name__ == "__main__":
    asyncio.run(main())
