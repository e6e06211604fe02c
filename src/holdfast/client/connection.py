"""`Connection`: one agent, and the sessions that are open with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.client.listed_session import ListedSession, read_session_page
from holdfast.errors import UsageError
from holdfast.surface.description import FORK_AT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from holdfast.client.agent_link import AgentLink
    from holdfast.client.session import ClientSession
    from holdfast.model import Update


class AgentInfo(NamedTuple):
    """What an agent says of itself."""

    name: str
    version: str
    title: str | None


class Connection:
    """An agent we are connected to."""

    def __init__(self, link: AgentLink) -> None:
        agent = link.dialect.agent
        self.agent: AgentInfo = AgentInfo(agent.name, agent.release, agent.title)
        """What the agent calls itself."""
        self.protocol: int = agent.version
        """The version of the protocol that is spoken."""
        self.capabilities: dict[str, Any] = agent.capabilities
        """What the agent said it can do, as it said it."""
        self.auth_methods: Sequence[dict[str, Any]] = agent.auth_methods
        """Ways to log in, each with an `id` and a `name`."""
        self._link = link

    def __repr__(self) -> str:
        return f"<connection to {self.agent.name or 'an agent'}, protocol version {self.protocol}>"

    def can(self, what: str) -> bool:
        """Return whether the agent offers ``load``, ``resume``, ``fork``, ``list``, ``delete``, ``close``.

        Prompts may hold ``image``, ``audio``, ``resource``; a fork may end with any message if it offers ``fork_at``.
        """
        return self._link.dialect.agent.can(what)

    async def authenticate(self, method_id: str) -> None:
        """Log in by one of `auth_methods`.

        Raises `UsageError` for one of type ``terminal``: there the user runs the agent's own command.
        """
        for method in self.auth_methods:
            if method.get("id") == method_id and method.get("type") == "terminal":
                added = " ".join(map(str, method.get("args") or ())) or "nothing"
                raise UsageError(f"log in by running the agent's command in a terminal, with {added} added")
        await self.request(*self._link.dialect.agent.login(method_id))

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
        return (await self._link.open_new(*self._link.dialect.agent.new(roots), roots)).public

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
        return (await self._link.restore(session_id, *self._link.dialect.agent.load(session_id, roots), roots)).public

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
        return (await self._link.restore(session_id, *self._link.dialect.agent.resume(session_id, roots), roots)).public

    async def fork(
        self,
        session: str | ListedSession,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
        up_to: str | None = None,
    ) -> ClientSession:
        """Create a session with the past of another: all of it, or `up_to` and with the message or tool call of an id.

        Its `history` is what the agent tells of it, or else that of the other session if that is open here.

        Raises `UsageError` where the agent does not offer it: agents that run on Holdfast, or behind it, offer
        ``fork_at`` too.
        """
        self._need("fork")
        if up_to is not None:
            self._need("fork_at")
            meta = {**(meta or {}), FORK_AT: up_to}
        session_id, roots = self._named(session, cwd, additional, mcp_servers, meta)
        forked = await self._link.open_new(*self._link.dialect.agent.fork(session_id, roots), roots)
        if (parent := self._link.sessions.get(session_id)) is not None:
            forked.inherit(parent, up_to)
        return forked.public

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
        if session_id in self._link.sessions:
            await self._link.forget(self._link.sessions[session_id])

    # Anything else

    async def request(self, method: str, params: Update) -> Update:
        """Send a request and return its result; one that is no object, as `null`, is an empty one.

        Raises `RemoteError` if the agent answers with an error, `ConnectionLost` if it is gone.
        """
        return await self._link.request(method, params)

    def notify(self, method: str, params: Update) -> None:
        """Send a notification. Raises `ConnectionLost` if the agent is gone."""
        if self._link.lost is not None:
            raise self._link.lost.with_traceback(None)
        self._link.peer.notify(method, params)

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


def _absolute(path: str | Path) -> str:
    return str(Path(path).absolute())
