"""acpx through `holdfast connect`: an editor of stdio, and a server that is started anew in mid-turn (H9)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from app.tests.support.peers import PATIENCE, Stage
from app.tests.support.remote_process import ServeProcess

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.timeout(300), pytest.mark.requirement("H9")]


def test_acpx_survives_a_restart_of_the_server_in_mid_turn(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "demo")
    served = tmp_path / "served"
    served.mkdir()
    with ServeProcess(served) as server:
        token = tmp_path / "token"
        token.write_text(server.token("ada"))
        stage.agent = [sys.executable, "-m", "holdfast", "connect", server.url, "--token-file", str(token)]
        stage.acpx("sessions", "new")
        try:
            turn = stage.start_acpx("prompt", "/stream 1000000")
            assert turn.stdout is not None
            heard = ""
            give_up = time.monotonic() + PATIENCE
            while '"400 "' not in heard:
                assert time.monotonic() < give_up
                heard += turn.stdout.readline()
            server.kill()
            server.start()
            rest = turn.stdout.read()
            turn.wait(PATIENCE)
            turn.stdout.close()
            assert turn.stderr is not None
            turn.stderr.close()
            words = _said(heard + rest)
            assert words == [f"{n} " for n in range(len(words))]
            assert len(words) > 400
            again = stage.acpx("prompt", "are you there?")
            assert "are you there?" in json.dumps(again)
        finally:
            stage.end_acpx()


def _said(printed: str) -> list[str]:
    """Return the agent's words, chunk by chunk."""
    words: list[str] = []
    for line in printed.splitlines():
        try:
            update = json.loads(line)["params"]["update"]
        except (ValueError, KeyError, TypeError):
            continue
        if update.get("sessionUpdate") == "agent_message_chunk":
            words.append(update["content"]["text"])
    return words


def test_the_command_line_says_what_is_wrong(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "connect", "ftp://nowhere"]
    first = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}) + "\n"
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=PATIENCE, input=first)
    assert "https://host/acp" in done.stderr + done.stdout
