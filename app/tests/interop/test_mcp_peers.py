"""Real MCP servers, as others wrote them: from npm over all three ways of talking, and from PyPI."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.support.links import PATIENCE
from core.tests.support.mcp import toolbox
from core.tests.support.wire import wait_for_death
from holdfast.errors import ServerUnavailable, ToolFailed
from holdfast.mcp import HttpServer, McpLimits, Progress, SseServer, StdioServer
from holdfast.model import Elicitation, ElicitationAnswer

if TYPE_CHECKING:
    from collections.abc import Generator

    from holdfast.mcp import Server

MODULES = Path(__file__).parent.parent.parent.parent / "node_modules" / "@modelcontextprotocol"

NODE = shutil.which("node") or ""

LIMITS = McpLimits(start=30.0)
"""The machine may be busy with other tests."""

needs_node = pytest.mark.skipif(
    not (NODE and MODULES.exists()) and not os.environ.get("CI"), reason="needs Node and the packages of package.json"
)


def everything(*arguments: str) -> list[str]:
    return [NODE, str(MODULES / "server-everything" / "dist" / "index.js"), *arguments]


@contextmanager
def listening(how: str, path: str) -> Generator[str]:
    """Start server-everything where it listens; give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    env = {**os.environ, "PORT": str(port)}
    server = subprocess.Popen(everything(how), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        assert server.stderr is not None
        for line in server.stderr:
            if str(port) in line.decode() or b"listening" in line or b"running" in line:
                break
        yield f"http://127.0.0.1:{port}/{path}"
    finally:
        server.kill()
        server.communicate()


async def try_everything(server: Server) -> None:
    """What server-everything offers, over any transport."""
    heard: list[Progress] = []

    async def hear(progress: Progress) -> None:
        heard.append(progress)

    async def elicit(_: Elicitation) -> ElicitationAnswer | None:
        return ElicitationAnswer("decline")

    async with toolbox(server, limits=LIMITS, elicit=elicit) as box:
        (status,) = await box.ready()
        assert status.state == "ready", status.reason
        tools = {it.name: it for it in await box.tools()}
        assert tools["echo"].read_only
        assert (await box.call("every", "echo", {"message": "hi"})).text == "Echo: hi"
        assert "42" in (await box.call("every", "get-sum", {"a": 40, "b": 2})).text
        images = [it for it in (await box.call("every", "get-tiny-image")).content if it["type"] == "image"]
        assert images[0]["mimeType"] == "image/png"
        structured = await box.call("every", "get-structured-content", {"location": "New York"})
        assert "temperature" in structured.structured
        long = {"duration": 0.3, "steps": 3}
        assert "completed" in (await box.call("every", "trigger-long-running-operation", long, on_progress=hear)).text
        assert [it.done for it in heard] == [1, 2, 3]
        resource = (await box.resources())[0]
        assert (await box.read("every", resource.uri))[0]["uri"] == resource.uri
        assert "simple-prompt" in {it.name for it in await box.prompts()}
        assert (await box.prompt("every", "args-prompt", {"city": "Bern"}))[0]["role"] == "user"
        with pytest.raises(ToolFailed):
            await box.call("every", "no-such-tool")


@needs_node
@pytest.mark.requirement("E4")
async def test_everything_over_stdio() -> None:
    await try_everything(StdioServer("every", *_split(everything("stdio"))))


@needs_node
@pytest.mark.requirement("E1", "E4")
async def test_everything_over_streamable_http() -> None:
    with listening("streamableHttp", "mcp") as url:
        await try_everything(HttpServer("every", url))


@needs_node
@pytest.mark.requirement("E1", "E4")
async def test_everything_over_sse() -> None:
    with listening("sse", "sse") as url:
        await try_everything(SseServer("every", url))


@needs_node
@pytest.mark.requirement("E3", "E4")
@pytest.mark.parametrize(("how", "path", "kind"), [("streamableHttp", "mcp", HttpServer), ("sse", "sse", SseServer)])
async def test_a_server_elsewhere_that_goes_away_is_noticed_and_found_again(
    how: str, path: str, kind: type[HttpServer | SseServer]
) -> None:
    with listening(how, path) as url:
        server = kind("every", url)
        async with toolbox(server, limits=LIMITS._replace(call=10)) as box:
            assert (await box.call("every", "echo", {"message": "hi"})).text == "Echo: hi"
            port = url.split(":")[2].split("/")[0]
            pid = _listener(int(port))
            os.kill(pid, 9)
            await asyncio.to_thread(wait_for_death, [pid])
            if kind is HttpServer:  # between calls there is nothing to notice
                with pytest.raises(ServerUnavailable):
                    await box.call("every", "echo", {"message": "hi"})
            async with asyncio.timeout(PATIENCE):
                while not box.failures:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert [it.state for it in box.servers] == ["failed"]
            env = {**os.environ, "PORT": port}
            again = subprocess.Popen(everything(how), env=env, stderr=subprocess.PIPE)  # noqa: ASYNC220
            try:
                assert again.stderr is not None
                await asyncio.to_thread(again.stderr.readline)
                async with asyncio.timeout(PATIENCE):
                    assert await _eventually(box) == "Echo: back"
            finally:
                await box.close()
                again.kill()
                again.communicate()


async def _eventually(box: object) -> str:
    from holdfast.mcp import Toolbox

    assert isinstance(box, Toolbox)
    while True:
        try:
            return (await box.call("every", "echo", {"message": "back"})).text
        except ServerUnavailable:
            await asyncio.sleep(0.1)


@needs_node
@pytest.mark.requirement("E4")
async def test_the_filesystem_server_has_the_sessions_roots(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("21 degrees")
    program = str(MODULES / "server-filesystem" / "dist" / "index.js")
    async with toolbox(StdioServer("fs", NODE, (program,)), cwd=tmp_path, limits=LIMITS) as box:
        read = {"path": str(tmp_path / "a.txt")}
        async with asyncio.timeout(PATIENCE):
            while True:  # it asks for the roots in its own time
                try:
                    text = (await box.call("fs", "read_text_file", read)).text
                    break
                except ToolFailed:
                    await asyncio.sleep(0.05)
        assert text == "21 degrees"
        with pytest.raises(ToolFailed, match="denied"):
            await box.call("fs", "read_text_file", {"path": "/etc/passwd"})


@pytest.mark.requirement("E4")
async def test_the_time_server() -> None:
    async with toolbox(StdioServer("time", sys.executable, ("-m", "mcp_server_time")), limits=LIMITS) as box:
        assert {it.name for it in await box.tools()} == {"get_current_time", "convert_time"}
        assert "UTC" in (await box.call("time", "get_current_time", {"timezone": "UTC"})).text
        with pytest.raises(ToolFailed, match="timezone"):
            await box.call("time", "get_current_time", {"timezone": "Nowhere/Land"})


@pytest.mark.requirement("E2", "E4")
async def test_the_git_server(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)  # noqa: ASYNC221
    (tmp_path / "new.txt").write_text("new")
    server = StdioServer("git", sys.executable, ("-m", "mcp_server_git", "--repository", str(tmp_path)))
    async with toolbox(server, cwd=tmp_path, limits=LIMITS) as box:
        assert "new.txt" in (await box.call("git", "git_status", {"repo_path": str(tmp_path)})).text


def _split(command: list[str]) -> tuple[str, tuple[str, ...]]:
    return command[0], tuple(command[1:])


def _listener(port: int) -> int:
    """Find the process that was started to listen on a port: one of our children."""
    for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        environ = Path(f"/proc/{pid}/environ").read_bytes()
        if f"PORT={port}".encode() in environ.split(b"\0"):
            return int(pid)
    raise AssertionError(f"nobody listens on {port}")
