"""What the editor does for the agent: its files as the user sees them, unsaved changes included, and its terminals."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.errors import RemoteError, UsageError
from holdfast.model import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.agent.tools import ToolCall
    from holdfast.engine import LiveTurn, SessionClient
    from holdfast.model import ClientInfo, Update
    from holdfast.workspace import Workspace


class ClientServices:
    """The editor's files and terminals. Paths outside the session's roots are refused before it is asked."""

    def __init__(self, turn: LiveTurn, client: SessionClient, workspace: Callable[[], Workspace]) -> None:
        self._turn = turn
        self._client = client
        self._workspace = workspace

    @property
    def offers(self) -> frozenset[str]:
        """Of ``read``, ``write`` and ``terminal``, what it can be asked for."""
        return self._client.services

    async def read_text(self, path: str, *, line: int | None = None, limit: int | None = None) -> str:
        """Read a file as the editor has it, unsaved changes included.

        Args:
            path: the file, relative to the session's directory or absolute.
            line: the first line to read; the first of the file is 1.
            limit: how many lines to read.

        Returns:
            The text.

        Raises:
            UsageError: the client does not offer ``read``.
            OutsideRoots: the path leaves the session's directories.
            RemoteError: the client refuses.

        """
        self._need("read")
        params: dict[str, Any] = {"path": self._inside(path)}
        if line is not None:
            params["line"] = line
        if limit is not None:
            params["limit"] = limit
        return (await self._call("fs/read_text_file", params))["content"]

    async def write_text(self, path: str, text: str) -> None:
        """Write a file through the editor.

        Args:
            path: the file, relative to the session's directory or absolute.
            text: the whole text of it.

        Raises:
            UsageError: the client does not offer ``write``.
            OutsideRoots: the path leaves the session's directories.
            RemoteError: the client refuses.

        """
        self._need("write")
        await self._call("fs/write_text_file", {"path": self._inside(path), "content": text})

    async def run(
        self, *command: str, cwd: str | None = None, limit: int = 1 << 20, call: ToolCall | None = None
    ) -> tuple[int | None, str]:
        """Run a command in a terminal of the editor. It is killed when the turn is cancelled.

        Args:
            command: the program and its arguments.
            cwd: the directory it runs in, by default the session's.
            limit: how many bytes of its output the editor keeps.
            call: a tool call that shows the terminal while it runs, and its output for ever.

        Returns:
            Its exit status, None where a signal has ended it, and its output.

        Raises:
            UsageError: the client does not offer ``terminal``.
            OutsideRoots: the directory is none of the session's.
            RemoteError: the client refuses.

        """
        self._need("terminal")
        inside = self._inside(cwd or ".")
        params = {"command": command[0], "args": list(command[1:]), "cwd": inside, "outputByteLimit": limit}
        own_id: str = (await self._call("terminal/create", params))["terminalId"]
        shown = None if call is None else await self._show_terminal(call, own_id, " ".join(command), inside)
        ended: dict[str, Any] = {}
        try:
            ended = await self._wait_for_exit(own_id)
        finally:
            output = await self._release(own_id)
            if call is not None and self._turn.running:
                call.emit({"sessionUpdate": "terminal_update", "terminalId": shown, **_terminal_end(output, ended)})
        return ended.get("exitCode"), output

    async def _wait_for_exit(self, own_id: str) -> dict[str, Any]:
        try:
            return await self._call("terminal/wait_for_exit", {"terminalId": own_id})
        except asyncio.CancelledError:
            with suppress(RemoteError):  # it may have ended just now
                await self._call("terminal/kill", {"terminalId": own_id})
            raise

    async def _release(self, own_id: str) -> str:
        """Release a terminal; return what was printed in it."""
        try:
            return (await self._call("terminal/output", {"terminalId": own_id}))["output"]
        finally:
            await self._call("terminal/release", {"terminalId": own_id})

    async def _show_terminal(self, call: ToolCall, own_id: str, command: str, cwd: str) -> str:
        """Show a terminal of the client's in a tool call; return its id in the history, where ids are ours."""
        terminal_id = new_id("term")
        self._client.embed_terminal(terminal_id, own_id)
        call.emit({"sessionUpdate": "terminal_update", "terminalId": terminal_id, "command": command, "cwd": cwd})
        await call.add_terminal(terminal_id)
        return terminal_id

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send the client a request of one's own.

        Args:
            method: the name of the request, as ``_mine/mood``.
            params: what is asked.

        Returns:
            The result.

        Raises:
            RemoteError: the client answers with an error.

        """
        await self._turn.shown()
        return await self._client.request(method, params)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send the client a notification of one's own.

        Args:
            method: the name of the notification.
            params: what is told.

        """
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


def _terminal_end(output: str, ended: dict[str, Any]) -> Update:
    """Return what a terminal printed and how its command ended, as members of a terminal."""
    status = {name: ended[name] for name in ("exitCode", "signal") if ended.get(name) is not None}
    return {"output": {"data": b64encode(output.encode(errors="replace")).decode()}, "exitStatus": status}
