"""What a connection may use of the machine that the server runs on: directories, and programs it names (H10).

On stdio nothing is asked: whoever started the process may do what it may. A server over the network gives each
connection the `Access` of its principal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.model import Update
    from holdfast.workspace.allowed import AllowedDirectories


class Access:
    """What one principal may use."""

    __slots__ = ("_allowed", "starts_programs")

    def __init__(self, directories: Iterable[str] | None = None, *, starts_programs: bool = True) -> None:
        """Allow sessions in some directories, or anywhere where they are None.

        `starts_programs` says whether MCP servers that are programs are started when a client names them.
        """
        self._allowed = None if directories is None else _allowed(directories)
        self.starts_programs: bool = starts_programs

    @property
    def directories(self) -> tuple[str, ...] | None:
        """The directories in which sessions may be opened; None is any."""
        return None if self._allowed is None else self._allowed.directories

    def check(self, cwd: str, additional: Iterable[str]) -> None:
        """Raise `InvalidParams` where one of a session's directories is not allowed, by itself or through a link."""
        if self._allowed is None:
            return
        outside = self._allowed.first_outside((cwd, *additional))
        if outside is not None:
            raise InvalidParams(_refusal(outside, self._allowed.directories), {"directory": outside})

    def startable(self, servers: Sequence[Update]) -> tuple[Sequence[Update], list[str]]:
        """Return the MCP servers that may be used, and the names of those that would be programs and may not."""
        if self.starts_programs:
            return servers, []
        refused = [str(server.get("name"))[:100] for server in servers if _is_program(server)]
        return [server for server in servers if not _is_program(server)], refused


def not_started(names: Sequence[str]) -> Update:
    """Return the notice which says that MCP servers of a client were left out."""
    return {
        "sessionUpdate": "notice",
        "severity": "warning",
        "title": f"Not started: MCP server {', '.join(names)}",
        "description": "This server starts no programs that its clients name. Use MCP servers over HTTP,"
        " or ask whoever runs it for a launcher, or for --mcp-programs.",
    }


def _allowed(directories: Iterable[str]) -> AllowedDirectories:
    from holdfast.workspace.allowed import AllowedDirectories  # noqa: PLC0415  (on stdio nothing is refused)

    return AllowedDirectories(directories)


def _is_program(server: Update) -> bool:
    return server.get("type") in (None, "stdio") or "command" in server


def _refusal(outside: str, directories: Sequence[str]) -> str:
    if not directories:
        return f"{outside} is not yours to work in: this server has no directory for you; ask whoever runs it for one"
    named = ", ".join(directories)
    return (
        f"{outside} is not among the directories that you may work in on this server ({named})."
        f" Open the session in one of them: --cwd {directories[0]} does so in `holdfast chat`,"
        f" and --map {outside}={directories[0]} there and in `holdfast connect` for an editor"
    )
