"""`holdfast run … --mcp-config FILE`, and `chat`: MCP servers of a file, through the real command line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from core.tests.support.acp import running
from core.tests.support.mcp import PROGRAM, all_dead, files_with, marked, marks, wire
from core.tests.support.mcp_web import web

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = pytest.mark.parametrize("version", [1, 2])

SECRET = "hunter2-in-a-file"


def stdio(*manners: str, **env: str) -> dict[str, Any]:
    """Our server, as other tools write it."""
    return {"command": sys.executable, "args": ["-S", PROGRAM, *manners], "env": env}


@VERSIONS
async def test_every_session_has_the_servers_of_the_file(version: int, tmp_path: Path) -> None:
    file, log, started = tmp_path / "mcp.json", tmp_path / "log", tmp_path / "marks"
    headers = {"Authorization": f"Bearer {SECRET}"}
    with web() as server:
        # What else they write is theirs: who may call what, for how long, and what it is called.
        theirs = {"disabled": False, "autoApprove": ["echo"], "alwaysAllow": [], "timeout": 60, "description": "…"}
        servers = {
            "plain": stdio(KEY=SECRET) | theirs,
            "typed": stdio() | {"type": "stdio", "cwd": "/", "enabled": True},
            "off": stdio(MARKS=str(started)) | {"disabled": True},
            "off too": stdio(MARKS=str(started)) | {"enabled": False},
            "web": {"url": server.url("mcp"), "headers": headers},
            "named": {"type": "streamable-http", "url": server.url("mcp"), "headers": headers, "disabled": False},
            "old": {"type": "sse", "url": server.url("sse"), "headers": headers},
            "bad": stdio("exit", KEY=SECRET),
        }
        written = json.dumps({"$schema": "https://a.test", "mcpServers": servers, "inputs": []}, ensure_ascii=False)
        file.write_text(written, encoding="utf-8-sig")  # as some editors write it
        arguments = ("demo", "--mcp-config", str(file), "--log-file", str(log), "--log-level", "debug")
        async with running(tmp_path / "store.db", *arguments, version=version) as client:
            for session in (await client.new(str(tmp_path)), await client.new(str(tmp_path))):
                client.forget()
                await client.prompt(session, "/mcp")
                listed = client.said()
                for name in ("plain", "typed", "web", "named", "old"):
                    assert f"- {name}: ready\n" in listed
                    client.forget()
                    await client.prompt(session, f'/mcp {name} echo {{"text": "hi"}}')
                    assert client.said() == "hi"
                assert "- bad: failed, because " in listed
                assert "the key [hidden] does not fit" in listed
                assert "off" not in listed
            assert SECRET not in json.dumps(client.heard)
        assert {it.headers["authorization"] for it in server.seen} == {f"Bearer {SECRET}"}
    assert marks(started) == []
    assert files_with(SECRET, tmp_path) == [file]


@VERSIONS
async def test_they_come_besides_those_a_client_names_and_end_with_the_session(version: int, tmp_path: Path) -> None:
    file, started = tmp_path / "mcp.json", tmp_path / "marks"
    file.write_text(json.dumps({"mcpServers": {"it": stdio(MARKS=str(started)), "other": stdio()}}))
    async with running(tmp_path / "store.db", "demo", "--mcp-config", str(file), version=version) as client:
        session = await client.new(str(tmp_path), mcpServers=[wire(version=version, KEY="the client's")])
        client.forget()
        await client.prompt(session, "/mcp")
        assert [it for it in client.said().splitlines() if it.endswith("ready")] == [
            "- it: ready", "- it-2: ready", "- other: ready",
        ]  # fmt: skip
        client.forget()
        await client.prompt(session, "/mcp it env")
        assert json.loads(client.said())["KEY"] == "the client's"
        await client.ask("session/close", {"sessionId": session})
        assert all_dead(started) == 1
        await client.resume(session, str(tmp_path))
        assert len(await marked(started, 2)) == 2


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (None, "mcp.json cannot be read: No such file or directory"),
        ("", "mcp.json is not JSON: "),
        ('{"mcpServers": {"a": {"command": "hunter2-in-a-file"}', "mcp.json is not JSON: "),
        ('{"mcpServers": {"a": {"command": "\\ud800"}}}', "mcp.json is not JSON: "),
        (b'{"mcpServers": {"\xff": {}}}', "mcp.json is not JSON: "),
        ('["hunter2-in-a-file"]', 'mcp.json must hold an object like {"mcpServers": {"name": {"command": "…"}}}'),
        ('{"servers": {"a": {"command": "a"}}}', 'mcp.json must hold an object like {"mcpServers"'),
        ('{"mcpServers": {"a": "hunter2-in-a-file"}}', "mcp.json: MCP server 'a' must be an object"),
        ('{"mcpServers": {"a": {"args": ["hunter2-in-a-file"]}}}', "mcp.json: MCP server 'a': "),
        ('{"mcpServers": {"a": {"command": "a", "env": {"KEY": 5}}}}', "mcp.json: MCP server 'a': "),
        ('{"mcpServers": {"a": {"command": "a", "env": "hunter2-in-a-file"}}}', "mcp.json: MCP server 'a': "),
        ('{"mcpServers": {"a": {"url": "ftp://hunter2-in-a-file"}}}', "mcp.json: MCP server 'a': its url must begin"),
        ('{"mcpServers": {"a": {"url": "http://a", "headers": {"x": "hunter2-in-a-file\\n"}}}}', "HTTP does not allow"),
        ('{"mcpServers": {"a": {"type": "ws", "url": "ws://a"}}}', "it connects: http, sse, stdio"),
        ('{"mcpServers": {"": {"command": "a"}}}', "mcp.json: mcpServers[0] must have a name"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_file_is_said_at_once_and_without_its_secrets(
    written: str | bytes | None, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.json"
    if written is not None:
        file.write_bytes(written if isinstance(written, bytes) else written.encode())
    command = (sys.executable, "-m", "holdfast", "run", "demo", "--mcp-config", file.name)
    done = subprocess.run(command, cwd=tmp_path, input="", capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("holdfast: mcp.json")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert SECRET not in done.stderr


@VERSIONS
@pytest.mark.parametrize("agent", [("demo",), ("--", sys.executable, "-m", "holdfast", "run", "demo")])
def test_a_chat_gives_the_servers_of_a_file_to_its_agent(agent: tuple[str, ...], version: int, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"plain": stdio(KEY=SECRET), "off": stdio() | {"disabled": True}}}))
    store = str(tmp_path / "store.db")

    def chat(*arguments: str) -> str:
        ours = ("chat", "--mcp-config", str(file), "--store", store, "--protocol", str(version), "--print", *arguments)
        command = (sys.executable, "-m", "holdfast", *ours, *agent)
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert chat("--prompt", "say hello").strip()
    assert chat("--continue", "--prompt", '/mcp plain echo {"text": "hi"}').strip() == "hi"
    assert "- plain: ready" in (listed := chat("--prompt", "/mcp")) and "off" not in listed
    assert files_with(SECRET, tmp_path) == [file]


def test_a_chat_says_what_is_wrong_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"servers": {}}')
    command = (sys.executable, "-m", "holdfast", "chat", "demo", "--mcp-config", str(file), "--prompt", "x", "--print")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 1 and "must hold an object like" in done.stderr and "Traceback" not in done.stderr
