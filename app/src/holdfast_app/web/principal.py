"""What all requests to the page share: the store, the agents, and the sessions that somebody looks at."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from holdfast.errors import AuthRequired, SessionNotFound, StoreDamaged
from holdfast.model import Scope, new_session_id
from holdfast_app.web.activity import Activity
from holdfast_app.web.deletions import Deletions
from holdfast_app.web.library_page import Listed
from holdfast_app.web.listening import Listener
from holdfast_app.web.read_marks import ReadMarks
from holdfast_app.web.requests import PageError
from holdfast_app.web.watching import WatchedSession

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from holdfast.cluster import NodeSecret
    from holdfast.engine import Engine
    from holdfast.model import SessionInfo
    from holdfast.store import SessionStore
    from holdfast_app.share_links import ShareLinks
    from holdfast_app.web.agents import PageAgent, PageAgents


class Desk:
    """The page's work, apart from how it is asked for."""

    def __init__(
        self,
        library: SessionStore,
        agents: PageAgents,
        directory: Path | None,
        shares: ShareLinks | None = None,
        secret: NodeSecret | None = None,
    ) -> None:
        """Use an open store. In `directory` is kept what a principal has read, in `shares` are links for others.

        `secret` is that of the nodes.
        """
        self.library = library
        self.agents = agents
        self.activity: Activity = Activity(library, agents, secret)
        self.deletions: Deletions = Deletions(self._delete)
        self.marks: ReadMarks = ReadMarks(directory)
        self.shares = shares
        self._secret = secret
        self._watched: dict[str, WatchedSession] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def find(self, session: str, principal: str) -> SessionInfo:
        """Return what is known of a session of a principal. One of another is not there (P12)."""
        try:
            info = (await self.library.get(session)).info
        except SessionNotFound:
            raise PageError(404, "There is no such session") from None
        if info.principal != principal:
            raise PageError(404, "There is no such session")
        return info

    async def listed(self, info: SessionInfo) -> Listed:
        """Return a session as the library lists it; of one that is damaged, what a list has."""
        try:
            usage = (await self.library.get(info.id)).state.latest.get("usage_update")
        except StoreDamaged:
            usage = None
        return Listed(info, usage, self.activity.doing.get(info.id), self.marks.is_unread(info.principal, info))

    async def newest(self, principal: str, limit: int) -> list[Listed]:
        """Return the sessions at the top of a principal's library."""
        page = await self.library.list(Scope(principal), cwd=None, archived="exclude", cursor=None, limit=limit)
        return [await self.listed(info) for info in page.sessions if info.id not in self.deletions]

    def agent_of(self, info: SessionInfo) -> PageAgent | None:
        """Return the agent that may be talked to in a session; None where it is only read."""
        return self.agents.known().get(info.agent)

    def engine_having(self, info: SessionInfo) -> Engine | None:
        """Return the engine of this process that knows the session's agent, if it has any session open."""
        agent = self.agent_of(info)
        return None if agent is None else agent.host.opened

    async def create(self, agent: PageAgent, principal: str, cwd: str) -> str:
        """Create a session; return its id."""
        if await agent.needs_login(principal):
            raise AuthRequired("Log in first")
        await agent.describe(principal)
        engine = await agent.host.engine()
        session = await engine.create(cwd, session_id=new_session_id(), scope=Scope(principal, agent.name))
        return session.id

    # Watching

    def watch(self, info: SessionInfo, listener: Listener) -> WatchedSession:
        """Let a tab follow a session."""
        watched = self._watched.get(info.id)
        if watched is None:
            watched = WatchedSession(info, self.library, self.activity, lambda: self._agent_now(info), self._secret)
            self._watched[info.id] = watched
        watched.listen(listener)
        return watched

    def unwatch(self, watched: WatchedSession, listener: Listener) -> None:
        """Let a tab follow a session no more."""
        watched.unlisten(listener, lambda: self._end(watched))

    @asynccontextmanager
    async def watching(self, info: SessionInfo) -> AsyncGenerator[WatchedSession]:
        """Yield a session to do something with it; the page need not show it."""
        listener = Listener()
        watched = self.watch(info, listener)
        try:
            yield watched
        finally:
            self.unwatch(watched, listener)

    def _agent_now(self, info: SessionInfo) -> PageAgent | None:
        watched = self._watched.get(info.id)
        return self.agent_of(info if watched is None else watched.about)

    def _end(self, watched: WatchedSession) -> None:
        if self._watched.get(watched.session_id) is watched:
            del self._watched[watched.session_id]
        task = asyncio.get_running_loop().create_task(watched.close(), name="leave a session")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _delete(self, session: str) -> None:
        info = (await self.library.get(session)).info
        engine = self.engine_having(info)
        if engine is not None:
            await engine.delete(session, scope=Scope(info.principal, info.agent or None))
        else:
            await self.library.delete(session)
        if (watched := self._watched.get(session)) is not None:
            watched.look_again()

    async def close(self) -> None:
        """Leave all sessions; delete what was about to be deleted."""
        await self.deletions.close()
        for watched in list(self._watched.values()):
            await watched.close()
        self._watched.clear()
        if self._ending:
            await asyncio.wait(self._ending)
        await self.activity.close()
        await self.agents.close()
