"""`--remember`: with the user's consent the web page may start the agent that a command line names, from now on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agent_name import split_agent_name
from holdfast.proxy import ProxyPort
from holdfast.store.address import default_address, directory_beside
from holdfast.web.agents_file import AgentEntry, AgentsFile

if TYPE_CHECKING:
    from holdfast.engine import ConnectedClient
    from holdfast.model import AgentDescription
    from holdfast.proxy import Launch


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
