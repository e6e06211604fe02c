"""What the editor does for the agent: its files as the user sees them, unsaved changes included, and its terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.engine import Turn
    from holdfast.workspace import Workspace


class Services(Protocol):
    """Asks the editor; says what it can be asked for."""

    @property
    def offered(self) -> frozenset[str]:
        """Of ``read``, ``write`` and ``terminal``, what the editor does."""
        ...

    async def call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the editor for something, in the session it shows."""
        ...


class ClientServices:
    """The editor's files and terminals. Paths outside the session's roots are refused before it is asked (C11)."""

    def __init__(self, turn: Turn, services: Services, workspace: Workspace) -> None:
        self._turn = turn
        self._services = services
        self._workspace = workspace

    @classmethod
    def of(cls, turn: Turn) -> ClientServices | None:
        """Find a client that watches the turn and does something for the agent."""
        for attachment in turn.session.attachments:
            services: Services | None = getattr(attachment.watcher, "services", None)
            if services is not None and services.offered:
                from holdfast.workspace import Workspace  # noqa: PLC0415  (not everybody needs it)

                return cls(turn, services, Workspace.resolve(turn.session.cwd, turn.session.additional))
        return None

    @property
    def offers(self) -> frozenset[str]:
        """Of ``read``, ``write`` and ``terminal``, what it can be asked for."""
        return self._services.offered

    async def read_text(self, path: str, *, line: int | None = None, limit: int | None = None) -> str:
        """Read a file as the editor has it; from a line on (the first is 1), and so many lines."""
        self._need("read")
        params: dict[str, Any] = {"path": str(self._workspace.absolute(path))}
        if line is not None:
            params["line"] = line
        if limit is not None:
            params["limit"] = limit
        return (await self._call("fs/read_text_file", params))["content"]

    async def write_text(self, path: str, text: str) -> None:
        """Write a file through the editor."""
        self._need("write")
        await self._call("fs/write_text_file", {"path": str(self._workspace.absolute(path)), "content": text})

    async def run(self, *command: str, cwd: str | None = None, limit: int = 1 << 20) -> tuple[int | None, str]:
        """Run a command in a terminal of the editor; give its exit status and output."""
        self._need("terminal")
        params: dict[str, Any] = {"command": command[0], "args": list(command[1:]), "outputByteLimit": limit}
        params["cwd"] = str(self._workspace.absolute(cwd or "."))
        terminal = {"terminalId": (await self._call("terminal/create", params))["terminalId"]}
        try:
            ended = await self._call("terminal/wait_for_exit", terminal)
            output = await self._call("terminal/output", terminal)
        finally:
            await self._call("terminal/release", terminal)
        return ended.get("exitCode"), output["output"]

    async def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._turn.flush()  # what was said before it is asked is shown before
        return await self._services.call(method, params)

    def _need(self, service: str) -> None:
        if service not in self.offers:
            raise UsageError(f"this client does not offer {service}; look at `turn.client.offers` first")
