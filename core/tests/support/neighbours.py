"""Other processes at the same store."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import errors

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncGenerator

PATIENCE = 60.0
"""No test waits longer than this for an answer."""

PROGRAM = Path(__file__).parents[1] / "programs" / "neighbour.py"


class Neighbour:
    """A process that does what it is told with a store of its own."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def do(self, what: str, session: str = "", text: str = "") -> Any:
        """Let it do something; an error of its store is raised here."""
        self.tell(what, session, text)
        return await self.answer()

    def tell(self, what: str, session: str = "", text: str = "") -> None:
        """Tell it to do something."""
        assert self._process.stdin is not None
        asked = {"what": what, "session": session, "text": text} if session or text else {"what": what}
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")

    async def answer(self) -> Any:
        """Wait for its answer."""
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)
        assert line, "it died"
        answer = json.loads(line)
        if "error" in answer:
            raise getattr(errors, answer["error"])(answer["message"])
        return answer["done"]

    async def kill(self) -> None:
        """Kill it, with no time for last words."""
        self._process.kill()
        await asyncio.wait_for(self._process.wait(), PATIENCE)

    async def leave(self) -> None:
        """Let it end, without closing its store."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), PATIENCE)
        except TimeoutError:
            await self.kill()
            pytest.fail("it did not end")


@asynccontextmanager
async def neighbour(path: str | None = None) -> AsyncGenerator[Neighbour]:
    """Start a process, at a store or at none yet."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, str(PROGRAM), stdin=pipe, stdout=pipe)
    other = Neighbour(process)
    try:
        if path is not None:
            await other.do("open", text=path)
        yield other
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
