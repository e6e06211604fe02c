"""`holdfast serve` as a process: started, killed, started again at the same port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Self

from holdfast.server.remote import TokenFile

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

PATIENCE = 60.0


class ServeProcess:
    """A server in a process of its own, with a token for everybody who is named."""

    def __init__(
        self,
        directory: Path,
        *agent: str,
        options: tuple[str, ...] = (),
        store: str | None = None,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.directory = directory
        self.store = store or str(directory / "sessions.db")
        self._env = {**os.environ, **(env or {})}
        self._cwd = cwd
        self.tokens = TokenFile(directory / "tokens.toml")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.base}/acp"
        self.trust: ssl.SSLContext | None = None
        self._agent = agent or ("demo",)
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def token(self, name: str) -> str:
        """Make a token; whoever has it may work anywhere."""
        return self.tokens.add(name, ["/"])

    def start(self) -> Self:
        """Start it and wait until it is ready."""
        command = [sys.executable, "-m", "holdfast", "serve", "--port", str(self.port), "--store", self.store,
                   "--log-level", "warning", *self._options, *self._agent]  # fmt: skip
        with (self.directory / "serve.stderr").open("ab") as stderr:
            self._process = subprocess.Popen(
                command, stderr=stderr, stdin=subprocess.DEVNULL, env=self._env, cwd=self._cwd
            )
        self._until(ready=True)
        return self

    def until_it_takes_nothing_new(self) -> None:
        """Wait until it has heard that it is to end."""
        self._until(ready=False)

    def _until(self, *, ready: bool) -> None:
        assert self._process is not None
        give_up = time.monotonic() + PATIENCE
        while self._is_ready() is not ready:
            assert self._process.poll() is None, self.complaints()
            assert time.monotonic() < give_up, "the server does not become ready" if ready else "it goes on"
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.base}/readyz", timeout=30, context=self.trust) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill it with -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)

    def stop(self) -> int:
        """Tell it to end; return its status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE)

    def complaints(self) -> str:
        """What it wrote to stderr."""
        return (self.directory / "serve.stderr").read_text()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE)
