"""The TypeScript SDK's client as an object: requests, notifications, and what it was told and asked."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from app.tests.field.agents import node_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

DRIVER = Path(__file__).with_name("driver.mjs")
PATIENCE = float(os.environ.get("HOLDFAST_FIELD_PATIENCE", "180"))
"""Seconds that no step of any agent takes; some need half a minute to start."""
FS = {"readTextFile": True, "writeTextFile": True}


class Refused(Exception):
    """The agent answered with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error.get('code')} {error.get('message')} {error.get('data') or ''}")
        self.code = error.get("code")


class Gone(Exception):
    """The agent's process, or the client's, has ended."""


class Client:
    """A client of one agent process, on the official TypeScript SDK."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], cwd: Path, *, version: int = 1, stderr: Path | None = None
    ) -> None:
        self._plan = {"version": version, "command": list(command), "cwd": str(cwd), "fs": True}
        self._env, self._stderr, self.version, self.cwd = dict(env), stderr, version, cwd
        self.updates: list[tuple[str, dict[str, Any]]] = []
        """All updates, with the session they are about."""
        self.asked: list[dict[str, Any]] = []
        """The questions for permission."""
        self.withdrawn: list[dict[str, Any]] = []
        """Those of them that the agent has cancelled: another client has answered."""
        self.files: list[dict[str, str]] = []
        """What was read and written through the client."""
        self.pid = 0
        """The process of the agent."""
        self.welcome: dict[str, Any] = {}
        """The answer to `initialize`."""
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._changed = asyncio.Condition()
        self._process: asyncio.subprocess.Process
        self._reading: asyncio.Task[None]
        self._gone = False

    async def __aenter__(self) -> Self:
        node = str(node_directory() / "node")
        with (self._stderr or Path(os.devnull)).open("ab") as stderr:
            self._process = await asyncio.create_subprocess_exec(
                *(node, str(DRIVER), json.dumps(self._plan)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                env=self._env,
                limit=1 << 28,
            )
        self._reading = asyncio.create_task(self._read())
        try:
            self.welcome = await self._initialize()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(20):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reading

    async def _initialize(self) -> dict[str, Any]:
        info = {"name": "field", "version": "1"}
        if self.version == 2:
            return await self.request("initialize", {"protocolVersion": 2, "info": info, "capabilities": {}})
        capabilities = {"fs": FS, "terminal": False}
        params = {"protocolVersion": 1, "clientInfo": info, "clientCapabilities": capabilities}
        return await self.request("initialize", params)

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request; return the result or raise `Refused` or `Gone`."""
        return await self.begin(method, params)

    def begin(self, method: str, params: Mapping[str, Any]) -> asyncio.Future[Any]:
        """Send a request; return what will be its result."""
        number = len(self._answers) + 1
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        if self._gone:
            answer.set_exception(Gone(method))
        else:
            self._tell({"id": number, "method": method, "params": params})
        return asyncio.ensure_future(asyncio.wait_for(answer, PATIENCE))

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        self._tell({"method": method, "params": params})

    def allow(self, kind: str | None) -> None:
        """Say how questions are answered from now on: the kind of an option, or None to leave them open."""
        self._tell({"allow": kind})

    def of(self, session: str, since: int = 0) -> list[dict[str, Any]]:
        """Return what was told of a session."""
        return [update for about, update in self.updates[since:] if about == session]

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something holds of what this client was told."""
        try:
            async with asyncio.timeout(PATIENCE), self._changed:
                await self._changed.wait_for(lambda: condition() or self._gone)
        except TimeoutError:
            raise TimeoutError(f"waited in vain until {what}") from None
        if not condition():
            raise Gone(what)

    def _tell(self, line: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self._take(json.loads(line))
            async with self._changed:
                self._changed.notify_all()
        self._end("the client's process ended")
        async with self._changed:
            self._changed.notify_all()

    def _take(self, line: dict[str, Any]) -> None:
        if "update" in line:
            self.updates.append((line["update"]["sessionId"], line["update"]["update"]))
        elif "asked" in line:
            self.asked.append(line["asked"])
        elif "withdrawn" in line:
            self.withdrawn.append(line["withdrawn"])
        elif "file" in line:
            self.files.append(line["file"])
        elif "pid" in line:
            self.pid = line["pid"]
        elif "exit" in line:
            self._end(f"the agent exited: {line['exit']}")
        elif "id" in line and not (answer := self._answers[line["id"]]).done():
            if "error" in line:
                answer.set_exception(Refused(line["error"]))
            else:
                answer.set_result(line["result"])

    def _end(self, why: str) -> None:
        self._gone = True
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(Gone(why))
