"""`holdfast wrap --record`: both sides of the wire, as an editor's bug report needs them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from app.tests.support.wrapping import agent_command

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-ant-api03-abcdefghij0123456789abcdefghij0123456789"


@pytest.mark.timeout(120)
@pytest.mark.requirement("P10")
async def test_both_sides_of_the_wire_are_recorded_without_keys(tmp_path: Path) -> None:
    file = tmp_path / "wire.jsonl"
    options = ["--record", str(file), "--store", str(tmp_path / "sessions.db")]
    agent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "holdfast", "wrap", *options, "--", *agent_command()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "AGENT_HOME": str(tmp_path)},
    )
    assert agent.stdin is not None and agent.stdout is not None

    async def request(method: str, params: dict[str, Any]) -> Any:
        assert agent.stdin is not None and agent.stdout is not None
        agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode())
        agent.stdin.write(b"\n")
        while (line := json.loads(await agent.stdout.readline())).get("id") != method:
            pass
        return line["result"]

    await request("initialize", {"protocolVersion": 1, "_meta": {"token": KEY}})
    opened = await request("session/new", {"cwd": str(tmp_path), "mcpServers": []})
    said = [{"type": "text", "text": f"say hello {KEY}"}]
    await request("session/prompt", {"sessionId": opened["sessionId"], "prompt": said})
    agent.stdin.close()
    await agent.wait()

    text = file.read_text()
    assert KEY not in text
    told = [json.loads(line) for line in text.splitlines()]
    ways = {(line["from"], line["to"]) for line in told}
    assert ways == {("client", "holdfast"), ("holdfast", "client"), ("holdfast", "agent"), ("agent", "holdfast")}
    prompts = [line["to"] for line in told if line["message"].get("method") == "session/prompt"]
    assert prompts == ["holdfast", "agent"]
    chunks = [line["from"] for line in told if "agent_message_chunk" in json.dumps(line)]
    assert (chunks[0], chunks[-1]) == ("agent", "holdfast")
