"""`Connection`: one agent, and the sessions that are open with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.client.listed_session import ListedSession, read_session_page
from holdfast.errors import UsageError
from holdfast.surface.description import FORK_AT, MCP

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from holdfast.client.agent_link import AgentLink
    from holdfast.client.session import ClientSession
    from holdfast.model import Update


class AgentInfo(NamedTuple):
    """What an agent says of itself.

    Attributes:
        name: its name for programs.
        version: its version.
        title: its name for people, None where it has none.

    """

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
        """Return whether the agent offers something.

        Args:
            what: ``load``, ``resume``, ``fork``, ``list``, ``delete``, ``close``, ``logout``; what prompts may hold:
                ``image``, ``audio``, ``resource``; which MCP servers it connects: ``mcp_stdio``, ``mcp_http``,
                ``mcp_sse``; ``fork_at`` if a fork may end with any message.

        Returns:
            Whether it does.

        """
        return self._link.dialect.agent.can(what)

    async def authenticate(self, method_id: str) -> None:
        """Log in.

        Args:
            method_id: the `id` of one of `auth_methods`.

        Raises:
            UsageError: it is one of type ``terminal``, where the user runs the agent's own command.
            RemoteError: the agent refuses.

        """
        for method in self.auth_methods:
            if method.get("id") == method_id and method.get("type") == "terminal":
                added = " ".join(map(str, method.get("args") or ())) or "nothing"
                raise UsageError(f"log in by running the agent's command in a terminal, with {added} added")
        await self.request(*self._link.dialect.agent.login(method_id))

    async def logout(self) -> None:
        """Log out.

        Raises:
            RemoteError: the agent refuses, or has no such request.

        """
        await self.request(*self._link.dialect.agent.logout())

    # Sessions

    async def new_session(
        self,
        cwd: str | Path | None = None,
        *,
        additional: Sequence[str | Path] = (),
        mcp_servers: Sequence[dict[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> ClientSession:
        """Create a session.

        Args:
            cwd: its directory, by default the current one.
            additional: further directories that it may work in.
            mcp_servers: MCP servers for it, as the protocol has them: ``{"name": "clock", "command": "python3", "args":
                ["clock.py"], "env": []}``.
            meta: `_meta` of the request.

        Returns:
            The session.

        Raises:
            UsageError: the agent takes no further directories, or not this kind of MCP server.
            RemoteError: the agent refuses; with code -32000 somebody must log in first.

        """
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
        """Restore a session with its past in `history`.

        A session that is open here is replaced by the restored one, and stays open if it cannot be restored. Agents
        exist that answer with success for a session they do not have: one whose history is empty may be such a one.

        Args:
            session: its id, or the session as `sessions` lists it.
            cwd: its directory, by default that of the list, or the current one.
            additional: further directories that it may work in.
            mcp_servers: MCP servers for it, as with `new_session`.
            meta: `_meta` of the request.

        Returns:
            The session, with all that was said in it.

        Raises:
            UsageError: the agent does not offer it.
            RemoteError: the agent refuses.
            MessageLost: a part of the past could not be read.

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
        """Restore a session without its past; otherwise as `load`.

        Args:
            session: its id, or the session as `sessions` lists it.
            cwd: its directory, by default that of the list, or the current one.
            additional: further directories that it may work in.
            mcp_servers: MCP servers for it, as with `new_session`.
            meta: `_meta` of the request.

        Returns:
            The session; its `history` begins now.

        Raises:
            UsageError: the agent does not offer it.
            RemoteError: the agent refuses.

        """
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
        """Create a session with the past of another. Agents that run on Holdfast, or behind it, offer ``fork_at`` too.

        Args:
            session: the other session: its id, or as `sessions` lists it.
            cwd: its directory, by default that of the list, or the current one.
            additional: further directories that it may work in.
            mcp_servers: MCP servers for it, as with `new_session`.
            meta: `_meta` of the request.
            up_to: the id of the message or tool call that the past ends with; by default it is whole.

        Returns:
            The new session. Its `history` is what the agent tells of it, or else that of the other session if that is
            open here.

        Raises:
            UsageError: the agent does not offer it.
            RemoteError: the agent refuses.

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
        """Iterate over all sessions the agent has, page by page.

        Args:
            cwd: only those of this directory.

        Yields:
            The sessions, in the agent's order.

        Raises:
            UsageError: the agent does not offer it.
            RemoteError: the agent refuses.

        """
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
        """Delete a session.

        Args:
            session: its id, or the session as `sessions` lists it.

        Raises:
            UsageError: the agent does not offer it.
            RemoteError: the agent refuses.

        """
        self._need("delete")
        session_id = session if isinstance(session, str) else session.id
        await self.request("session/delete", {"sessionId": session_id})
        if session_id in self._link.sessions:
            await self._link.forget(self._link.sessions[session_id])

    # Anything else

    async def request(self, method: str, params: Update) -> Update:
        """Send a request, as one that the protocol does not define.

        Args:
            method: the name of the request.
            params: what is asked.

        Returns:
            The result; one that is no object, as `null`, is an empty one.

        Raises:
            RemoteError: the agent answers with an error.
            ConnectionLost: the agent is gone.

        """
        return await self._link.request(method, params)

    def notify(self, method: str, params: Update) -> None:
        """Send a notification.

        Args:
            method: its name.
            params: what is told.

        Raises:
            ConnectionLost: the agent is gone.

        """
        if self._link.lost is not None:
            raise self._link.lost.with_traceback(None)
        self._link.peer.notify(method, params)

    # Inside

    def _need(self, what: str) -> None:
        self._link.check_can(what)

    def _roots(
        self,
        cwd: str | Path | None,
        additional: Sequence[str | Path],
        mcp_servers: Sequence[dict[str, Any]],
        meta: Mapping[str, Any] | None,
    ) -> Update:
        for server in mcp_servers:
            self._need(MCP + str(server.get("type") or "stdio"))
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
