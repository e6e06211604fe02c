"""`Connection`: one agent, and the sessions that are open with it."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from holdfast.client.session import ClientSession
from holdfast.errors import ConnectionLost, InvalidAnswer, InvalidParams, RemoteError, UsageError
from holdfast.peer import Routes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence

    from holdfast.client.dialect import Dialect
    from holdfast.client.services import Services
    from holdfast.model import Event, Update
    from holdfast.peer import Peer

log = logging.getLogger(__name__)

MAX_EARLY_BYTES = 64 << 20
"""Of sessions that nobody has named yet, so much is kept until somebody does."""


class About(NamedTuple):
    """What an agent says of itself."""

    name: str
    version: str
    title: str | None


class Listed(NamedTuple):
    """A session as the agent lists it; `raw` has all it said."""

    id: str
    cwd: str
    title: str | None
    updated_at: datetime | None
    additional: tuple[str, ...]
    archived: bool
    raw: dict[str, Any]


class Told(msgspec.Struct, rename="camel", gc=False):
    """`session/update`."""

    session_id: str
    update: msgspec.Raw


class Connection:
    """An agent we are connected to."""

    def __init__(self, peer: Peer, dialect: Dialect, services: Services) -> None:
        agent = dialect.agent
        self.agent = About(agent.name, agent.release, agent.title)
        self.protocol: int = agent.version
        self.capabilities = agent.capabilities
        """What the agent said it can do, as it said it."""
        self.auth_methods = agent.auth_methods
        """Ways to log in, each with an `id` and a `name`."""
        self.peer = peer
        self._dialect = dialect
        self._services = services
        self._sessions: dict[str, ClientSession] = {}
        self._opening = 0  # requests whose answer will name a session
        self._early: dict[str, list[bytes]] = {}
        self._early_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost: ConnectionLost | None = None
        peer.on_lost = self._end_sessions
        peer.routes = self._routes()

    def __repr__(self) -> str:
        return f"<connection to {self.agent.name or 'an agent'}, protocol version {self.protocol}>"

    def can(self, what: str) -> bool:
        """Say whether the agent offers something: ``load``, ``resume``, ``fork``, ``list``, ``delete``, ``image``."""
        return self._dialect.agent.can(what)

    async def authenticate(self, method_id: str) -> None:
        """Log in by one of `auth_methods`."""
        await self.request(*self._dialect.agent.login(method_id))

    # Sessions

    async def new_session(
        self,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
    ) -> ClientSession:
        """Begin a conversation in a directory (ours unless said otherwise)."""
        roots = self._roots(cwd, additional, mcp_servers)
        return await self._open_new(*self._dialect.agent.new(roots), roots)

    async def load(
        self,
        session: str | Listed,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
    ) -> ClientSession:
        """Go on with a conversation, its past in `history`. Its directory is that of the list, or ours.

        Agents exist that answer so for a session they do not have: one whose history is empty may be such a one.
        """
        self._need("load")
        session_id, roots = self._known(session, cwd, additional, mcp_servers)
        return await self._open_known(session_id, *self._dialect.agent.load(session_id, roots), roots)

    async def resume(
        self,
        session: str | Listed,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
    ) -> ClientSession:
        """Go on with a conversation without being told its past."""
        self._need("resume")
        session_id, roots = self._known(session, cwd, additional, mcp_servers)
        return await self._open_known(session_id, *self._dialect.agent.resume(session_id, roots), roots)

    async def fork(
        self,
        session: str | Listed,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
    ) -> ClientSession:
        """Begin a conversation with the past of another, whose history is not told again."""
        self._need("fork")
        session_id, roots = self._known(session, cwd, additional, mcp_servers)
        return await self._open_new(*self._dialect.agent.fork(session_id, roots), roots)

    async def sessions(self, cwd: str | Path | None = None) -> AsyncIterator[Listed]:
        """Go through all sessions the agent has, or those of one directory, page by page."""
        self._need("list")
        wanted = None if cwd is None else _absolute(cwd)
        params: Update = {} if wanted is None else {"cwd": wanted}
        cursors: set[str] = set()
        seen: set[str] = set()
        while True:
            page = await self.request("session/list", params)
            for it in _listed(page):
                if it.id not in seen and wanted in (None, it.cwd):  # not every agent heeds what it was asked for
                    seen.add(it.id)
                    yield it
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in cursors:
                return
            cursors.add(cursor)
            params = {**params, "cursor": cursor}

    async def delete(self, session: str | Listed) -> None:
        """Delete a session."""
        self._need("delete")
        session_id = session if isinstance(session, str) else session.id
        await self.request("session/delete", {"sessionId": session_id})
        if session_id in self._sessions:
            await self._forget(self._sessions[session_id])

    async def close_session(self, session: ClientSession) -> None:
        """End a conversation; see `ClientSession.close`."""
        try:
            if self.can("close") and self._lost is None:
                await self.request("session/close", {"sessionId": session.id})
        finally:
            await self._forget(session)

    # Between the sessions and the agent

    async def request(self, method: str, params: Update) -> Update:
        """Ask the agent; an answer that is no object, as `null`, is an empty one."""
        try:
            answer: Any = await self.peer.request(method, params, result=cast("Any", object))
        except RemoteError as e:
            if e.code == -32000 and self.auth_methods:
                ways = ", ".join(repr(it.get("id")) for it in self.auth_methods)
                e.add_note(f"Log in first: `await agent.authenticate(…)` with one of {ways}")
            raise
        return cast("Update", answer) if isinstance(answer, dict) else {}

    def notify(self, method: str, params: Update) -> None:
        """Tell the agent."""
        self.peer.notify(method, params)

    def own(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """See to it that work ends with the connection, at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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
        self, cwd: str | Path | None, additional: Sequence[str | Path], mcp_servers: Sequence[dict[str, Any]]
    ) -> Update:
        roots: Update = {"cwd": _absolute(cwd or Path.cwd())}
        if additional:
            self._need("additionalDirectories")
            roots["additionalDirectories"] = [_absolute(it) for it in additional]
        return {**roots, "mcpServers": list(mcp_servers)}

    def _known(
        self,
        session: str | Listed,
        cwd: str | Path | None,
        additional: Sequence[str | Path],
        mcp_servers: Sequence[dict[str, Any]],
    ) -> tuple[str, Update]:
        if isinstance(session, Listed):
            return session.id, self._roots(cwd or session.cwd, additional, mcp_servers)
        return session, self._roots(cwd, additional, mcp_servers)

    async def _open_new(self, method: str, params: Update, roots: Update) -> ClientSession:
        """Open a session that gets its name by the answer; what is told of it before waits (P5)."""
        self._opening += 1
        try:
            answer = await self.request(method, params)
            session_id = answer.get("sessionId")
            if not isinstance(session_id, str):
                raise InvalidAnswer(f"The answer to {method} names no session")
            session = await self._register(session_id, roots)
            for raw in self._early.pop(session_id, ()):
                self._tell(session, raw)
            session.apply(self._configured(session, answer))
            return session
        finally:
            self._opening -= 1
            if not self._opening:
                self._early.clear()
                self._early_bytes = 0

    async def _open_known(self, session_id: str, method: str, params: Update, roots: Update) -> ClientSession:
        """Open a session whose name is known, so that nothing it is told of it can be too early."""
        if (before := self._sessions.get(session_id)) is not None:
            await before.settle()
        session = await self._register(session_id, roots)
        try:
            answer = await self.request(method, params)
        except BaseException:
            await self._forget(session)
            raise
        if answer.get("sessionId", session_id) != session_id:  # it was begun anew, without its past (P11)
            await self._forget(session)
            raise InvalidAnswer(f"The answer to {method} of {session_id} names another session")
        session.apply(self._configured(session, answer))
        return session

    def _configured(self, session: ClientSession, answer: Update) -> Sequence[Event]:
        try:
            return session.lifting.configured(answer)
        except InvalidParams as e:
            log.warning("What the agent tells of session %s cannot be used: %s", session.id, e)
            return ()

    async def _register(self, session_id: str, roots: Update) -> ClientSession:
        if (before := self._sessions.get(session_id)) is not None:
            await self._forget(before)
        additional = roots.get("additionalDirectories", ())
        session = ClientSession(self, self._dialect.lifting(), session_id, roots["cwd"], additional)
        if self._lost is not None:
            raise self._lost
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

    # What the agent says and asks

    def _routes(self) -> Routes:
        routes = Routes()
        routes.notification("session/update", self._updated, Told)
        routes.request("session/request_permission", self._permission, dict[str, Any])
        routes.request("elicitation/create", self._elicitation, dict[str, Any])
        if self.protocol == 1:
            from holdfast.client.errands import errands  # noqa: PLC0415  (version 2 has none)

            errands(routes, self._services, self._session)
        return routes

    async def _updated(self, told: Told) -> None:
        session = self._sessions.get(told.session_id)
        raw = bytes(told.update)
        if session is not None:
            self._tell(session, raw)
        elif self._opening and self._early_bytes + len(raw) <= MAX_EARLY_BYTES:
            self._early.setdefault(told.session_id, []).append(raw)
            self._early_bytes += len(raw)
        else:
            log.debug("An update of a session that is not open is left out: %s", told.session_id)

    def _tell(self, session: ClientSession, raw: bytes) -> None:
        try:
            session.apply(session.lifting.lift(raw))
        except InvalidParams as e:
            log.warning("An update of session %s is not what it says it is, and is left out: %s", session.id, e)

    def _session(self, session_id: object) -> ClientSession:
        session = self._sessions.get(session_id) if isinstance(session_id, str) else None
        if session is None:
            raise InvalidParams("There is no such session here")
        return session

    async def _permission(self, params: Update) -> Update:
        asks = self._dialect.asks
        session = self._session(params.get("sessionId"))
        question = asks.read_permission(params)
        if question.call:
            session.apply(session.lifting.asked(question.call))
        return asks.permission_answer(await self._services.permit(session, question))

    async def _elicitation(self, params: Update) -> Update:
        asks = self._dialect.asks
        session = self._sessions.get(params.get("sessionId", ""))
        return asks.elicitation_answer(await self._services.fill_in(session, asks.read_elicitation(params)))


def _listed(page: Update) -> list[Listed]:
    found: list[Listed] = []
    for it in page.get("sessions") or ():
        match it:
            case {"sessionId": str(id_), **rest}:
                title = rest.get("title")
                additional: Any = rest.get("additionalDirectories")
                found.append(
                    Listed(
                        id_,
                        str(rest.get("cwd") or ""),
                        title if isinstance(title, str) else None,
                        _moment(rest.get("updatedAt")),
                        tuple(map(str, cast("list[object]", additional))) if isinstance(additional, list) else (),
                        rest.get("archived") is True,
                        it,
                    )
                )
            case _:
                pass
    return found


def _absolute(path: str | Path) -> str:
    return str(Path(path).absolute())


def _moment(written: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(written) if isinstance(written, str) else None
    except ValueError:
        return None
    return at if at is None or at.tzinfo is not None else at.replace(tzinfo=UTC)
