"""What the connections of one process share: the agent's port, the store, the engine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from holdfast.engine import AgentPort, Engine, EngineLimits

ProtocolChoice: TypeAlias = Literal["1", "2", "auto"]


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
    ) -> None:
        self.port = port
        self.versions: tuple[int] | tuple[int, int] = {"1": (1,), "2": (2,), "auto": (1, 2)}[protocol]
        self._store = store
        self._limits = limits
        self._engine: Engine | None = None
        self._opening = asyncio.Lock()

    @property
    def opened(self) -> Engine | None:
        """The engine, if any session was needed yet."""
        return self._engine

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

        return Engine(await open_store(self._store), self.port, limits=self._limits)

    async def drain(self, grace: float) -> None:
        """Take no new turns, and give running ones `grace` seconds to end by themselves (H8)."""
        if self._engine is not None:
            await self._engine.drain(grace)

    async def shut_down(self, grace: float) -> None:
        """End all work; agents that go on are not waited for after `grace` seconds."""
        if self._engine is not None:
            await self._engine.shut_down(grace)
