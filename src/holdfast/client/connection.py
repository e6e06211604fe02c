"""`Connection`: one agent, and the sessions that are open with it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from holdfast.client.incoming import Incoming
from holdfast.client.listed_session import ListedSession, read_session_page
from holdfast.client.session import ClientSession
from holdfast.errors import ConnectionLost, InvalidAnswer, InvalidParams, RemoteError, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence

    from holdfast.client.dialect import Dialect
    from holdfast.client.services import Services
    from holdfast.model import Event, Update
    from holdfast.peer import Peer

log = logging.getLogger(__name__)


class AgentInfo(NamedTuple):
    """What an agent says of itself."""

    name: str
    version: str
    title: str | None


class Connection:
    """An agent we are connected to."""

    def __init__(self, peer: Peer, dialect: Dialect, services: Services, *, replays_in_time: bool = False) -> None:
        """Take over a peer whose agent has answered `initialize`.

        `replays_in_time` says of an agent of version 1 that it has replayed a session when it answers `session/load`.
        """
        agent = dialect.agent
        self.agent = AgentInfo(agent.name, agent.release, agent.title)
        self.protocol: int = agent.version
        self.capabilities = agent.capabilities
        """What the agent said it can do, as it said it."""
        self.auth_methods = agent.auth_methods
        """Ways to log in, each with an `id` and a `name`."""
        self.peer = peer
        self._dialect = dialect
        self._incoming = Incoming(dialect, services)
        self._sessions = self._incoming.sessions
        self._may_replay_late = agent.version == 1 and not replays_in_time
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost: ConnectionLost | None = None
        peer.on_lost = self._end_sessions
        peer.routes = self._incoming.routes()

    def __repr__(self) -> str:
        return f"<connection to {self.agent.name or 'an agent'}, protocol version {self.protocol}>"

    def can(self, what: str) -> bool:
        """Return whether the agent offers ``load``, ``resume``, ``fork``, ``list``, ``delete``, ``close``."""
        return self._dialect.agent.can(what)

    async def authenticate(self, method_id: str) -> None:
        """Log in by one of `auth_methods`.

        Raises `UsageError` for one of type ``terminal``: there the user runs the agent's own command.
        """
        for method in self.auth_methods:
            if method.get("id") == method_id and method.get("type") == "terminal":
                added = " ".join(map(str, method.get("args") or ())) or "nothing"
                raise UsageError(f"log in by running the agent's command in a terminal, with {added} added")
        await self.request(*self._dialect.agent.login(method_id))

    # Sessions

    async def new_session(
        self,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> ClientSession:
        """Create a session in a directory, by default the current one."""
        roots = self._roots(cwd, additional, mcp_servers, meta)
        return await self._open_new(*self._dialect.agent.new(roots), roots)

    async def load(
        self,
        session: str | ListedSession,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> ClientSession:
        """Restore a session with its past in `history`; its directory is that of the list, or the current one.

        A session that is open here is replaced by the restored one, and stays open if it cannot be restored. Agents
        exist that answer with success for a session they do not have: one whose history is empty may be such a one.

        Raises `RemoteError` if the agent refuses, `MessageLost` if a part of the past could not be read.
        """
        self._need("load")
        session_id, roots = self._named(session, cwd, additional, mcp_servers, meta)
        return await self._restore(session_id, *self._dialect.agent.load(session_id, roots), roots)

    async def resume(
        self,
        session: str | ListedSession,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> ClientSession:
        """Restore a session without its past; otherwise as `load`."""
        self._need("resume")
        session_id, roots = self._named(session, cwd, additional, mcp_servers, meta)
        return await self._restore(session_id, *self._dialect.agent.resume(session_id, roots), roots)

    async def fork(
        self,
        session: str | ListedSession,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> ClientSession:
        """Create a session with the past of another.

        Its `history` is what the agent tells of it, or else that of the other session if that is open here.
        """
        self._need("fork")
        session_id, roots = self._named(session, cwd, additional, mcp_servers, meta)
        forked = await self._open_new(*self._dialect.agent.fork(session_id, roots), roots)
        if (parent := self._sessions.get(session_id)) is not None:
            forked.inherit(parent)
        return forked

    async def sessions(self, cwd: str | Path | None = None) -> AsyncIterator[ListedSession]:
        """Iterate over all sessions the agent has, or those of one directory, page by page."""
        self._need("list")
        wanted = None if cwd is None else _absolute(cwd)
        params: Update = {} if wanted is None else {"cwd": wanted}
        cursors: set[str] = set()
        seen: set[str] = set()
        while True:
            page = await self.request("session/list", params)
            for listed in read_session_page(page):
                if listed.id not in seen and wanted in (None, listed.cwd):  # not every agent heeds the filter
                    seen.add(listed.id)
                    yield listed
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in cursors:
                return
            cursors.add(cursor)
            params = {**params, "cursor": cursor}

    async def delete(self, session: str | ListedSession) -> None:
        """Delete a session."""
        self._need("delete")
        session_id = session if isinstance(session, str) else session.id
        await self.request("session/delete", {"sessionId": session_id})
        if session_id in self._sessions:
            await self._forget(self._sessions[session_id])

    # Anything else

    async def request(self, method: str, params: Update) -> Update:
        """Send a request and return its result; one that is no object, as `null`, is an empty one.

        Raises `RemoteError` if the agent answers with an error, `ConnectionLost` if it is gone.
        """
        try:
            answer: Any = await self.peer.request(method, params, result=cast("Any", object))
        except RemoteError as e:
            if e.code == -32000 and self.auth_methods:
                ways = ", ".join(repr(method.get("id")) for method in self.auth_methods)
                e.add_note(f"Log in first: `await agent.authenticate(…)` with one of {ways}")
            raise
        return cast("Update", answer) if isinstance(answer, dict) else {}

    def notify(self, method: str, params: Update) -> None:
        """Send a notification. Raises `ConnectionLost` if the agent is gone."""
        if self._lost is not None:
            raise self._lost.with_traceback(None)
        self.peer.notify(method, params)

    # For `connect` and the sessions

    def own(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run work as a task that ends with the connection, at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close_session(self, session: ClientSession, deadline: float) -> None:
        """Close a session, waiting for the agent's answer until `deadline`, in the loop's time."""
        try:
            if self.can("close") and self._lost is None:
                async with asyncio.timeout_at(deadline):
                    await self.request("session/close", {"sessionId": session.id})
        except TimeoutError:
            log.warning("The agent does not answer that session %s is closed", session.id)
        finally:
            await self._forget(session)

    def unreadable(self, line: bytes, reason: str) -> None:
        """Tell the sessions concerned that a message of the agent could not be read."""
        self._incoming.unreadable(line, reason)

    async def close(self) -> None:
        """End everything that is still at work."""
        for session in list(self._sessions.values()):
            session.end(ConnectionLost("the connection was closed"))
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for session in list(self._sessions.values()):
            await self._forget(session)

    # Inside

    def _need(self, what: str) -> None:
        if not self.can(what):
            raise UsageError(f"this agent does not offer {what!r}; ask `agent.can({what!r})` first")

    def _roots(
        self,
        cwd: str | Path | None,
        additional: Sequence[str | Path],
        mcp_servers: Sequence[dict[str, Any]],
        meta: Mapping[str, Any] | None,
    ) -> Update:
        roots: Update = {"cwd": _absolute(cwd or Path.cwd()), "mcpServers": list(mcp_servers)}
        if additional:
            self._need("additionalDirectories")
            roots["additionalDirectories"] = [_absolute(directory) for directory in additional]
        return roots if meta is None else {**roots, "_meta": dict(meta)}

    def _named(
        self,
        session: str | ListedSession,
        cwd: str | Path | None,
        additional: Sequence[str | Path],
        mcp_servers: Sequence[dict[str, Any]],
        meta: Mapping[str, Any] | None,
    ) -> tuple[str, Update]:
        if isinstance(session, ListedSession):
            return session.id, self._roots(cwd or session.cwd, additional, mcp_servers, meta)
        return session, self._roots(cwd, additional, mcp_servers, meta)

    async def _open_new(self, method: str, params: Update, roots: Update) -> ClientSession:
        """Open a session that gets its id by the answer; what comes about it before that waits (P5)."""
        self._incoming.expect_session()
        try:
            answer = await self.request(method, params)
            session_id = answer.get("sessionId")
            if not isinstance(session_id, str):
                raise InvalidAnswer(f"The answer to {method} names no session")
            if (before := self._sessions.get(session_id)) is not None:
                await self._forget(before)
            session = self._register(session_id, roots)
            self._incoming.session_named(session)
            session.apply(self._configuration(session, answer))
            return session
        finally:
            self._incoming.session_expected_no_more()

    async def _restore(self, session_id: str, method: str, params: Update, roots: Update) -> ClientSession:
        """Open a session whose id is known, in the place of the one that is open, if there is one."""
        if (before := self._sessions.get(session_id)) is not None:
            await before.settle()
        session = self._register(session_id, roots)
        session.begin_restoring()
        try:
            answer = await self.request(method, params)
            _check_same_session(session_id, method, answer)
            session.apply(self._configuration(session, answer))
            await session.restored(may_replay_late=self._may_replay_late)
        except BaseException:
            await self._put_back(session, before)
            raise
        if before is not None:
            await self._forget(before)
        return session

    async def _put_back(self, failed: ClientSession, before: ClientSession | None) -> None:
        """Forget a session that could not be restored; the one that was open before it is open again."""
        if before is not None and self._sessions.get(failed.id) is failed:
            self._sessions[failed.id] = before
            if self._lost is not None:
                before.end(self._lost)
                await self._forget(before)
        await self._forget(failed)

    def _configuration(self, session: ClientSession, answer: Update) -> Sequence[Event]:
        try:
            return session.lifting.lift_configuration(answer)
        except InvalidParams as e:
            log.warning("The agent's options for session %s cannot be used: %s", session.id, e)
            return ()

    def _register(self, session_id: str, roots: Update) -> ClientSession:
        if self._lost is not None:
            raise self._lost.with_traceback(None)
        additional = roots.get("additionalDirectories", ())
        session = ClientSession(self, self._dialect.lifting(), session_id, roots["cwd"], additional)
        self._sessions[session_id] = session
        return session

    async def _forget(self, session: ClientSession) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        session.end(None)
        if session.terminals is not None:
            await session.terminals.close()

    def _end_sessions(self, error: ConnectionLost) -> None:
        self._lost = error
        for session in list(self._sessions.values()):
            session.end(error)


def _check_same_session(session_id: str, method: str, answer: Update) -> None:
    """Raise `InvalidAnswer` if an agent has begun a session anew, without its past, instead of restoring it (P11)."""
    if answer.get("sessionId", session_id) != session_id:
        raise InvalidAnswer(f"The answer to {method} of {session_id} names another session")


def _absolute(path: str | Path) -> str:
    return str(Path(path).absolute())
