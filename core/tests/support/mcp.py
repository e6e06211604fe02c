"""MCP servers for tests: ours, which behaves as it is told, and toolboxes that are empty in the end."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.tests.support.links import PATIENCE, PROGRAMS
from core.tests.support.wire import wait_for_death
from holdfast.mcp import McpLimits, StdioServer, Toolbox

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from holdfast.mcp import Server, ServerStatus

QUICK = McpLimits(start=PATIENCE, stop=0.2, backoff=0.3)
"""Ends servers soon, and waits for those that are slow to start."""

PROGRAM = str(PROGRAMS / "mcp_server.py")


def hostile(*manners: str, name: str = "it", **env: str) -> StdioServer:
    """Our server, as a toolbox knows it."""
    return StdioServer(name, sys.executable, ("-S", PROGRAM, *manners), tuple(env.items()))


def wire(*manners: str, name: str = "it", version: int = 1, **env: str) -> dict[str, Any]:
    """Our server, as a client names it."""
    pairs = [{"name": key, "value": value} for key, value in env.items()]
    server: dict[str, Any] = {"name": name, "command": sys.executable, "args": ["-S", PROGRAM, *manners], "env": pairs}
    return server if version == 1 else {**server, "type": "stdio"}


class Box(Toolbox):
    """A toolbox that keeps what it was told of failures."""

    failures: list[ServerStatus]

    def fails(self) -> list[str]:
        return [it.name for it in self.failures]


@asynccontextmanager
async def toolbox(
    *servers: Server,
    cwd: Path | str = "/tmp",
    roots: Sequence[str] | None = None,
    limits: McpLimits = QUICK,
    **more: Any,
) -> AsyncGenerator[Box]:
    """Have servers, and none of them in the end."""
    failures: list[ServerStatus] = []
    box = Box(cwd=str(cwd), roots=lambda: roots or [str(cwd)], on_failure=failures.append, limits=limits, **more)
    box.failures = failures
    await box.change(servers)
    try:
        yield box
    finally:
        async with asyncio.timeout(PATIENCE):
            await box.close()


def marks(path: Path) -> list[int]:
    """The pids that servers and their children have left in a file."""
    return [pid for pid in map(int, path.read_text().split()) if pid > 0] if path.exists() else []


async def marked(path: Path, count: int) -> list[int]:
    """Wait until so many have left their pid."""
    await _until(lambda: len(marks(path)) >= count)
    return marks(path)


async def written(path: Path, text: str) -> None:
    """Wait until a file holds a text."""
    await _until(lambda: path.exists() and text in path.read_text())


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():  # noqa: ASYNC110  (it is another process that makes it so)
            await asyncio.sleep(0.01)


def all_dead(path: Path) -> int:
    """Wait until all who left their pid are gone; say how many there were."""
    found = marks(path)
    wait_for_death(found)
    return len(found)


def files_with(text: str, directory: Path) -> list[Path]:
    """Find the files that hold a text."""
    return [it for it in directory.rglob("*") if it.is_file() and text.encode() in it.read_bytes()]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
