"""Draws `chat.svg`: a real chat, in a real terminal, typed by nobody but this script.

    python docs/pictures/chat.py [FILE]

`holdfast chat examples/mender.py` runs in tmux; what is on its screen in the end, with its colours, is the picture.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from drawing import draw

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from app.tests.support.terminal import chat  # noqa: E402

MEAN = "def mean(values):\n    return sum(values) / (len(values) - 1)\n"
TEST = "from stats import mean\n\nassert mean([1, 2, 3]) == 2\nprint('all is well')\n"
WIDTH = 78


def main(picture: Path) -> None:
    """Chat, and draw the screen."""
    with tempfile.TemporaryDirectory() as place:
        project = Path(place, "project")
        project.mkdir()
        (project / "stats.py").write_text(MEAN)
        (project / "test_stats.py").write_text(TEST)
        env = {"HOME": place, "HOLDFAST_STORE": f"{place}/sessions.db"}
        with chat(str(ROOT / "examples" / "mender.py"), cwd=project, env=env, columns=WIDTH, rows=60) as window:
            window.shows("Mender")
            window.say("The test fails. Can you mend it?")
            window.shows("[y] Allow")
            window.press("y")
            window.shows("The test passes")
            window.shows_no_more("working")
            window.type("/mo")
            window.shows("Switch the model")
            screen = window.tmux("capture-pane", "-p", "-e")
    draw(screen, picture, title="holdfast chat mender.py", width=WIDTH)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg"))
