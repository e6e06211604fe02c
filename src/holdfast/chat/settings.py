"""`ChatSettings`: which agent the user wants to talk to, where, and in which of its sessions."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from holdfast.errors import UsageError

PermissionChoice: TypeAlias = Literal["ask", "allow", "deny"]

BUILT_IN = ("demo", "code")

CLIENT_NAME = "holdfast-chat"
"""What the chat is called in `initialize`."""


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """What the command line of `holdfast chat` asks for."""

    command: tuple[str, ...]
    """The command that starts the agent."""
    named: tuple[str, ...]
    """How the user named the agent on the command line."""
    cwd: str
    newest: bool = False
    """Whether to go on with the newest session of the directory."""
    resume: str | None = None
    """The id, or the beginning of the id, of the session to go on with."""
    permissions: PermissionChoice | None = None
    """The answer to permission requests; by default the user is asked, and where there is no user, "deny"."""
    protocol: Literal["auto", 1, 2] = "auto"

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
) -> tuple[ChatSettings, str]:
    """Return the settings that a command line means, and what the user should be told about them.

    An agent of ours runs in a process of its own, as it does for an editor: whatever it prints, and however it ends,
    the chat goes on. Raises `UsageError` where there is no such agent.
    """
    remark = ""
    if command is not None:
        if store is not None:
            raise UsageError("--store is for agents of ours; one that is given by its command keeps its own sessions")
        named = ("--", *command)
    else:
        if agent is None:
            agent, remark = default_agent()
        if agent not in BUILT_IN and not Path(agent.partition(":")[0]).exists() and not Path(agent).exists():
            raise UsageError(
                f"there is no file {agent}; any other agent is given by its command: holdfast chat -- {agent}"
            )
        store_option = ("--store", store) if store is not None else ()
        command = (sys.executable, "-m", "holdfast", "run", agent, *store_option)
        named = (*store_option, agent)
    return ChatSettings(command, named, cwd, newest, resume, permissions, protocol), remark


def default_agent() -> tuple[str, str]:
    """Return the agent for a command line that names none, the coding agent if it has a model, and a remark on it."""
    if os.environ.get("HOLDFAST_MODEL") and find_spec("holdfast.code") is not None:
        return "code", ""
    return "demo", "This is the demo agent: no agent was named, and HOLDFAST_MODEL names no model for the coding agent."
