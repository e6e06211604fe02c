"""Draws `sessions.svg`: stored sessions, listed, searched and shown in a real terminal.

    python docs/pictures/sessions.py

Some chats are held first; then the commands are typed into a shell in tmux. In what they
print only this machine's paths are replaced.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from drawing import draw

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from app.tests.support.terminal import window  # noqa: E402

MEAN = "def mean(values):\n    return sum(values) / (len(values) - 1)\n"
TEST = "from stats import mean\n\nassert mean([1, 2, 3]) == 2\nprint('all is well')\n"
MENDER = str(ROOT / "examples" / "mender.py")
ASKED = (
    ("demo", "Is the mean the same as the median?"),
    ("demo", "Água fervente 😀"),
    (MENDER, "The test fails. Mend it?"),
)
TYPED = ("holdfast sessions", "holdfast sessions search mean", "holdfast sessions show last")
WIDTH = 88


def prompts(screen: str) -> int:
    """Count the lines where something was or can be typed."""
    return sum(line.startswith("$") for line in screen.split("\n"))


def main(picture: Path) -> None:
    """Hold some chats, look at them, and draw the screen."""
    with tempfile.TemporaryDirectory() as place:
        project = Path(place, "project")
        project.mkdir()
        (project / "stats.py").write_text(MEAN)
        (project / "test_stats.py").write_text(TEST)
        programs = Path(sys.executable).parent
        env = {"HOME": place, "HOLDFAST_STORE": f"{place}/sessions.db", "PATH": f"{programs}:/usr/bin:/bin"}
        for agent, prompt in ASKED:
            command = (programs / "holdfast", "chat", agent, "--print", "--permissions", "allow", "--prompt", prompt)
            subprocess.run(command, cwd=project, env=env, check=True, capture_output=True)
        env |= {"PS1": "$ ", "PAGER": "cat", "HISTFILE": "/dev/null"}
        with window("bash", "--norc", "--noprofile", cwd=project, env=env, columns=WIDTH, rows=66) as shell:
            for number, line in enumerate(TYPED, start=1):
                shell.until(lambda: shell.screen().endswith("$"), "there is no prompt")
                shell.say(line)
                shell.until(lambda: prompts(shell.screen()) > number, f"{line} does not end")  # noqa: B023
            screen = shell.tmux("capture-pane", "-p", "-e").rstrip().removesuffix("$")
        screen = screen.replace(sys.executable, "python").replace(place, "/home/ada")
    draw(screen, picture, title="holdfast sessions", width=WIDTH)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg"))
