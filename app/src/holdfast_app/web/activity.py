"""What the sessions on a store are doing now, in whatever process: asked of those processes, once for all pages."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast.cluster import PeerNeighbours
from holdfast.engine.relay.messages import Status
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.cluster import NodeSecret
    from holdfast.store import Library
    from holdfast_app.web.agents import PageAgents

log: logging.Logger = logging.getLogger(__name__)

SECONDS = 1.0
"""How often it is looked while somebody watches."""


class Doing(NamedTuple):
    """What a session does, and where."""

    activity: str
    """``idle``, ``running`` or ``requires_action``."""
    program: str
    """What people call the program that has it open."""
    address: str | None
    """Where that program listens."""


class Activity:
    """Looks what sessions do, as long as anybody wants to know."""

    def __init__(self, library: Library, agents: PageAgents, secret: NodeSecret | None) -> None:
        """Ask the processes on a store; other machines let in whoever knows the `secret` of the nodes."""
        self._library = library
        self._agents = agents
        self._neighbours = PeerNeighbours(secret=secret)
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._watchers = 0
        self.doing: Mapping[str, Doing] = {}
        """What was found last, by the ids of sessions: those that some program has open."""

    async def look(self) -> Mapping[str, Doing]:
        """Look now; return what sessions do."""
        owners = await self._library.owners()
        addresses = {owner.address for owner in owners.values()} - self._own_addresses()
        answers = await asyncio.gather(*map(self._ask, addresses))
        said = {status.session: status.activity for statuses in answers for status in statuses}
        found = {
            session: Doing(said.get(session, "idle"), owner.name, owner.address) for session, owner in owners.items()
        }
        for session, activity in self._here():
            found[session] = Doing(activity, "this page", None)
        if found != self.doing:
            self.doing = found
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()
        return found

    async def changed(self) -> None:
        """Wait until something is otherwise than it was."""
        await self._changed.wait()

    def watch(self) -> None:
        """Keep looking, until `unwatch` was called as often."""
        self._watchers += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep_looking(), name="look what sessions do")

    def unwatch(self) -> None:
        """Look no more, unless others still want to know."""
        self._watchers -= 1
        if self._watchers == 0 and self._task is not None:
            self._task.cancel()
            self._task = None

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._neighbours.close()

    async def _keep_looking(self) -> None:
        while True:
            try:
                await self.look()
            except HoldfastError as e:
                log.warning("It cannot be seen what sessions are doing: %s", e)
            await asyncio.sleep(SECONDS)

    def _here(self) -> Iterator[tuple[str, str]]:
        """Yield what the sessions do that this process has open itself."""
        for agent in self._agents.known().values():
            if (engine := agent.host.opened) is not None:
                yield from engine.activities()

    def _own_addresses(self) -> set[str | None]:
        engines = [agent.host.opened for agent in self._agents.known().values()]
        return {None, *(engine.store.address for engine in engines if engine is not None)}

    async def _ask(self, address: str | None) -> list[Status]:
        if address is None:
            return []
        try:
            return msgspec.json.decode(await self._neighbours.ask(address, "status", None), type=list[Status])
        except HoldfastError:
            return []
