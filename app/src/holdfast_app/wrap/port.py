"""`ProxyPort`: an agent port made of another process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import msgspec

from holdfast.errors import AgentRefused, InternalError, InvalidParams, UsageError
from holdfast.model import LOCAL, AgentDescription, AuthMethod, ClientInfo
from holdfast.model.events import is_object
from holdfast.surface import air
from holdfast_app.known_agents import name_of_wrapped
from holdfast_app.wrap.handshake import served_capabilities
from holdfast_app.wrap.launch import MAX_LINE_BYTES
from holdfast_app.wrap.own_sessions import adopt, delete, own_sessions
from holdfast_app.wrap.process import AgentProcess, as_object
from holdfast_app.wrap.record import AgentRecord
from holdfast_app.wrap.session import ProxySession
from holdfast_app.wrap.successor import SUCCESSOR, SuccessorTransport

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.engine import ConnectedClient, LiveSession, Origin, SessionClient
    from holdfast.model import Event, OwnSession, Update
    from holdfast_app.wrap.launch import Launch

BY = "holdfast/by"
"""Under this name in `_meta` stands who does what: the agent itself, or Holdfast for it (G1)."""

_ABILITIES = ("load", "resume", "list", "close", "delete", "fork")


class ProxyPort:
    """A wrapped agent: one process for each principal and set of client capabilities (G1).

    Use it with ``async with``: at the end of the block the agent's processes are ended. Without a command it is a
    component of a chain: its agent is behind the conductor that connects to it (G10).
    """

    begins_entries = False  # what an agent began in one turn it may go on with in the next

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.max_line = MAX_LINE_BYTES
        self._processes: dict[tuple[str, bytes], asyncio.Task[AgentProcess]] = {}
        self._clients: WeakKeyDictionary[ConnectedClient, tuple[str, bytes]] = WeakKeyDictionary()
        self._sessions: dict[str, ProxySession] = {}
        self._principals: set[str] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the agent's processes."""
        starting = list(self._processes.values())
        self._processes.clear()
        for task in starting:
            if not task.done():
                task.cancel()
        await asyncio.gather(*(self._end(task) for task in starting))

    async def _end(self, starting: asyncio.Task[AgentProcess]) -> None:
        with suppress(Exception, asyncio.CancelledError):
            await (await starting).end()

    # Processes

    async def process_for(self, session: LiveSession, client: SessionClient | None) -> AgentProcess:
        """Return the process for a session that a client opens; without one, any that its principal has."""
        if client is not None:
            return await self._process_of(client)
        for (principal, _), starting in self._processes.items():
            if principal == session.principal:
                return await asyncio.shield(starting)
        return await self._process(session.principal, ClientInfo(protocol=1))

    async def _process_of(self, client: ConnectedClient) -> AgentProcess:
        return await self._process(client.principal, client.info, client)

    async def _process(self, principal: str, info: ClientInfo, client: ConnectedClient | None = None) -> AgentProcess:
        info = self._introduced(principal, info)
        key = self._key(principal, info)
        starting = self._processes.get(key)
        if starting is None or (starting.done() and not _is_alive(starting)):

            def lost() -> None:
                if self._processes.get(key) is task:
                    del self._processes[key]

            conductor = None if self.launch.command else client
            start = AgentProcess.start(self, principal, info, lost, conductor)
            task = self._processes[key] = asyncio.get_running_loop().create_task(start, name="start an agent")
            starting = task
        try:
            return await asyncio.shield(starting)
        except UsageError as e:
            raise AgentRefused(InternalError.code, str(e)) from None

    def serves(self, principal: str) -> frozenset[str]:
        """Return which files and terminals are served to a principal's agent by the server itself (H11)."""
        hosting = self.launch.hosting
        return frozenset() if hosting is None else hosting.serves(principal)

    def _introduced(self, principal: str, info: ClientInfo) -> ClientInfo:
        """Return what an agent is told of its client: on a server, what the server has, since clients come and go."""
        served = self.serves(principal)
        if served:
            return ClientInfo(protocol=info.protocol, capabilities=served_capabilities(info.protocol, served))
        meta: object = info.capabilities.get("_meta")
        if not is_object(meta) or not air.extension(meta):
            return info
        told = {**info.capabilities, "_meta": air.without_capabilities(meta, air.NOT_FOR_AGENTS)}
        return msgspec.structs.replace(info, capabilities=told)

    def _key(self, principal: str, info: ClientInfo) -> tuple[str, bytes]:
        if not self.launch.command:
            return principal, b""  # there is one agent behind us, whoever asks
        return principal, msgspec.json.encode((info.protocol, info.capabilities), order="deterministic")

    def clients_of(self, process: AgentProcess) -> Iterator[ConnectedClient]:
        """Yield the clients that a process was started for, the latest first."""
        keys = {key for key, task in self._processes.items() if _is_alive(task) and task.result() is process}
        yield from [client for client, key in reversed(list(self._clients.items())) if key in keys]

    # The agent

    async def describe(self, client: ConnectedClient) -> AgentDescription:
        """Start the agent with what the client can do, and describe it as it describes itself (G1)."""
        self._principals.add(client.principal)
        process = await self._process_of(client)
        self._clients[client] = self._key(client.principal, self._introduced(client.principal, client.info))
        agent = process.dialect.agent
        by = {ability: "agent" if agent.can(ability) else "holdfast" for ability in _ABILITIES}
        by |= {"load": "holdfast", "resume": "holdfast", "rename": "holdfast", "archive": "holdfast"}
        meta = as_object(process.answer.get("_meta"))
        return AgentDescription(
            name=self._name(agent.name),
            version=agent.release or "0",
            title=agent.title,
            accepts=frozenset(kind for kind in ("image", "audio", "resource") if agent.can(kind)),
            auth_methods=tuple(_auth_method(method) for method in agent.auth_methods),
            mcp_kinds=agent.mcp_kinds,
            additional_directories=agent.can("additionalDirectories"),
            protocol=None if self.launch.command else agent.version,
            forwards=True,
            meta={**air.without_capabilities(meta, air.WITHHELD, "goal"), BY: by},
        )

    def _name(self, own: str | None) -> str:
        """Return the name that its sessions belong to (F1); the names of a known agent are one."""
        launch = self.launch
        if launch.open is not None:  # an agent of this process has the name that its author gives it
            return launch.name or own or launch.base_name
        return name_of_wrapped(launch.name, own, launch.command) or launch.base_name

    async def log_in(self, method_id: str, client: ConnectedClient) -> None:
        """Log in to the agent."""
        process = await self._process_of(client)
        await process.request(*process.dialect.agent.login(method_id))

    async def log_out(self, client: ConnectedClient) -> None:
        """Log out of the agent."""
        process = await self._process_of(client)
        await process.request(*process.dialect.agent.logout())

    async def open(self, session: LiveSession, client: SessionClient | None, origin: Origin) -> ProxySession:
        """Open the agent's session of a new one; that of an old one is brought back when it is needed (G4)."""
        opened = ProxySession(self, session)
        await opened.open(client, origin)
        self._sessions[session.id] = opened
        return opened

    def closed(self, session: ProxySession) -> None:
        """Note that a session has left memory."""
        if self._sessions.get(session.live.id) is session:
            del self._sessions[session.live.id]

    # Sessions that the agent has itself (G9)

    async def own_sessions(self, client: ConnectedClient, cwd: str | None) -> Sequence[OwnSession]:
        """List the agent's own sessions; none where several principals share its home, or it cannot tell."""
        if not self._has_home_of(client.principal):
            return ()
        process = await self._process_of(client)
        return await own_sessions(process, cwd) if process.can("list") else ()

    async def adopt(self, own_id: str, client: SessionClient) -> tuple[OwnSession, Sequence[Event]] | None:
        """Load a session that the agent has itself; None where it has none of this id, or nothing is in it."""
        if not self._has_home_of(client.principal):
            return None
        process = await self._process_of(client)
        return await adopt(process, own_id, client)

    async def deleted(self, principal: str, memory: dict[str, Any]) -> None:
        """Delete the agent's session too, where the agent can and is running; otherwise only ours is gone."""
        own_id = AgentRecord.read(memory).session
        for (owner, _), starting in list(self._processes.items()):
            if owner == principal and own_id is not None and _is_alive(starting):
                await delete(starting.result(), own_id)
                return

    def _has_home_of(self, principal: str) -> bool:
        """Return whether what the agent has in its home is this principal's, as it is where nobody else asks."""
        hosting = self.launch.hosting
        return (principal == LOCAL and self._principals == {LOCAL}) or (hosting is not None and hosting.has_homes)

    # What the protocol does not define

    async def request(self, method: str, params: Any, client: ConnectedClient) -> object:
        """Send a request to the agent as it is, but for the id of the session."""
        if (successor := await self._successor(method, client)) is not None:
            return await successor.deliver_request(params.get("method"), params.get("params"))
        process, theirs = await self._translated(params, client)
        return await process.request(method, theirs)

    async def notify(self, method: str, params: Any, client: ConnectedClient) -> None:
        """Send a notification to the agent as it is, but for the id of the session."""
        if (successor := await self._successor(method, client)) is not None:
            successor.deliver_notification(params.get("method"), params.get("params"))
            return
        process, theirs = await self._translated(params, client)
        process.peer.notify(method, theirs)

    async def _successor(self, method: str, client: ConnectedClient) -> SuccessorTransport | None:
        """Return the way to the agent behind us, where the conductor delivers a message of it (G10)."""
        if method != SUCCESSOR or self.launch.command:
            return None
        transport = (await self._process_of(client)).transport
        return transport if isinstance(transport, SuccessorTransport) else None

    async def _translated(self, params: Any, client: ConnectedClient) -> tuple[AgentProcess, Any]:
        theirs: object = params
        session = self._sessions.get(str(theirs.get("sessionId"))) if is_object(theirs) else None
        if session is None or session.live.principal != client.principal:
            return await self._process_of(client), params
        if session.remote is None or not session.remote.alive:
            raise InvalidParams("The agent does not have this session now; prompt it first")
        return session.remote.process, {**params, "sessionId": session.remote.id}


def _is_alive(starting: asyncio.Task[AgentProcess]) -> bool:
    is_started = starting.done() and not starting.cancelled() and starting.exception() is None
    return is_started and starting.result().alive


def _auth_method(method: Update) -> AuthMethod:
    method_id, description = method.get("id"), method.get("description")
    known = ("id", "methodId", "name", "description")
    more = {name: value for name, value in method.items() if name not in known}
    name = str(method.get("name") or method_id)
    return AuthMethod(str(method_id), name, description if isinstance(description, str) else None, more=more or None)
