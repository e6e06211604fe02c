"""`AgentLink`: the inner side of a `Connection`: the peer, the sessions that are open, and the tasks they own."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

from holdfast.client.connection import Connection
from holdfast.client.incoming import Incoming
from holdfast.client.open_session import OpenSession
from holdfast.errors import ConnectionLost, InvalidAnswer, InvalidParams, RemoteError, UsageError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from holdfast.client.dialect import Dialect
    from holdfast.client.services import Services
    from holdfast.model import Event, Update
    from holdfast.peer import Peer

log: logging.Logger = logging.getLogger(__name__)


class AgentLink:
    """The way to one agent that has answered `initialize`."""

    def __init__(self, peer: Peer, dialect: Dialect, services: Services, *, replays_in_time: bool = False) -> None:
        """Take over a peer.

        `replays_in_time` says of an agent of version 1 that it has replayed a session when it answers `session/load`.
        """
        self.peer = peer
        self.dialect = dialect
        self._incoming = Incoming(dialect, services)
        self.sessions: dict[str, OpenSession] = self._incoming.sessions
        self._may_replay_late = dialect.agent.version == 1 and not replays_in_time
        self._tasks: set[asyncio.Task[None]] = set()
        self.lost: ConnectionLost | None = None
        """How the agent was lost, once it was."""
        peer.on_lost = self._end_sessions
        peer.routes = self._incoming.routes()
        self.public: Connection = Connection(self)
        """What the program that uses the library has of it."""

    def check_can(self, what: str) -> None:
        """Raise `UsageError` if the agent has not advertised an ability."""
        if not self.dialect.agent.can(what):
            raise UsageError(f"this agent does not offer {what!r}; ask `agent.can({what!r})` first")

    async def request(self, method: str, params: Update) -> Update:
        """Send a request and return its result; see `Connection.request`."""
        try:
            answer: Any = await self.peer.request(method, params, result=cast("Any", object))
        except RemoteError as e:
            if e.code == -32000 and self.dialect.agent.auth_methods:
                ways = ", ".join(repr(method.get("id")) for method in self.dialect.agent.auth_methods)
                e.add_note(f"Log in first: `await agent.authenticate(…)` with one of {ways}")
            raise
        return cast("Update", answer) if isinstance(answer, dict) else {}

    def own(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run work as a task that ends with the connection, at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close_session(self, session: OpenSession) -> None:
        """Stop what the agent does in a session and close it; see `OpenSession.close`."""
        deadline = await session.stop_to_close()
        try:
            if self.dialect.agent.can("close") and self.lost is None:
                async with asyncio.timeout_at(deadline):
                    await self.request("session/close", {"sessionId": session.id})
        except TimeoutError:
            log.warning("The agent does not answer that session %s is closed", session.id)
        finally:
            await self.forget(session)

    def unreadable(self, line: bytes, reason: str) -> None:
        """Tell the sessions concerned that a message of the agent could not be read."""
        self._incoming.unreadable(line, reason)

    async def close(self) -> None:
        """End everything that is still at work."""
        for session in list(self.sessions.values()):
            session.end(ConnectionLost("the connection was closed"))
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for session in list(self.sessions.values()):
            await self.forget(session)

    # Opening

    async def open_new(self, method: str, params: Update, roots: Update) -> OpenSession:
        """Open a session that gets its id by the answer; what comes about it before that waits (P5)."""
        self._incoming.expect_session()
        try:
            answer = await self.request(method, params)
            session_id = answer.get("sessionId")
            if not isinstance(session_id, str):
                raise InvalidAnswer(f"The answer to {method} names no session")
            if (before := self.sessions.get(session_id)) is not None:
                await self.forget(before)
            session = self._register(session_id, roots)
            self._incoming.session_named(session)
            session.apply(self._configuration(session, answer))
            return session
        finally:
            self._incoming.session_expected_no_more()

    async def restore(self, session_id: str, method: str, params: Update, roots: Update) -> OpenSession:
        """Open a session whose id is known, in the place of the one that is open, if there is one."""
        if (before := self.sessions.get(session_id)) is not None:
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
            await self.forget(before)
        return session

    async def _put_back(self, failed: OpenSession, before: OpenSession | None) -> None:
        """Forget a session that could not be restored; the one that was open before it is open again."""
        if before is not None and self.sessions.get(failed.id) is failed:
            self.sessions[failed.id] = before
            if self.lost is not None:
                before.end(self.lost)
                await self.forget(before)
        await self.forget(failed)

    def _configuration(self, session: OpenSession, answer: Update) -> Sequence[Event]:
        try:
            return session.lifting.lift_configuration(answer)
        except InvalidParams as e:
            log.warning("The agent's options for session %s cannot be used: %s", session.id, e)
            return ()

    def _register(self, session_id: str, roots: Update) -> OpenSession:
        if self.lost is not None:
            raise self.lost.with_traceback(None)
        additional = roots.get("additionalDirectories", ())
        session = OpenSession(self, self.dialect.lifting(), session_id, roots["cwd"], additional)
        self.sessions[session_id] = session
        return session

    async def forget(self, session: OpenSession) -> None:
        """Let go of a session, and of the commands that run for it."""
        if self.sessions.get(session.id) is session:
            del self.sessions[session.id]
        session.end(None)
        if session.terminals is not None:
            await session.terminals.close()

    def _end_sessions(self, error: ConnectionLost) -> None:
        self.lost = error
        for session in list(self.sessions.values()):
            session.end(error)


def _check_same_session(session_id: str, method: str, answer: Update) -> None:
    """Raise `InvalidAnswer` if an agent has begun a session anew, without its past, instead of restoring it (P11)."""
    if answer.get("sessionId", session_id) != session_id:
        raise InvalidAnswer(f"The answer to {method} of {session_id} names another session")
