"""acpx, a client of the command line, with an agent of the field."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

from app.tests.field.agents import ROOT, node_directory
from app.tests.field.client import PATIENCE

if TYPE_CHECKING:
    from app.tests.field.stage import Stage

PROGRAM = ROOT / "node_modules" / "acpx" / "dist" / "cli.js"


class Acpx:
    """Runs commands of acpx. It leaves a process behind that keeps the agent: see `end`."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        settings = ["--cwd", str(stage.cwd), "--approve-all", "--ttl", "60", "--format", "json"]
        agent = " ".join(stage.command())
        self._command = [str(node_directory() / "node"), str(PROGRAM), *settings, "--agent", agent]

    def run(self, *arguments: str) -> list[dict[str, Any]]:
        """Run a command; return what it printed."""
        done = subprocess.run(
            [*self._command, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
            env=self._stage.env,
            timeout=PATIENCE,
        )
        if done.returncode != 0:
            raise RuntimeError(f"acpx {arguments} failed: {done.stderr[-500:]} {done.stdout[-300:]}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def prompt(self, text: str) -> str:
        """Send a prompt; return what the agent said."""
        updates = [
            line["params"]["update"] for line in self.run("prompt", text) if line.get("method") == "session/update"
        ]
        chunks = [update["content"] for update in updates if update["sessionUpdate"] == "agent_message_chunk"]
        return "".join(str(chunk.get("text", "")) for chunk in chunks)

    def end(self) -> None:
        """End the process that was left behind, if any, and its agent with it."""
        for lock in (self._stage.home / ".acpx" / "queues").glob("*.lock"):
            os.kill(json.loads(lock.read_bytes())["pid"], signal.SIGTERM)
            give_up = time.monotonic() + PATIENCE
            while lock.exists():  # it is no child of ours: this is how one sees that it has gone
                if time.monotonic() > give_up:
                    raise TimeoutError("acpx does not end")
                time.sleep(0.05)
