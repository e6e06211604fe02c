"""Real peers, as programs: where each is found, how it is started, and what it is told to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from core.tests.support.recording import Recording, recordings
from core.tests.support.schemas import ROOT, SDK, lacking

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCRIPTS = ROOT / "app" / "tests" / "interop" / "peers"
RECORD = ROOT / "core" / "tests" / "programs" / "record.py"
SDK1 = ROOT / ".venv-sdk1" / "bin" / "python"
ACPX = ROOT / "node_modules" / "acpx" / "dist" / "cli.js"
ACPX_NODE = (22, 13)
"""The Node that acpx needs."""
KIMI = ROOT / "node_modules" / "@moonshot-ai" / "kimi-code" / "dist" / "main.mjs"
KIMI_NODE = (22, 19)
"""The Node that kimi-code needs."""

PATIENCE = 150.0
"""No peer takes longer than this for all it does."""

V1: dict[str, Any] = {"elicitation": {"form": {}}, "session": {"configOptions": {"boolean": {}}}}
V1_NOTICES: dict[str, Any] = {**V1, "session": {**V1["session"], "notices": {}}}
V2: dict[str, Any] = {"elicitation": {"form": {}}}


class Peer(NamedTuple):
    """A client library: the version it speaks, the script that drives it, and what it says it can do."""

    version: int
    script: str
    runtime: str
    capabilities: dict[str, Any]

    def command(self) -> list[str]:
        """Say how to start it."""
        script = str(SCRIPTS / self.script)
        if self.runtime == "node":
            return [node(), script]
        if self.runtime == "sdk1" and not SDK1.is_file():
            lacking("the Python SDK's pre-release is not installed: `make test` does it")
        return [str(SDK1) if self.runtime == "sdk1" else sys.executable, script]


PEERS = {
    "python-0.12-v1": Peer(1, "python_v1.py", "python", V1),  # knows no notices
    "python-1.0-v1": Peer(1, "python_v1.py", "sdk1", V1_NOTICES),
    "python-1.0-v2": Peer(2, "python_v2.py", "sdk1", V2),
    "typescript-v1": Peer(1, "typescript_v1.mjs", "node", V1_NOTICES),
    "typescript-v2": Peer(2, "typescript_v2.mjs", "node", V2),
}


def node() -> str:
    """Find Node and the official TypeScript SDK."""
    found = shutil.which("node")
    if found is None:
        lacking("Node is not installed: no check against the TypeScript SDK")
    if not SDK.is_dir():
        lacking("the TypeScript SDK is not installed: `make test` does it")
    return found


def node_for_acpx() -> str:
    """Find acpx and a Node that is new enough for it."""
    return _node_for(ACPX, "acpx", ACPX_NODE)


def kimi() -> list[str]:
    """Say how to start kimi-code, a coding agent for the terminal, as an ACP agent."""
    return [_node_for(KIMI, "kimi-code", KIMI_NODE), str(KIMI), "acp"]


@cache
def _node_for(program: Path, name: str, needed: tuple[int, ...]) -> str:
    """Find a Node that is new enough for a program: the one npm has installed with it, or one on the path."""
    if not program.is_file():
        lacking(f"{name} is not installed: it comes with npm, by `make test`")
    candidates = [str(it) for it in ROOT.glob("node_modules/node-*/bin/node")]
    candidates += [it for it in [shutil.which("node")] if it is not None]
    found = next((it for it in candidates if _version(it) >= needed), None)
    if found is None:
        lacking(f"no Node new enough for {name} is installed")
    return found


def _version(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, check=False, text=True).stdout
    return tuple(map(int, re.findall(r"\d+", said)))


class Stage:
    """Where a peer meets an agent: a working directory, a store, and a recorder between the two."""

    def __init__(self, directory: Path, agent: str) -> None:
        self.cwd = directory / "cwd"
        self._recorded = directory / "recorded"
        self._home = directory / "home"
        for it in (self.cwd, self._recorded, self._home):
            it.mkdir()
        served = str(ROOT / agent) if agent.endswith(".py") else agent
        serve = [sys.executable, "-m", "holdfast", "run", served, "--store", str(directory / "sessions.db")]
        self.agent = [sys.executable, str(RECORD), str(self._recorded), *serve]

    def recordings(self) -> list[Recording]:
        """Wait until all agents are gone; give what was written down of them."""
        return recordings(self._recorded)

    def complaints(self) -> list[str]:
        """Give what the agents have logged, without the traces."""
        logged = [it.read_text() for it in sorted(self._recorded.glob("*.stderr"))]
        return [line for it in logged for line in it.splitlines() if " holdfast." in line]

    def play(self, peer: Peer, prompts: Sequence[str], answers: Sequence[str], *, many: int = 0) -> dict[str, Any]:
        """Let a client library tell its story; give its report. It may complain of nothing on stderr."""
        plan: dict[str, Any] = {
            "agent": self.agent,
            "cwd": str(self.cwd),
            "prompts": prompts,
            "answers": answers,
            "many": many,
            "capabilities": peer.capabilities,
        }
        command = [*peer.command(), json.dumps(plan)]
        done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=PATIENCE)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return json.loads(done.stdout)

    def acpx(self, *arguments: str) -> list[dict[str, Any]]:
        """Run an acpx command; give what it printed."""
        done = self.start_acpx(*arguments)
        printed, complaints = done.communicate(timeout=PATIENCE)
        assert done.returncode == 0, complaints
        return [json.loads(line) for line in printed.splitlines()]

    def start_acpx(self, *arguments: str) -> subprocess.Popen[str]:
        """Start an acpx command. It leaves a process behind that keeps the agent: see `end_acpx`."""
        settings = ["--cwd", str(self.cwd), "--approve-all", "--ttl", "60", "--format", "json"]
        return subprocess.Popen(
            [node_for_acpx(), str(ACPX), *settings, "--agent", " ".join(self.agent), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "HOME": str(self._home)},
            text=True,
        )

    def end_acpx(self) -> None:
        """End the process that acpx has left behind, if any, and its agent with it."""
        for lock in (self._home / ".acpx" / "queues").glob("*.lock"):
            os.kill(json.loads(lock.read_bytes())["pid"], signal.SIGTERM)
            give_up = time.monotonic() + PATIENCE
            while lock.exists():  # it is no child of ours: this is how one sees that it has gone
                assert time.monotonic() < give_up, "acpx does not end"
                time.sleep(0.01)
        self.recordings()
