"""From what stands on the command line to what is started: which agent, by which command, under which name."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from holdfast.chat.opening import Start
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.chat.opening import Permissions

BUILT_IN = ("demo", "code")


def start_of(
    agent: str | None,
    command: tuple[str, ...] | None,
    *,
    cwd: str,
    newest: bool,
    resume: str | None,
    permissions: Permissions | None,
    store: str | None,
    protocol: Literal["auto", 1, 2],
) -> tuple[Start, str]:
    """Say what is wanted, and what the user should be told about it.

    An agent of ours runs in a process of its own, as it does for an editor: whatever it prints, and however it ends,
    the chat goes on.
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
        stored = ("--store", store) if store is not None else ()
        command = (sys.executable, "-m", "holdfast", "run", agent, *stored)
        named = (*stored, agent)
    start = Start(command, named, cwd, newest, resume, permissions, protocol)
    return start, remark


def default_agent() -> tuple[str, str]:
    """Choose an agent where none was named: the coding agent if it has a model, and if not the demo."""
    if os.environ.get("HOLDFAST_MODEL") and find_spec("holdfast.code") is not None:
        return "code", ""
    return "demo", "This is the demo agent: no agent was named, and HOLDFAST_MODEL names no model for the coding agent."
