"""The agents that command lines name: with `--remember` the web page may start them from now on.

Without it the command of a wrapped agent is only noted, so that the page can say how to let it start that agent.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agent_name import split_agent_name
from holdfast.errors import HoldfastError
from holdfast.store.address import default_address, directory_beside
from holdfast_app.web.agents_file import AgentEntry, AgentsFile
from holdfast_app.wrap import ProxyPort

if TYPE_CHECKING:
    from holdfast.engine import ConnectedClient
    from holdfast.model import AgentDescription
    from holdfast_app.wrap import Launch


log: logging.Logger = logging.getLogger(__name__)


def agents_file(store: str | None) -> AgentsFile:
    """Return the file of agents that goes with a store."""
    return AgentsFile(directory_beside(store or default_address()) / "agents.toml")


def entry_of_file(agent: str) -> AgentEntry:
    """Return the entry of an agent as `holdfast run` names it; a path in it holds wherever it is used."""
    file, _ = split_agent_name(agent)
    return AgentEntry(run=f"{Path(file).absolute()}{agent[len(file) :]}" if Path(file).is_file() else agent)


def entry_of_command(command: tuple[str, ...]) -> AgentEntry:
    """Return the entry of an agent that a command starts; a path of the program holds wherever it is used."""
    program = str(Path(command[0]).absolute()) if "/" in command[0] else command[0]
    return AgentEntry(command=(program, *command[1:]))


def wrapped_file(store: str | None) -> AgentsFile:
    """Return the file with the commands of the agents that were wrapped on a store.

    Only `holdfast chat --resume` and `--continue` start one, in the user's own terminal.
    """
    return AgentsFile(directory_beside(store or default_address()) / "wrapped.toml")


def how_to_add(name: str, store: str | None) -> str:
    """Return the line that lets the page start a wrapped agent; empty if its command is not known."""
    from holdfast_app.known_agents import KNOWN_AGENTS  # noqa: PLC0415

    if not name.isprintable() or name.startswith("-"):
        return ""  # it comes from an agent or a file, and this is pasted into a terminal
    if store is not None and "://" in store:
        return ""  # the address of a database may hold a password
    command = KNOWN_AGENTS[name].command if name in KNOWN_AGENTS else ()
    with suppress(HoldfastError, OSError):
        noted = wrapped_file(store).entries().get(name)
        command = command if noted is None else noted.command
    beside = () if store is None else ("--store", str(Path(store).absolute()))
    words = ("holdfast", "web", *beside, "add", "--name", name, "--", *command)
    return shlex.join(words) if command and all(map(str.isprintable, words)) else ""


class RememberingPort(ProxyPort):
    """A wrapped agent that is remembered by the name it says it has."""

    def __init__(self, launch: Launch, store: str | None) -> None:
        super().__init__(launch)
        self._file = agents_file(store)

    async def describe(self, client: ConnectedClient) -> AgentDescription:
        """Return what the agent says of itself, and remember it by its name."""
        description = await super().describe(client)
        self._file.put(description.name, entry_of_command(self.launch.command))
        return description


class NotingPort(ProxyPort):
    """A wrapped agent whose command is noted by the name it says it has, unless a secret is in it."""

    def __init__(self, launch: Launch, store: str | None) -> None:
        super().__init__(launch)
        self._store = store
        self._noting: asyncio.Task[None] | None = None

    async def describe(self, client: ConnectedClient) -> AgentDescription:
        """Return what the agent says of itself, and note its command beside that."""
        description = await super().describe(client)
        if self._noting is None:
            self._noting = asyncio.create_task(asyncio.to_thread(self._note, description.name), name="note a command")
        return description

    async def close(self) -> None:
        """End the agent's processes, once the command is noted."""
        if self._noting is not None:
            await asyncio.wait({self._noting})
        await super().close()

    def _note(self, name: str) -> None:
        from holdfast.redaction.redact import Redactor  # noqa: PLC0415

        entry = entry_of_command(self.launch.command)
        words = shlex.join(entry.command)
        try:
            if Redactor().text(words) == words:
                wrapped_file(self._store).put(name, entry)
        except (HoldfastError, OSError, ValueError) as e:
            log.info("The command of %s is not noted: %s", name, e)
