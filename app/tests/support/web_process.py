"""`holdfast web` as a process: started, signed in to, killed, started again at the same port."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from core.tests.support.schemas import ROOT

if TYPE_CHECKING:
    from app.tests.support.browser import Page

PATIENCE = 60.0
AGENT = ROOT / "core" / "tests" / "programs" / "page_agent.py"
"""An agent that does what tests of the page want to see."""

_LINK = re.compile(r"http://\S+/link/\S+")


class WebProcess:
    """The page of this machine's sessions, in a process of its own, with an agent that it may start."""

    def __init__(
        self, directory: Path, agent: str = str(AGENT), name: str = "page-agent", project: str | Path = "project"
    ) -> None:
        self.directory = directory
        self.store = directory / "sessions.db"
        self.project = directory / project
        self.project.mkdir(exist_ok=True)
        (directory / "agents.toml").write_text(f"[agents.{name}]\nrun = '{agent}'\n")
        (directory / "agents.toml").chmod(0o600)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self._output = directory / "web.stderr"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it and wait until it is ready."""
        before = self._output.stat().st_size if self._output.exists() else 0
        command = [
            sys.executable,
            "-m",
            "holdfast",
            "web",
            "--no-browser",
            "--port",
            str(self.port),
            "--store",
            str(self.store),
        ]
        with self._output.open("ab") as stderr:
            self._process = subprocess.Popen(command, stderr=stderr, stdin=subprocess.DEVNULL, env=_environment())
        give_up = time.monotonic() + PATIENCE
        while not (found := _LINK.search(self._output.read_text()[before:])):
            assert self._process.poll() is None, self.complaints()
            assert time.monotonic() < give_up, "the page does not become ready"
            time.sleep(0.05)
        self.link = found[0]
        return self

    def sign_in(self, page: Page) -> None:
        """Let a browser in by the link that works once."""
        page.open(self.link)
        page.until("location.pathname === '/'")

    def kill(self) -> None:
        """Kill it with -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def complaints(self) -> str:
        """What it wrote to stderr."""
        return self._output.read_text()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()


def _environment() -> dict[str, str]:
    """Return our variables, with the programs beside our Python first."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def new_session(page: Page, cwd: Path) -> None:
    """Begin a session in the library."""
    page.click("#new")
    page.fill("#new-session input[name=cwd]", str(cwd))
    page.click("#new-session button[type=submit]")
    page.until("location.pathname.startsWith('/sessions/')")
    is_ready(page)


def is_ready(page: Page) -> None:
    """Wait until the page of a session is connected."""
    page.until("document.querySelector('hf-session')?.dataset.state && document.querySelector('#prompt')")


def say(page: Page, text: str) -> None:
    """Send a prompt."""
    page.fill("#prompt", text)
    page.press("Enter", "#prompt")
    page.until("document.querySelector('#prompt').value === ''")
