"""Where a session is opened for the page: with its agent in this process, or as a guest of the program that has it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.cluster import PeerNeighbours
from holdfast.engine.relay.follower import FollowedSession
from holdfast.errors import SessionNotFound
from holdfast.model import Scope

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from holdfast.cluster import NodeSecret
    from holdfast.engine import OpenSession, SessionClient
    from holdfast.model import SessionInfo
    from holdfast_app.web.activity import Activity
    from holdfast_app.web.agents import PageAgent


class SessionOpening:
    """Opens one session, again whenever it has moved."""

    def __init__(
        self,
        info: SessionInfo,
        activity: Activity,
        agent: Callable[[], PageAgent | None],
        secret: NodeSecret | None,
        *,
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        on_lost: Callable[[], None],
    ) -> None:
        """Prepare to open; `on_lost` is called when the program that had the session has left."""
        self.is_guest: bool = False
        """Whether it was opened to look, in another program."""
        self.program: str = ""
        """What people call that program."""
        self._id = info.id
        self._principal = info.principal
        self._activity = activity
        self._agent = agent
        self._neighbours = PeerNeighbours(secret=secret)
        self._start = start
        self._on_lost = on_lost

    async def open(self, client: SessionClient, *, to_talk: bool) -> OpenSession | None:
        """Open the session for a client; None where no program has it, and nobody wants to talk.

        An agent is started only `to_talk`: reading starts nothing, and takes the session from nobody.
        """
        agent = self._agent()
        doing = self._activity.doing.get(self._id)
        self.is_guest, self.program = False, ""
        if agent is not None and (to_talk or self._is_here(agent)):
            engine = await agent.host.engine()
            return await engine.open(self._id, client, scope=Scope(self._principal, agent.name))
        if doing is None or doing.address is None:
            return None
        self.is_guest = True
        session = FollowedSession(
            self._id, Scope(self._principal), client,
            neighbours=self._neighbours, on_lost=self._lost, start=self._start, is_guest=True,
        )  # fmt: skip
        await session.open(doing.address)
        self.program = session.owner
        return session

    async def close(self) -> None:
        """Hang up."""
        await self._neighbours.close()

    def _is_here(self, agent: PageAgent) -> bool:
        """Whether this process has the session open."""
        engine = agent.host.opened
        if engine is None:
            return False
        with suppress(SessionNotFound):
            engine.get(self._id, Scope(self._principal, agent.name))
            return True
        return False

    def _lost(self, _: FollowedSession, __: str) -> None:
        self._on_lost()
