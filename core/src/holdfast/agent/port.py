"""An agent port made of an author's `Agent`."""

from __future__ import annotations

from functools import cache
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidParams, MethodNotFound, UsageError
from holdfast.model import AgentDescription, AuthMethod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.agent.agent import Agent, Login
    from holdfast.agent.author_session import AuthorSession
    from holdfast.engine import ConnectedClient, LiveSession, Origin, SessionClient
    from holdfast.mcp import Server
    from holdfast.model import OwnSession

PROVIDER_METHODS = frozenset({"providers/list", "providers/set", "providers/disable"})


class AuthorAgent:
    """An author's agent, as the engine and the server see it."""

    begins_entries = True  # every id in a turn is made in it

    def __init__(self, agent: Agent, servers: tuple[Server, ...] = ()) -> None:
        if agent.handler is None and not agent.commands:
            raise UsageError(f"the agent {agent.name!r} has no prompt handler; decorate one with @agent.prompt")
        self.agent = agent
        self.servers = servers
        """MCP servers that every session has, besides those its clients name."""

    async def describe(self, client: ConnectedClient) -> AgentDescription:
        """Describe the agent as its author declared it; logins in a terminal only to a client that has one."""
        agent = self.agent
        terminal = client.info.has_terminal_login
        return AgentDescription(
            name=agent.name,
            version=agent.version,
            title=agent.title,
            accepts=agent.accepts,
            auth_methods=tuple(_auth_method(login) for login in agent.logins if terminal or not login.terminal),
            auth_required=agent.auth_required,
            logged_in=agent.login_check,
            providers=agent.request_handlers.keys() >= PROVIDER_METHODS,
            mcp_kinds=_mcp_kinds(),
        )

    async def log_in(self, method_id: str, client: ConnectedClient) -> None:  # noqa: ARG002
        """Call the author's login."""
        login = next((login for login in self.agent.logins if login.id == method_id), None)
        if login is None:
            raise InvalidParams(f"There is no way to log in called {method_id!r}")
        if login.terminal:
            raise InvalidParams(f"Run the agent's command in a terminal to log in, with --login {method_id} behind it")
        await login.log_in()

    async def log_out(self, client: ConnectedClient) -> None:  # noqa: ARG002
        """Call the author's logout, if there is one."""
        if self.agent.log_out is not None:
            await self.agent.log_out()

    async def open(self, session: LiveSession, client: SessionClient | None, origin: Origin) -> AuthorSession:  # noqa: ARG002
        """Begin to connect the client's MCP servers, and call the author's hooks."""
        from holdfast.agent.author_session import AuthorSession  # noqa: PLC0415  (`initialize` needs no sessions)

        opened = AuthorSession(self.agent, session, self.servers)
        session.agent = opened
        opened.resolve_roots(client)
        try:
            await opened.servers.connect(client)
            for hook in self.agent.open_hooks:
                await hook(opened.seen_by(client))
        except BaseException:
            await opened.servers.close()
            raise
        opened.announces = True
        return opened

    async def own_sessions(self, client: ConnectedClient, cwd: str | None) -> Sequence[OwnSession]:  # noqa: ARG002
        """Return nothing: all its sessions are in our store."""
        return ()

    async def adopt(self, own_id: str, client: SessionClient) -> None:  # noqa: ARG002
        """Adopt nothing."""
        return

    async def deleted(self, principal: str, memory: dict[str, Any]) -> None:
        """Do nothing: what it remembered of a session lay with it."""

    async def request(self, method: str, params: Any, client: ConnectedClient) -> object:
        """Call the author's function and return its answer."""
        if (handle := self.agent.request_handlers.get(method)) is None:
            raise MethodNotFound(f"There is no method {method[:100]}")
        return await handle(params, client)

    async def notify(self, method: str, params: Any, client: ConnectedClient) -> None:
        """Call the author's function, if there is one."""
        if (handle := self.agent.notification_handlers.get(method)) is not None:
            await handle(params, client)


def _auth_method(login: Login) -> AuthMethod:
    return AuthMethod(login.id, login.name, login.description, ("--login", login.id) if login.terminal else None)


@cache
def _mcp_kinds() -> frozenset[str]:
    """Return the kinds of MCP servers that sessions can have: none without the official SDK (an extra)."""
    installed = PathFinder.find_spec("mcp") is not None
    return AgentDescription(name="").mcp_kinds if installed else frozenset()
