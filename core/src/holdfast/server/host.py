"""What the connections of one process share: the agent's port, the store, the engine."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import msgspec

from holdfast.server.repeats import Repeats
from holdfast.server.shared_lines import SharedLines

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.cluster import NodeSecret, PeerNeighbours
    from holdfast.engine import AgentPort, Engine, EngineLimits, OpenTurn
    from holdfast.model import Update
    from holdfast.store import SessionStore

ProtocolChoice: TypeAlias = Literal["1", "2", "auto"]


class NodeAddress(NamedTuple):
    """Where the other nodes on a store for many machines reach this one, and what all of them know."""

    url: str
    """The address of its HTTP server, as ``http://10.0.0.7:8180``."""
    secret: NodeSecret

    @property
    def name(self) -> str:
        """What people call the node."""
        return f"node {self.url}"


class Host:
    """An agent that can be connected to. Nothing is opened before a session is needed.

    `store` is an address: a path, or ``:memory:``; without one it is ``HOLDFAST_STORE`` or the user's data directory.
    """

    def __init__(
        self,
        port: AgentPort,
        *,
        store: str | None = None,
        protocol: ProtocolChoice = "auto",
        limits: EngineLimits | None = None,
        shares: bool = True,
        in_chain: bool = False,
        node: NodeAddress | None = None,
        name: str | None = None,
        on_open: Callable[[SessionStore], Awaitable[None]] | None = None,
    ) -> None:
        """Prepare to serve an agent.

        Where it `shares`, other processes on the store can follow the sessions that are open here, and their sessions
        can be followed here. On a store for many machines that needs a `node`: where they reach this one. `name` is
        what they call this process; without one, as where an editor has started it, they say its client's name.
        `on_open` is given the store before the first session is looked for.
        """
        self.port = port
        self.in_chain = in_chain
        """Whether a conductor puts it before another agent, and begins with `wrap/initialize` (G10, unstable)."""
        self.versions: tuple[int] | tuple[int, int] = {"1": (1,), "2": (2,), "auto": (1, 2)}[protocol]
        self._store = store
        self._on_open = on_open
        self._limits = limits
        self._shares = shares
        self.node = node
        self.neighbours: PeerNeighbours | None = None
        """The other processes on the store, once the engine is there."""
        self._name = name if node is None else node.name
        self.client_name: str | None = None
        """What people call the client that connected last."""
        self.process: str = os.urandom(8).hex()
        """Names this host as long as it lives: a client that was cut off learns whether it is still the same."""
        self.repeats: Repeats[OpenTurn] = Repeats()
        """Prompts that clients may send again."""
        self.steered: Repeats[asyncio.Task[Update]] = Repeats()
        """What became of the words that clients have steered turns with, and may send again."""
        self.shared_lines: SharedLines = SharedLines()
        """What was sent last, for other clients of the same session."""
        self._engine: Engine | None = None
        self._opening = asyncio.Lock()

    @property
    def opened(self) -> Engine | None:
        """The engine, if any session was needed yet."""
        return self._engine

    def is_in(self, marks: object) -> bool:
        """Return whether its store is one of those that the programs before it have named."""
        if not isinstance(marks, list) or not marks:
            return False
        from holdfast.store import store_mark  # noqa: PLC0415

        return store_mark(self._store) in marks

    async def engine(self) -> Engine:
        """Return the engine; the first to ask opens it."""
        if self._engine is None:
            async with self._opening:
                if self._engine is None:
                    self._engine = await self._open()
        return self._engine

    async def _open(self) -> Engine:
        # Here and not above: an answer to `initialize` need not wait for any of it.
        from holdfast.engine import Engine  # noqa: PLC0415
        from holdfast.store import open_store  # noqa: PLC0415

        store = await open_store(self._store, node_url=None if self.node is None else self.node.url)
        if self._on_open is not None:
            await self._on_open(store)
        address = store.address if self._shares else None
        limits = self._limits
        if address is not None:
            limits = _resumable(limits)
        engine = Engine(store, self.port, limits=limits)
        if (name := self._name or self.client_name) is not None:
            engine.introduce(name)
        if address is not None:
            from holdfast.cluster import PeerNeighbours, is_available  # noqa: PLC0415

            if self.node is not None:
                self.neighbours = PeerNeighbours(address, secret=self.node.secret, name=self.node.name)
            elif is_available():
                self.neighbours = PeerNeighbours(address)
            if self.neighbours is not None:
                await engine.join(self.neighbours)
        return engine

    def introduce(self, name: str | None) -> None:
        """Note what people call the client that has connected; other processes on the store say it in messages."""
        if name:
            self.client_name = name
            if self._engine is not None and self._name is None:
                self._engine.introduce(name)

    async def drain(self, grace: float) -> None:
        """Take no new turns, and give running ones `grace` seconds to end by themselves (H8)."""
        if self._engine is not None:
            await self._engine.drain(grace)

    async def shut_down(self, grace: float) -> None:
        """End all work; agents that go on are not waited for after `grace` seconds."""
        if self._engine is not None:
            await self._engine.shut_down(grace)


def _resumable(limits: EngineLimits | None) -> EngineLimits:
    """Return limits with which a follower can go on where a link was cut, or its owner died."""
    from holdfast.engine import EngineLimits  # noqa: PLC0415
    from holdfast.store import EventWindow  # noqa: PLC0415

    limits = limits or EngineLimits()
    return limits if limits.keep_events is not None else msgspec.structs.replace(limits, keep_events=EventWindow())
