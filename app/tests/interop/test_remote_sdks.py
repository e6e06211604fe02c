"""The clients of the official SDKs over the network: each over HTTP and over WebSocket, in the versions they have."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from app.tests.support.peers import PATIENCE, PEERS
from app.tests.support.remote_process import ServeProcess

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.timeout(240), pytest.mark.requirement("H1", "H2", "H3")]

REMOTE = [name for name in PEERS if "0.12" not in name]  # which has no transports but stdio

PROMPTS = ["Hello, world", "/stream 200", "/tool", "/diff", "/ask", "/form"]


@pytest.mark.parametrize("way", ["websocket", "http"])
@pytest.mark.parametrize("name", REMOTE)
def test_a_client_goes_through_all_that_a_session_can(name: str, way: str, tmp_path: Path) -> None:
    peer = PEERS[name]
    with ServeProcess(tmp_path) as server:
        remote = {"url": server.url, "way": way, "token": server.token("ada")}
        plan = {"remote": remote, "cwd": str(tmp_path), "prompts": PROMPTS, "answers": ["allow_once"], "many": 3,
                "capabilities": peer.capabilities, "agent": []}  # fmt: skip
        done = subprocess.run(
            [*peer.command(), json.dumps(plan)], capture_output=True, check=False, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0 and not done.stderr, done.stderr + server.complaints()
        assert server.stop() == 0
    report = json.loads(done.stdout)
    turns = {turn["prompt"]: turn for turn in report["turns"]}
    assert report["version"] == peer.version
    assert turns["/stream 200"]["text"] == "".join(f"{n} " for n in range(200))
    assert turns["/ask"]["stop"] == "end_turn"
    assert turns["/stream 1000000"]["stop"] == "cancelled"
    assert len(report["pages"][0]) == 4
    assert "".join(f"{n} " for n in range(200)) in report["loaded"]["text"]
    assert "completed" in report["loaded"]["calls"]
    assert report["loaded"]["options"]["tone"] == "pirate"
    assert report["resumed"]["tone"] == "pirate"
    assert report["forks"] is True
    assert report["listed"] == [False, True]
    assert report["gone"] == -32002
