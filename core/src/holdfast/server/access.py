"""What a connection may use of the machine that the server runs on: directories, and programs it names (H10).

On stdio nothing is asked: whoever started the process may do what it may. A server over the network gives each
connection the `Access` of its principal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from holdfast.model import Update
    from holdfast.workspace import Workspace
    from holdfast.workspace.allowed import AllowedDirectories


class Access:
    """What one principal may use."""

    __slots__ = ("_allowed", "starts_programs", "threads")

    def __init__(
        self,
        allowed: AllowedDirectories | None = None,
        *,
        starts_programs: bool = True,
        threads: ThreadPoolExecutor | None = None,
    ) -> None:
        """Allow sessions in some directories, or anywhere if they are None.

        Args:
            allowed: the directories.
            starts_programs: whether MCP servers that are programs are started when a client names them.
            threads: those that look at files for the principal, as the user that its agent runs as; any if omitted.

        """
        self._allowed = allowed
        self.starts_programs: bool = starts_programs
        self.threads: ThreadPoolExecutor | None = threads

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

    def holds(self, workspace: Workspace) -> bool:
        """Return whether the directories that were found, whatever their names lead to by now, are allowed."""
        return self._allowed is None or workspace.lies_in(self._allowed)

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
