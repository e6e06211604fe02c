"""What the connections of one process share: the agent, the store, the engine, who is logged in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal, TypeAlias

from holdfast.errors import AuthRequired, InvalidParams, UsageError

if TYPE_CHECKING:
    from holdfast.agent import Agent
    from holdfast.engine import Engine, Limits
    from holdfast.mcp import Server

ProtocolChoice: TypeAlias = Literal["1", "2", "auto"]


class Host:
    """An agent that can be connected to. Nothing is opened before somebody needs a session."""

    def __init__(
        self,
        agent: Agent,
        *,
        store: str | None = None,
        protocol: ProtocolChoice = "auto",
        limits: Limits | None = None,
        servers: tuple[Server, ...] = (),
    ) -> None:
        if agent.handler is None and not agent.commands:
            raise UsageError(f"the agent {agent.name!r} has no prompt handler; decorate one with @agent.prompt")
        self.agent = agent
        self.versions = {"1": (1,), "2": (2,), "auto": (1, 2)}[protocol]
        self._store = store
        self._servers = servers  # MCP servers that every session has, besides those its client names
        self._limits = limits
        self._engine: Engine | None = None
        self._opening = asyncio.Lock()
        self._logged_in = False

    @property
    def opened(self) -> Engine | None:
        """The engine, if anybody has needed it yet."""
        return self._engine

    async def engine(self) -> Engine:
        """Get the engine; the first to ask opens it."""
        if self._engine is None:
            async with self._opening:
                if self._engine is None:
                    self._engine = await self._open()
        return self._engine

    async def _open(self) -> Engine:
        # Here and not above: an answer to `initialize` need not wait for any of it.
        from holdfast.agent.performer import Performer  # noqa: PLC0415
        from holdfast.engine import Engine  # noqa: PLC0415
        from holdfast.store import open_store  # noqa: PLC0415

        performer = Performer(self.agent, self._servers)
        engine = Engine(await open_store(self._store), performer, limits=self._limits)
        performer.join(engine)
        return engine

    async def log_in(self, method_id: str) -> None:
        """Log in by one of the agent's methods (C12)."""
        method = next((it for it in self.agent.auth_methods if it.id == method_id), None)
        if method is None:
            raise InvalidParams(f"There is no way to log in called {method_id!r}")
        await method.login()
        self._logged_in = True

    async def log_out(self) -> None:
        """Log out."""
        self._logged_in = False
        if self.agent.logout is not None:
            await self.agent.logout()

    def check_login(self) -> None:
        """Refuse what may not be done before one has logged in."""
        if self.agent.auth_required and not self._logged_in:
            raise AuthRequired("Log in first", {"methods": [it.id for it in self.agent.auth_methods]})

    async def shut_down(self, grace: float) -> None:
        """End all work."""
        if self._engine is not None:
            await self._engine.shut_down(grace)
