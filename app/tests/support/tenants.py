"""Two principals on one server, each with an agent of its own, and ways for one to look for what is the other's."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.tests.support.remote_process import ServeProcess
from app.tests.support.wrapping import PROGRAM
from core.tests.support.acp import Client
from holdfast.transport.websocket_client import connect_websocket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

USERS = {"ada": "nobody", "bob": "daemon"}
"""Users that every system has, and that own nothing of ours."""


def no_other_users() -> str | None:
    """Return why agents cannot be started as other users here, if so."""
    if os.geteuid() != 0:
        return "only root can start processes as other users"
    for user in USERS.values():
        try:
            pwd.getpwnam(user)
        except KeyError:
            return f"this system has no user {user}"
    return None if reachable_python() else "no Python here can be started by other users"


def no_bubblewrap() -> str | None:
    """Return why bubblewrap cannot be used here, if so."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed"
    tried = subprocess.run(
        [program, "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return None if tried.returncode == 0 else f"bubblewrap does not run here: {tried.stderr.strip()}"


def reachable_python() -> str | None:
    """Return a Python that other users, and programs in a sandbox, can start."""
    for python in ("/usr/bin/python3", "/usr/local/bin/python3", sys.executable):
        as_nobody: dict[str, Any] = (
            {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        )
        try:
            subprocess.run([python, "-c", "import json"], check=True, capture_output=True, cwd="/", **as_nobody)
        except (OSError, subprocess.SubprocessError, LookupError):
            continue
        return python
    return None


class Tenants:
    """A server, with a place for each of two principals."""

    def __init__(self, place: Path, *launcher: str, beside_store: bool = False) -> None:
        self.work = place / "work"
        self.homes = place / "homes"
        self.private = place / "private"
        """What is the server's own."""
        program = place / "agent.py"
        shutil.copy(PROGRAM, program)
        for directory, mode in ((place, 0o755), (self.work, 0o755), (self.homes, 0o755), (self.private, 0o700)):
            directory.mkdir(exist_ok=True)
            directory.chmod(mode)
        settings = self.private / "serve.toml"
        settings.write_text(
            "".join(
                f'[principals.{name}]\nuser = "{user}"\nenvironment = {{ SECRET = "secret-of-{name}" }}\n'
                for name, user in USERS.items()
            )
        )
        python = reachable_python() or sys.executable
        options = ("--config", str(settings), "--expose", str(program), *launcher)
        if not beside_store:
            options += ("--workspace", f"{self.work}/{{principal}}", "--home", f"{self.homes}/{{principal}}")
        self.server = ServeProcess(self.private, "--", python, str(program), options=options)

    @asynccontextmanager
    async def client(self, name: str, work: Path | None = None) -> AsyncGenerator[tuple[Client, str]]:
        """Connect as a principal, and open a session in its own directory."""
        headers = {"Authorization": f"Bearer {self.server.tokens.add(name)}"}
        client = Client(await connect_websocket(self.server.url, headers=headers))
        try:
            await client.initialize()
            yield client, await client.new(cwd=str(work or self.work / name))
        finally:
            await client.transport.close(0.1)


async def told(client: Client, session: str, prompt: str) -> str:
    """Prompt, and return what the agent said to it."""
    before = len(client.said())
    await client.prompt(session, prompt)
    await asyncio.sleep(0)
    return client.said()[before:]


@contextmanager
def tenants(*launcher: str, beside_store: bool = False) -> Generator[Tenants]:
    """Serve two principals, in directories that others can get to, or in those beside the store."""
    with tempfile.TemporaryDirectory(prefix="holdfast-tenants-", dir="/tmp") as place:
        served = Tenants(Path(place), *launcher, beside_store=beside_store)
        with served.server:
            yield served
