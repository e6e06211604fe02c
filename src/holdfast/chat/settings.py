"""`ChatSettings`: which agent the user wants to talk to, where, and in which of its sessions."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from holdfast.agent_name import holdfast_verb, split_agent_name
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.diagnostics import LogLevel

PermissionChoice: TypeAlias = Literal["ask", "allow", "deny", "reads"]
"""What becomes of permission requests. With "reads", what only reads or searches is allowed, the rest asked about."""

PrintFormat: TypeAlias = Literal["text", "json", "quiet"]

BUILT_IN = ("demo", "code")

SERVERS = ("http://", "https://", "ws://", "wss://")
"""How the URL of an agent on a server begins."""

CLIENT_NAME = "holdfast-chat"
"""What the chat is called in `initialize`."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """How far the user wants to look into the agent."""

    log_level: LogLevel | None = None
    """What the agent logs; where it is None, an author sees warnings of the agent's own file."""
    wire: bool = False
    """Whether every message is shown."""
    wire_file: str | None = None
    """The file that every message is written to."""
    reload: bool = False
    """Whether the agent is started again when its file changes."""


SERVER_SECONDS = "2"
"""So long a server may be out of reach when a chat begins: who sits there learns soon that it is not there."""

NO_INSPECTION = Inspection()


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """What the command line of `holdfast chat` asks for."""

    command: tuple[str, ...]
    """The command that starts the agent."""
    named: tuple[str, ...]
    """How the user named the agent on the command line."""
    cwd: str
    """The directory of its sessions; of an agent on a server, a directory there."""
    newest: bool = False
    """Whether to go on with the newest session of the directory."""
    resume: str | None = None
    """The id, or the beginning of the id, of the session to go on with."""
    permissions: PermissionChoice | None = None
    """The answer to permission requests; by default the user is asked, and where there is no user, "deny"."""
    protocol: Literal["auto", 1, 2] = "auto"
    shows_output: bool = False
    """Whether what the agent writes to stderr is shown."""
    wire: bool = False
    wire_file: str | None = None
    watched: Path | None = None
    """The file whose changes start the agent again."""
    agent_command: tuple[str, ...] = ()
    """The agent's own command, to which it may add what lets a user log in."""
    theme: str | None = None
    mcp_servers: tuple[dict[str, Any], ...] = ()
    """MCP servers for every session, as the protocol has them, each with its type."""
    here: str | None = None
    """The directory that the agent's process is started in, where that is not `cwd`."""

    @property
    def process_cwd(self) -> str:
        """The directory on this machine that programs are started in."""
        return self.here or self.cwd

    @property
    def runs_ours(self) -> bool:
        """Whether the agent is one that Holdfast runs, not a command of somebody else's."""
        return holdfast_verb(self.agent_command) == "run"

    @property
    def restores(self) -> bool:
        """Whether the session exists already."""
        return self.newest or self.resume is not None

    def resume_command(self, session_id: str) -> str:
        """Return the shell command that goes on with a session."""
        return shlex.join(("holdfast", "chat", "--resume", session_id, *self.named))


def chat_settings(
    agent: str | None,
    command: tuple[str, ...] | None,
    *,
    cwd: str,
    newest: bool,
    resume: str | None,
    permissions: PermissionChoice | None,
    store: str | None,
    protocol: Literal["auto", 1, 2],
    inspection: Inspection = NO_INSPECTION,
    bare: bool = False,
    token_file: str | None = None,
    ca: str | None = None,
    maps: Sequence[str] = (),
) -> tuple[ChatSettings, str]:
    """Return the settings that a command line means, and what the user should be told about them.

    An agent of ours runs in a process of its own, as it does for an editor: whatever it prints, and however it ends,
    the chat goes on. Any other is wrapped, so that its sessions hold too, unless `bare`, or if it is Holdfast. One on
    a server is reached through `holdfast connect`. Raises `UsageError` where there is no such agent.
    """
    remote = agent is not None and agent.startswith(SERVERS)
    given = {"--token-file": token_file, "--ca": ca, "--map": maps or None}
    if not remote and (for_servers := [name for name, value in given.items() if value is not None]):
        raise UsageError(f"{' and '.join(for_servers)}: only for an agent on a server, which is given by its URL")
    remark = ""
    watched: Path | None = None
    by_author = False
    if command is not None:
        if inspection.reload:
            raise UsageError("--reload is for an agent in a Python file; one that is given by its command has none")
        if bare and store is not None:
            raise UsageError("--store and --bare do not go together: without us the agent keeps its own sessions")
        store_option = ("--store", store) if store is not None else ()
        named = (*store_option, *(("--bare",) if bare else ()), "--", *command)
        own = command
        if not bare and (store is not None or holdfast_verb(command) is None):  # a Holdfast keeps its sessions itself
            command = (sys.executable, "-m", "holdfast", "wrap", *store_option, "--", *command)
    else:
        if agent is None:
            agent, remark = default_agent()
        if agent.startswith(SERVERS):
            files = {"--token-file": token_file, "--ca": ca}
            entry = tuple(word for name, file in files.items() if file is not None for word in (name, file))
            entry += tuple(word for pair in maps for word in ("--map", pair))
            connect = (sys.executable, "-m", "holdfast", "connect", agent, *entry, "--wait", SERVER_SECONDS)
            settings = ChatSettings(
                connect,
                (*entry, agent),
                cwd,
                newest,
                resume,
                permissions,
                protocol,
                wire=inspection.wire,
                wire_file=inspection.wire_file,
            )
            return settings, remark
        if agent not in BUILT_IN and not Path(split_agent_name(agent)[0]).exists():
            raise UsageError(
                f"there is no file {agent}; any other agent is given by its command: holdfast chat -- {agent}"
            )
        by_author = agent not in BUILT_IN or Path(agent).is_file()
        if inspection.reload:
            watched = _watched(agent, by_author=by_author)
        store_option = ("--store", store) if store is not None else ()
        looked_into = _log_options(inspection.log_level) if by_author or inspection.log_level else ()
        command = (sys.executable, "-m", "holdfast", "run", agent, *store_option, *looked_into)
        named = (*store_option, agent)
        own = (sys.executable, "-m", "holdfast", "run", agent)
    settings = ChatSettings(
        command,
        named,
        cwd,
        newest,
        resume,
        permissions,
        protocol,
        shows_output=by_author or inspection.log_level is not None,
        wire=inspection.wire,
        wire_file=inspection.wire_file,
        watched=watched,
        agent_command=own,
    )
    return settings, remark


def settings_in(directory: str, settings: ChatSettings) -> ChatSettings:
    """Return the settings of a chat whose sessions are in a directory. Raises `UsageError` where there is none."""
    if not settings.agent_command:  # it is on a server
        if not directory.startswith("/"):
            raise UsageError(f"--cwd {directory}: a directory on the server is named by its whole path, as /srv/ada")
        cwd = directory
    else:
        path = Path(directory).absolute()
        if not path.is_dir():
            raise UsageError(f"--cwd {directory}: there is no such directory")
        cwd = str(path)
    return replace(settings, cwd=cwd, here=settings.cwd, named=("--cwd", cwd, *settings.named))


def _watched(agent: str, *, by_author: bool) -> Path:
    """Return the file that `--reload` watches. Raises `UsageError` for an agent that has none."""
    if not by_author:
        raise UsageError(f"--reload is for an agent in a Python file; {agent} comes with Holdfast")
    return Path(split_agent_name(agent)[0]).absolute()


def _log_options(level: LogLevel | None) -> tuple[str, ...]:
    """Return how an agent of ours logs: so that a chat can tell it from what is printed."""
    return ("--log-level", level or "warning", "--log-format", "json", "--watch-loop", "1")


def default_agent() -> tuple[str, str]:
    """Return the agent for a command line that names none, the coding agent if it has a model, and a remark on it."""
    if os.environ.get("HOLDFAST_MODEL") and find_spec("holdfast.code") is not None:
        return "code", ""
    return "demo", "This is the demo agent: no agent was named, and HOLDFAST_MODEL names no model for the coding agent."
