"""A real terminal: a window of a private tmux server, where one types, looks at the screen, and changes its size.

Whoever has none skips what needs it, with a reason; where CI is set that is an error.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from core.tests.support.schemas import lacking

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

PATIENCE = 60.0
"""Nothing takes longer to appear on a screen, not even on a busy machine."""
LIFETIME = 160
"""What runs in a window ends after so many seconds, whatever happens to the test."""

_numbers = count()


class Window:
    """One window, in which one program runs."""

    def __init__(self, name: str, outcome: Path) -> None:
        self._name = name
        self._outcome = outcome

    def type(self, text: str) -> None:
        """Type text."""
        self.tmux("send-keys", "-l", "--", text)

    def press(self, *keys: str) -> None:
        """Press keys by their names: Enter, C-c, Escape, Up."""
        self.tmux("send-keys", *keys)

    def say(self, line: str) -> None:
        """Type a line and send it."""
        self.type(line)
        self.press("Enter")

    def screen(self) -> str:
        """Look at what is on the screen, without spaces at the ends."""
        return self.tmux("capture-pane", "-p").rstrip("\n")

    def scrollback(self, *options: str) -> str:
        """Look at everything since the beginning; lines that the terminal has broken are whole."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-", *options).rstrip("\n")

    def lines(self) -> list[str]:
        """Look at everything since the beginning, line by line."""
        return [line.rstrip() for line in self.scrollback().split("\n")]

    def shows(self, text: str) -> str:
        """Wait until a text is on the screen; give the screen."""
        return self.until(lambda: text in self.screen(), f"{text!r} did not appear")

    def shows_no_more(self, text: str) -> str:
        """Wait until a text is no longer on the screen; give the screen."""
        return self.until(lambda: text not in self.screen(), f"{text!r} did not go away")

    def has_shown(self, text: str) -> None:
        """Wait until a text is on the screen or was."""
        self.until(lambda: text in self.scrollback(), f"{text!r} did not appear")

    def until(self, happened: Callable[[], bool], complaint: str) -> str:
        """Wait, not for ever, until something is so; give the screen."""
        give_up = time.monotonic() + PATIENCE
        while not happened():
            assert time.monotonic() < give_up, f"{complaint} on this screen:\n{self.screen()}"
            time.sleep(0.03)
        return self.screen()

    def resize(self, columns: int, rows: int) -> None:
        """Change its size."""
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def status(self) -> int:
        """Wait until the program has ended; say how."""
        # tmux would say so too, but sometimes does not notice: its child stays a zombie until another one ends.
        self.until(lambda: self._outcome.exists() and self._outcome.read_text() != "", "the program did not end")
        return int(self._outcome.read_text())

    def about(self, name: str) -> str:
        """Ask tmux for one of the things it knows."""
        return self.tmux("display-message", "-p", f"#{{{name}}}").rstrip("\n")

    def tmux(self, *command: str) -> str:
        """Give a command to the server."""
        environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
        whole = ("tmux", "-u", "-L", self._name, "-f", "/dev/null", *command)
        done = subprocess.run(whole, capture_output=True, env=environment, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, f"tmux {command[0]}: {done.stderr}"
        return done.stdout


@contextmanager
def window(
    *command: str, cwd: Path, columns: int = 80, rows: int = 24, env: dict[str, str] | None = None
) -> Generator[Window]:
    """Run a program in a window of its own."""
    if shutil.which("tmux") is None:
        lacking("tmux is not installed: no check in a real terminal")
    directory = Path(tempfile.mkdtemp())
    opened = Window(f"holdfast-{os.getpid()}-{next(_numbers)}", directory / "outcome")
    settings = {"PYTHONUTF8": "1", "LC_ALL": "C.UTF-8", **(env or {})}
    program = shlex.join(
        ("timeout", "--foreground", str(LIFETIME), "env", *(f"{k}={v}" for k, v in settings.items()), *command)
    )
    program += f"; printf %s $? > {shlex.quote(str(directory / 'outcome'))}"
    opened.tmux(
        *("set-option", "-g", "history-limit", "50000", ";", "set-option", "-g", "remain-on-exit", "on", ";"),
        *("set-option", "-g", "set-clipboard", "on", ";"),
        *("new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(cwd), program),
    )
    try:
        yield opened
    finally:
        opened.tmux("kill-server")
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def chat(*arguments: str, cwd: Path, env: dict[str, str] | None = None, **size: int) -> Generator[Window]:
    """Run `holdfast chat …`, its sessions and its history in the directory."""
    settings = {"HOLDFAST_STORE": str(cwd / "store" / "sessions.db"), "HOME": str(cwd), **(env or {})}
    with window(sys.executable, "-m", "holdfast", "chat", *arguments, cwd=cwd, env=settings, **size) as opened:
        yield opened
