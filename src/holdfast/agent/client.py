"""What the editor does for the agent: its files as the user sees them, unsaved changes included, and its terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.engine import LiveTurn, SessionClient
    from holdfast.model import ClientInfo
    from holdfast.workspace import Workspace


class ClientServices:
    """The editor's files and terminals. Paths outside the session's roots are refused before it is asked (C11)."""

    def __init__(self, turn: LiveTurn, client: SessionClient, workspace: Callable[[], Workspace]) -> None:
        self._turn = turn
        self._client = client
        self._workspace = workspace

    @property
    def offers(self) -> frozenset[str]:
        """Of ``read``, ``write`` and ``terminal``, what it can be asked for."""
        return self._client.services

    async def read_text(self, path: str, *, line: int | None = None, limit: int | None = None) -> str:
        """Read a file as the editor has it; from a line on (the first is 1), and so many lines."""
        self._need("read")
        params: dict[str, Any] = {"path": self._inside(path)}
        if line is not None:
            params["line"] = line
        if limit is not None:
            params["limit"] = limit
        return (await self._call("fs/read_text_file", params))["content"]

    async def write_text(self, path: str, text: str) -> None:
        """Write a file through the editor."""
        self._need("write")
        await self._call("fs/write_text_file", {"path": self._inside(path), "content": text})

    async def run(self, *command: str, cwd: str | None = None, limit: int = 1 << 20) -> tuple[int | None, str]:
        """Run a command in a terminal of the editor; give its exit status and output."""
        self._need("terminal")
        params: dict[str, Any] = {"command": command[0], "args": list(command[1:]), "outputByteLimit": limit}
        params["cwd"] = self._inside(cwd or ".")
        terminal = {"terminalId": (await self._call("terminal/create", params))["terminalId"]}
        try:
            ended = await self._call("terminal/wait_for_exit", terminal)
            output = await self._call("terminal/output", terminal)
        finally:
            await self._call("terminal/release", terminal)
        return ended.get("exitCode"), output["output"]

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send the client a request of one's own, as ``_mine/mood``; return its result, or raise `RemoteError`."""
        await self._turn.shown()
        return await self._client.request(method, params)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send the client a notification of one's own."""
        self._client.notify(method, params)

    @property
    def info(self) -> ClientInfo:
        """What the client said about itself: its name, version and capabilities."""
        return self._client.info

    def _inside(self, path: str) -> str:
        """Return a path made absolute; raise `OutsideRoots` where it leaves the session's roots."""
        return str(self._workspace().absolute(path))

    async def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        await self._turn.shown()  # what was said before it is asked is shown before
        return await self._client.request(method, {"sessionId": self._turn.session.id, **params})

    def _need(self, service: str) -> None:
        if service not in self.offers:
            raise UsageError(f"this client does not offer {service}; look at `turn.client.offers` first")
