"""`agents.toml`: the agents of this machine that the page may start, each by name. A user writes it, or agrees to it.

::

    [agents.gemini]
    command = ["gemini", "--acp"]        # any agent that speaks ACP on stdin and stdout

    [agents.weather]
    run = "/home/ada/weather.py"         # an agent for `holdfast run`

The name is the one that the agent's sessions belong to. Whoever can write this file can have programs started, so one
that others can write is refused (P13).
"""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import HoldfastError, UsageError
from holdfast_app.known_agents import one_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from holdfast_app.web.agents import PageAgent

log: logging.Logger = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""An agent whose file could not be loaded is tried again after so long: its author may have mended it."""

HEADING = "# Agents that `holdfast web` may start; see `holdfast web --help`.\n"


class AgentEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent is started: by its command, or as `holdfast run` would."""

    command: tuple[str, ...] = ()
    run: str | None = None

    def __post_init__(self) -> None:
        if bool(self.command) == (self.run is not None):
            raise ValueError("an agent has either a command or a file to run")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    agents: dict[str, AgentEntry] = {}


class AgentsFile:
    """The file, read again whenever it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: dict[str, AgentEntry] = {}
        self._read_at: tuple[int, int] | None = None

    def entries(self) -> dict[str, AgentEntry]:
        """Return the agents by name; raise `UsageError` where the file makes no sense, or others can write it."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._entries, self._read_at = {}, None
            return {}
        if sys.platform != "win32" and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise UsageError(f"others can write {self.path}, and so have programs started: chmod go-w {self.path}")
        if (status.st_mtime_ns, status.st_size) != self._read_at:
            try:
                self._entries = _by_one_name(msgspec.toml.decode(self.path.read_bytes(), type=_File).agents)
            except msgspec.DecodeError as e:
                raise UsageError(f"{self.path} makes no sense: {e}") from None
            self._read_at = (status.st_mtime_ns, status.st_size)
        return self._entries

    def put(self, name: str, entry: AgentEntry) -> bool:
        """Add an agent, or change it; return whether anything is otherwise than before."""
        if not name or "\n" in name:
            raise UsageError(f"{name!r} is no name for an agent")
        before = self.entries()
        if before.get(name) == entry:
            return False
        self._write({**before, name: entry})
        return True

    def remove(self, name: str) -> bool:
        """Remove an agent; return whether there was one."""
        before = self.entries()
        name = name if name in before else one_name(name)
        if name not in before:
            return False
        self._write({other: entry for other, entry in before.items() if other != name})
        return True

    def _write(self, entries: dict[str, AgentEntry]) -> None:
        tables = (f"\n[agents.{_quoted(name)}]\n{_how(entry)}\n" for name, entry in sorted(entries.items()))
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(HEADING + "".join(tables))
        beside.replace(self.path)
        self._read_at = None


class AgentsOfFile:
    """The agents of a file, each made when it is first asked for; what is changed in the file holds at once."""

    def __init__(
        self,
        file: AgentsFile,
        make: Callable[[str, AgentEntry], PageAgent],
        how_to_add: Callable[[str], str] = lambda _: "",
    ) -> None:
        """Use `make` to make an agent of its name and its entry. Nothing is started by that.

        `how_to_add` returns the command line that adds an agent to the file; empty if that is not known.
        """
        self._file = file
        self._how_to_add = how_to_add
        self._make = make
        self._made: dict[str, tuple[AgentEntry, PageAgent]] = {}
        self._replaced: list[PageAgent] = []
        self._unusable = ""  # why the file cannot be used
        self._failed: dict[str, tuple[float, str]] = {}  # agents that could not be made: when, and why

    def known(self) -> Mapping[str, PageAgent]:
        """Return the agents that may be started now; none where the file cannot be used, which is logged."""
        try:
            entries = self._file.entries()
        except UsageError as e:
            if self._unusable != str(e):
                log.warning("No agent can be started: %s", e)
            self._unusable = str(e)
            return {}
        self._unusable = ""
        found = {name: self._agent(name, entry) for name, entry in entries.items()}
        return {name: agent for name, agent in found.items() if agent is not None}

    def _agent(self, name: str, entry: AgentEntry) -> PageAgent | None:
        """Return an agent as its entry says; None where it cannot be made, as one whose file is gone."""
        made = self._made.get(name)
        if made is not None and made[0] == entry:
            return made[1]
        now = time.monotonic()
        if name in self._failed and now - self._failed[name][0] < RETRY_SECONDS:
            return None
        try:
            agent = self._make(name, entry)
        except Exception as e:  # noqa: BLE001  (it may be the author's own)
            why = str(e) if isinstance(e, HoldfastError) else f"{type(e).__name__}: {e}"
            if self._failed.get(name, (0, ""))[1] != why:
                log.warning("The agent %s cannot be started: %s", name, why)
            self._failed[name] = (now, why)
            return None
        if made is not None:
            self._replaced.append(made[1])  # its sessions go on until the page ends
        self._made[name] = (entry, agent)
        self._failed.pop(name, None)
        return agent

    def trouble(self, name: str) -> str:
        """Return why an agent of the file cannot be started, or none can."""
        failed = self._failed.get(name)
        return self._unusable or ("" if failed is None else failed[1])

    def how_to_add(self, name: str) -> str | None:
        """Return the command line that adds an agent to the file; empty if that is not known."""
        return self._how_to_add(name)

    def visited_by(self, principal: str) -> None:
        """Do nothing: the file says what the agents are called."""

    async def close(self) -> None:
        """End what was started."""
        for agent in [*self._replaced, *(agent for _, agent in self._made.values())]:
            await agent.end()


def _by_one_name(entries: dict[str, AgentEntry]) -> dict[str, AgentEntry]:
    """Return the agents by the names that their sessions belong to; a file may say another name of a known agent."""
    named = {one_name(name): entry for name, entry in entries.items() if entry.command}
    return named | {name: entry for name, entry in entries.items() if entry.run is not None or name in named}


def _how(entry: AgentEntry) -> str:
    if entry.run is not None:
        return f"run = {_quoted(entry.run)}"
    return f"command = [{', '.join(map(_quoted, entry.command))}]"


def _quoted(text: str) -> str:
    """Return a string as TOML has it: as JSON does, but for DEL, which JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")
