"""`AgentProcess`: one process of a wrapped agent, from its start to its death.

What it sends about a session goes to the `RemoteSession` of that session, in order. What comes about a session before
the answer that names it waits for that answer (P5). What it asks goes to `requests`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.client.dialect import dialect_for
from holdfast.client.handshake import answered_version
from holdfast.client.incoming import UpdateParams
from holdfast.errors import (
    AgentRefused,
    ConnectionLost,
    InternalError,
    InvalidAnswer,
    InvalidRequest,
    RemoteError,
    StartTimeout,
)
from holdfast.model.agents import SAME_STORE
from holdfast.model.events import is_object
from holdfast.peer import Peer, PeerLimits, Routes
from holdfast.transport import spawn
from holdfast_app.wrap.handshake import initialize
from holdfast_app.wrap.remote import RemoteSession
from holdfast_app.wrap.requests import AgentRequests
from holdfast_app.wrap.successor import SuccessorTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from holdfast.client.dialect import Dialect
    from holdfast.engine import ConnectedClient
    from holdfast.model import ClientInfo, Update
    from holdfast.peer import DroppedLine
    from holdfast.transport import ProcessTransport
    from holdfast_app.wrap.in_process import InProcessTransport
    from holdfast_app.wrap.launch import Launch
    from holdfast_app.wrap.port import ProxyPort

    AgentTransport: TypeAlias = ProcessTransport | SuccessorTransport | InProcessTransport

log: logging.Logger = logging.getLogger(__name__)

LIMITS = PeerLimits(linger=0.05, end_grace=0.2, flush=0.1)  # with the rest, below two seconds (A11)

MAX_EARLY_BYTES = 64 << 20
"""So many bytes of updates are kept for sessions that no answer has named yet."""


_WRAPPED_TWICE = (
    "The command behind `--` is a Holdfast that keeps its sessions in the same store, so each would be kept twice and "
    "wait for itself. Use that command alone, without this `holdfast`, or give one of the two another --store."
)


class AgentProcess:
    """One process of a wrapped agent, and the sessions that are live in it."""

    def __init__(self, port: ProxyPort, transport: AgentTransport, launch: Launch, lost: Callable[[], None]) -> None:
        self.port = port
        self.sessions: dict[str, RemoteSession] = {}
        """The sessions that are live in it, by the agent's ids."""
        self.death: ConnectionLost | None = None
        """Why it is gone, once it is."""
        self.resume_is_sure: bool | None = None
        """Whether it refuses to resume a session that it does not have; None while nobody has tried."""
        self.dialect: Dialect
        self.answer: Update = {}
        """Its answer to `initialize`."""
        self.transport = transport
        self._launch = launch
        self._tell_lost = lost
        self._opening = 0
        self._silent_forks: dict[str, str] = {}  # by a fork that never spoke under its own id, its parent
        self._early: dict[str, list[bytes]] = {}
        self._early_bytes = 0
        self.peer: Peer = Peer(transport, Routes(), limits=LIMITS, answers_noise=False)
        self.peer.on_lost = self._lost
        self.peer.on_dropped_line = self._dropped
        if launch.on_frame is not None:
            self.peer.observe(launch.on_frame)
        self._running = asyncio.get_running_loop().create_task(self.peer.run(), name=f"agent {transport.name}")

    @classmethod
    async def start(
        cls,
        port: ProxyPort,
        principal: str,
        info: ClientInfo,
        lost: Callable[[], None],
        conductor: ConnectedClient | None = None,
    ) -> AgentProcess:
        """Start an agent for a principal's clients with these capabilities.

        One that a conductor has started is reached through it.

        Raises `AgentRefused` if it cannot be started, exits, is silent, or refuses `initialize`.
        """
        launch = port.launch
        transport: AgentTransport
        if conductor is not None:
            transport = SuccessorTransport(conductor, port.max_line)
        elif launch.open is not None:
            transport = await launch.open(port.max_line)
        else:
            prepared = None if launch.hosting is None else launch.hosting.prepare(principal, launch.command)
            transport = await spawn(
                *(launch.command if prepared is None else prepared.command),
                cwd=None if prepared is None else prepared.cwd,
                env=launch.env if prepared is None else prepared.env,
                limit=port.max_line,
                patience=launch.exit_seconds,
                on_stderr=launch.on_stderr,
            )
        process = cls(port, transport, launch, lost)
        try:
            await process._initialize(info, port.serves(principal))
        except BaseException:
            await process.end()
            raise
        return process

    async def _initialize(self, info: ClientInfo, served: frozenset[str]) -> None:
        waiting = asyncio.timeout(self._launch.start_seconds)
        try:
            async with waiting:
                self.answer = await initialize(self.peer, info, served, self._launch.store_mark)
                self.dialect = dialect_for(answered_version(self.answer), self.answer)
        except TimeoutError:
            transport = self.transport
            late = StartTimeout(transport.name, transport.stdout, transport.stderr, self._launch.start_seconds)
            raise AgentRefused(InternalError.code, str(late)) from None
        except (RemoteError, ConnectionLost) as e:
            raise refusal(e) from None
        if as_object(self.answer.get("_meta")).get(SAME_STORE) is True:
            raise AgentRefused(InvalidRequest.code, _WRAPPED_TWICE)
        self.peer.routes = self._routes()

    @property
    def alive(self) -> bool:
        """Whether it can still be spoken to."""
        return self.death is None and not self.transport.is_ending

    def can(self, what: str) -> bool:
        """Return whether the agent offers ``load``, ``resume``, ``fork``, ``list``, ``delete``, ``close``…"""  # noqa: D400, D415
        return self.dialect.agent.can(what)

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and return its result as it is; raise `AgentRefused` where it is refused or never comes."""
        try:
            return await self.peer.request(method, params, result=object)
        except (RemoteError, ConnectionLost) as e:
            raise refusal(e) from None

    async def end(self) -> None:
        """End the process: it sees the end of its input, is asked to terminate, and is killed at last."""
        self.peer.close()
        await asyncio.wait({self._running})

    # Sessions

    async def open_new(
        self, method: str, params: Mapping[str, Any], *, replays: bool = False
    ) -> tuple[RemoteSession, Update]:
        """Send a request whose answer names a session; return that session and the answer.

        `replays` says that what the agent says of it until `end_replay` is the past, as that of a fork.
        """
        self._opening += 1
        try:
            answer = as_object(await self.request(method, params))
            session_id = answer.get("sessionId")
            if not isinstance(session_id, str):
                raise refusal(InvalidAnswer(f"The agent's answer to {method} names no session"))
            return self._register(session_id, replays=replays), answer
        finally:
            self._opening -= 1
            if not self._opening:
                self._early.clear()
                self._early_bytes = 0

    def register(self, session_id: str) -> RemoteSession:
        """Expect to hear of a session whose id is known, first its past."""
        return self._register(session_id, replays=True)

    def _register(self, session_id: str, *, replays: bool) -> RemoteSession:
        if self.death is not None:
            raise refusal(self.death)
        if (before := self.sessions.get(session_id)) is not None:
            before.replaced()  # agents exist that give an id again (goose): it is another session
        remote = self.sessions[session_id] = RemoteSession(self, session_id)
        if replays:
            remote.begin_replay()
        for raw in self._early.pop(session_id, ()):
            remote.hear(raw)
        return remote

    def forget(self, remote: RemoteSession) -> None:
        """Note that a session is live in it no longer."""
        if self.sessions.get(remote.id) is remote:
            del self.sessions[remote.id]
            self._silent_forks.pop(remote.id, None)

    def expect_as_parent(self, fork: RemoteSession, parent_id: str) -> None:
        """Take what is said under the parent's id in turns of a fork for the fork's, until it speaks for itself."""
        self._silent_forks[fork.id] = parent_id

    # What it sends

    def _routes(self) -> Routes:
        routes = AgentRequests(self).routes()
        routes.notification("session/update", self._update, UpdateParams)
        return routes

    async def _update(self, params: UpdateParams) -> None:
        raw = bytes(params.update)
        remote = self._speaker(params.session_id, raw) if self._silent_forks else self.sessions.get(params.session_id)
        if remote is not None:
            remote.hear(raw)
            if remote.congested:
                await remote.drain(alone=len(self.sessions) == 1)
        elif self._opening and self._early_bytes + len(raw) <= MAX_EARLY_BYTES:
            self._early.setdefault(params.session_id, []).append(raw)
            self._early_bytes += len(raw)
        else:
            log.info("The agent spoke of a session that is not open: %s", params.session_id[:100])

    def _speaker(self, session_id: str, raw: bytes) -> RemoteSession | None:
        """Return the session that an update is about: agents exist (crow) that name the parent in turns of a fork."""
        named = self.sessions.get(session_id)
        if not _is_said(raw):
            return named
        if named is not None and named.busy:
            self._silent_forks.pop(session_id, None)
            return named
        forks = [self.sessions.get(fork) for fork, parent in self._silent_forks.items() if parent == session_id]
        working = [fork for fork in forks if fork is not None and fork.busy]
        return working[0] if len(working) == 1 else named

    def _dropped(self, line: DroppedLine) -> None:
        self.transport.keep_output(line.head)
        if line.was_message:
            for remote in list(self.sessions.values()):
                remote.missed(line.head, line.reason)

    def _lost(self, death: ConnectionLost) -> None:
        self.death = death
        for remote in list(self.sessions.values()):
            remote.lost(death)
        self.sessions.clear()
        self._tell_lost()
        if not self._running.done():
            log.info("The agent is gone: %s", death)


_SAID = frozenset(
    {"agent_message_chunk", "agent_message", "agent_thought_chunk", "agent_thought", "tool_call", "tool_call_update"}
)


class _Kind(msgspec.Struct, rename="camel"):
    session_update: str


def _is_said(raw: bytes) -> bool:
    """Return whether an update is something that the agent says or does in a turn."""
    try:
        return msgspec.json.decode(raw, type=_Kind).session_update in _SAID
    except msgspec.DecodeError:
        return False


def refusal(error: RemoteError | ConnectionLost) -> AgentRefused:
    """Return the error a client is told: code and data are the agent's, and the reason stands in the message."""
    if isinstance(error, RemoteError):
        message = f"{error.message}: {error.reason}" if error.reason else error.message
        return AgentRefused(error.code, message, error.data)
    return AgentRefused(InternalError.code, str(error))


def as_object(answer: object) -> Update:
    """Return an answer that should be an object; what is none, as `null`, is an empty one."""
    return answer if is_object(answer) else {}
