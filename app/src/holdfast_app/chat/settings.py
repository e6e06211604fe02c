"""`ChatSettings`: which agent the user wants to talk to, where, and in which of its sessions."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from holdfast.agent_name import holdfast_verb, split_agent_name
from holdfast.errors import UsageError
from holdfast_app.known_agents import KNOWN_AGENTS, installed_command, one_name

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


class Belonging(NamedTuple):
    """Which agent a stored session belongs to."""

    agent: str
    """The name of the agent, as the store has it."""
    line: str
    """What the user types to go on with the session."""


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
    belongs_to: Belonging | None = None
    """Whose the session to resume is; None if the store does not have it."""

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
    name: str | None = None,
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
    if not remote and (for_servers := [option for option, value in given.items() if value is not None]):
        raise UsageError(f"{' and '.join(for_servers)}: only for an agent on a server, which is given by its URL")
    if remote and name is not None:
        raise UsageError("--name: an agent on a server has the name that the server gives it")
    remark = ""
    watched: Path | None = None
    by_author = False
    own_options = tuple(
        word
        for option, value in (("--store", store), ("--name", name))
        if value is not None
        for word in (option, value)
    )
    known = None if agent is None or command is not None else _known(agent)
    if known is not None:
        command = installed_command(KNOWN_AGENTS[known])
    if command is not None:
        if inspection.reload:
            raise UsageError("--reload is for an agent in a Python file; one that is given by its command has none")
        if bare and own_options:
            raise UsageError(
                f"{own_options[0]} and --bare do not go together: without us the agent keeps its own sessions"
            )
        named = (*own_options, *(("--bare",) if bare else ()), *(("--", *command) if known is None else (known,)))
        own = command
        if not bare and (own_options or holdfast_verb(command) is None):  # a Holdfast keeps its sessions itself
            name_option = ("--name", known) if known is not None and name is None else ()
            command = (sys.executable, "-m", "holdfast", "wrap", *own_options, *name_option, "--", *command)
    else:
        if agent is None:
            agent, remark = default_agent()
        if agent.startswith(SERVERS):
            files = {"--token-file": token_file, "--ca": ca}
            entry = tuple(word for option, file in files.items() if file is not None for word in (option, file))
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
                f"there is no file {agent}; any other agent is given by its command: holdfast chat -- {agent}\n"
                f"(or by its name: {', '.join(KNOWN_AGENTS)})"
            )
        by_author = agent not in BUILT_IN or Path(agent).is_file()
        if inspection.reload:
            watched = _watched(agent, by_author=by_author)
        looked_into = _log_options(inspection.log_level) if by_author or inspection.log_level else ()
        command = (sys.executable, "-m", "holdfast", "run", agent, *own_options, *looked_into)
        named = (*own_options, agent)
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


def _known(agent: str) -> str | None:
    """Return the one name of a known agent that an argument means, or None. A file of that name goes first."""
    name = one_name(agent)
    return name if name in KNOWN_AGENTS and not Path(agent).is_file() else None


def is_elsewhere(agent: str | None, command: tuple[str, ...] | None) -> bool:
    """Return whether an agent may keep its sessions in another store: on a server, or as another Holdfast says."""
    return (agent is not None and agent.startswith(SERVERS)) or holdfast_verb(command or ()) is not None


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
    if os.environ.get("HOLDFAST_MODEL") and find_spec("holdfast_app.code") is not None:
        return "code", ""
    return "demo", "This is the demo agent: no agent was named, and HOLDFAST_MODEL names no model for the coding agent."
