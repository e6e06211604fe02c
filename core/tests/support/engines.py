"""Engines in processes of their own, to be told what to do and to be killed."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.tests.support.sessions import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

ROOT = Path(__file__).parents[3]


class EngineProcess:
    """An engine in another process (`core/tests/programs/engine.py`)."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.drops: list[str] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    async def do(self, operation: str, *arguments: object) -> Any:
        """Tell it to do something; give the result, or the name of the error and its message."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([operation, *arguments]).encode() + b"\n")
        async with asyncio.timeout(PATIENCE):
            while line := await self._process.stdout.readline():
                kind, *words = json.loads(line)
                if kind == "ok":
                    return words[0]
                if kind == "error":
                    return tuple(words)
                self.drops += words
        raise AssertionError("it is gone")

    async def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()


@asynccontextmanager
async def engine_process(place: Path) -> AsyncGenerator[EngineProcess]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "core.tests.programs.engine", str(place), cwd=ROOT, stdin=-1, stdout=-1
    )
    try:
        yield EngineProcess(process)
    finally:
        assert process.stdin
        process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            await process.wait()
