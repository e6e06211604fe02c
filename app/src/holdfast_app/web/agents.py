"""The agents that the page may start: whom a user can talk to here. Sessions of all others are only read."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.errors import HoldfastError, MethodNotFound
from holdfast.model import AgentDescription, ClientInfo

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from holdfast.server.host import Host

log: logging.Logger = logging.getLogger(__name__)

PAGE_CLIENT: ClientInfo = ClientInfo(
    protocol=2,
    capabilities={"elicitation": {"form": {}, "url": {}}, "auth": {"terminal": {}}},  # by a command that one is shown
    name="holdfast-web",
    title="Holdfast in the browser",
)
"""What the page tells agents about itself."""


class Visitor:
    """Whoever asks an agent about itself, before there is a session."""

    info: ClientInfo = PAGE_CLIENT

    def __init__(self, principal: str) -> None:
        self.principal = principal

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:  # noqa: ARG002
        """Refuse what an agent asks of a client without a session."""
        raise MethodNotFound(f"{method} is not offered here")

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Take no notice: there is nowhere to show it."""


class PageAgent:
    """An agent that can be talked to, and the host that runs it."""

    def __init__(
        self,
        name: str,
        host: Host,
        on_end: Callable[[], Awaitable[None]] | None = None,
        *,
        command: tuple[str, ...] = (),
    ) -> None:
        """Talk to the agent of a host; `on_end` ends what the host does not, `command` is what starts it by hand."""
        self.name = name
        self.command = command
        self.host = host
        self._on_end = on_end
        self._descriptions: dict[str, AgentDescription] = {}
        self._logged_in: set[str] = set()  # the principals that have logged in here

    async def describe(self, principal: str) -> AgentDescription:
        """Return what the agent says of itself to a principal; it may be started for that."""
        if principal not in self._descriptions:
            self._descriptions[principal] = await self.host.port.describe(Visitor(principal))
        return self._descriptions[principal]

    async def needs_login(self, principal: str) -> bool:
        """Return whether a principal has to log in before the agent does anything for them (C12)."""
        description = await self.describe(principal)
        if not description.auth_required or principal in self._logged_in:
            return False
        return description.logged_in is None or not await description.logged_in()

    async def log_in(self, method: str, principal: str) -> None:
        """Log a principal in by one of the agent's methods; raise what it refuses with."""
        await self.describe(principal)
        await self.host.port.log_in(method, Visitor(principal))
        self._logged_in.add(principal)

    async def end(self, grace: float = 3.0) -> None:
        """End its work in order; turns have `grace` seconds to end by themselves."""
        await self.host.drain(grace)
        await self.host.shut_down(1.0)
        if self._on_end is not None:
            await self._on_end()


class PageAgents(Protocol):
    """The agents that may be started."""

    def known(self) -> Mapping[str, PageAgent]:
        """Return them by the names their sessions belong to."""
        ...

    def trouble(self, name: str) -> str:
        """Return why an agent cannot be started that may be; empty where there is no reason but that it may not."""
        ...

    def how_to_add(self, name: str) -> str | None:
        """Return the command line with which an agent may be started; empty if it is not known, None if none helps."""
        ...

    def visited_by(self, principal: str) -> None:
        """Note that somebody uses the page, on whose behalf an agent can be asked what it is called."""
        ...

    async def close(self) -> None:
        """End what was started."""
        ...


class OneAgent:
    """The agent of a server: its page talks to that one alone."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._agents: dict[str, PageAgent] = {}
        self._trouble = ""
        self._naming: asyncio.Task[None] | None = None

    def known(self) -> Mapping[str, PageAgent]:
        """Return the agent, once it has said what it is called: until then nothing waits for it."""
        return self._agents

    def trouble(self, name: str) -> str:  # noqa: ARG002  (whose session it is cannot be told before it has a name)
        """Return why the agent could not say what it is called."""
        return self._trouble

    def how_to_add(self, name: str) -> str | None:  # noqa: ARG002
        """Return nothing: a server has one agent."""
        return None

    def visited_by(self, principal: str) -> None:
        """Ask the agent what it is called, on behalf of whoever comes first: it may be started for that."""
        if not self._agents and self._naming is None:
            name = self._name(principal)
            self._naming = asyncio.get_running_loop().create_task(name, name="ask an agent for its name")

    async def ready(self, principal: str) -> None:
        """Wait until the agent has said what it is called, or has failed to."""
        self.visited_by(principal)
        if self._naming is not None:
            await asyncio.wait({self._naming})

    async def _name(self, principal: str) -> None:
        try:
            description = await self._host.port.describe(Visitor(principal))
        except HoldfastError as e:
            log.warning("The page cannot talk to the agent: %s", e)
            self._trouble = str(e)
            self._naming = None  # the next page asks again
            return
        self._trouble = ""
        self._agents[description.name] = PageAgent(description.name, self._host)

    async def close(self) -> None:
        """Stop asking; the host ends with its server."""
        if self._naming is not None:
            self._naming.cancel()
            await asyncio.wait({self._naming})
