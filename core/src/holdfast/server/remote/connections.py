"""The connections of a server: who has them, over what, and when they end."""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from holdfast.errors import RequestError
from holdfast.peer import PeerLimits
from holdfast.server.connection import ClientConnection
from holdfast.server.remote.acp_streams import AcpStreams, Incoming
from holdfast.server.remote.authentication import Credential
from holdfast.server.remote.kept_connections import KeptConnection
from holdfast.server.remote.requests import Refusal
from holdfast.server.remote.revocation import Revocations
from holdfast.transport import Transport
from holdfast.transport.websocket_frames import POLICY, TRY_AGAIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.server.access import Access
    from holdfast.server.audit import AuditLog
    from holdfast.server.host import Host
    from holdfast.server.remote.kept_connections import KeptConnections
    from holdfast.server.remote.limits import Quotas, RemoteLimits

log: logging.Logger = logging.getLogger(__name__)

LIMITS = PeerLimits(linger=0.0, end_grace=1.0, flush=2.0)
"""A client that has left waits for no answer; its turns go on without it (H5)."""


WEIGH_SECONDS = 0.5
"""So often it is looked how much the connections of each principal leave unread."""


class RemoteTransport(Transport, Protocol):
    """A transport that can be ended from here."""

    def cut(self, code: int, reason: str) -> None:
        """Send nothing more, not even what waits to be read; close with a code, where there are codes."""
        ...


class RemoteConnection:
    """One client's connection, over a WebSocket or over HTTP."""

    def __init__(
        self,
        host: Host,
        transport: RemoteTransport,
        credential: Credential,
        limits: RemoteLimits,
        connection_id: str,
        access: Access | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        self.id = connection_id
        self.credential = credential
        self.transport = transport
        self.client: ClientConnection = ClientConnection(
            host, transport, principal=credential.principal, limits=LIMITS, access=access
        )
        self.client.max_sessions = limits.sessions
        self.client.audit = audit
        self.streams: AcpStreams | None = None
        """Its streams, if it is one over HTTP."""
        self.task: asyncio.Task[None] | None = None
        self.posts = 0
        """How many POSTs wait for their turn."""

    @property
    def principal(self) -> str:
        """On whose behalf it speaks."""
        return self.credential.principal

    def cut(self, code: int, reason: str) -> None:
        """End it now: what it was not sent yet it is never sent."""
        self.transport.cut(code, reason)
        self.client.peer.close()

    @property
    def streams_of(self) -> AcpStreams:
        """Its streams; it is one over HTTP."""
        assert self.streams is not None
        return self.streams


class Connections:
    """All connections of a server."""

    def __init__(
        self,
        host: Host,
        limits: RemoteLimits,
        quotas: Quotas,
        kept: KeptConnections,
        access_of: Callable[[str], Access],
        audit: AuditLog | None = None,
        holds: Callable[[Credential], bool] | None = None,
        revocations: Revocations | None = None,
    ) -> None:
        self._audit = audit
        self._holds: Callable[[Credential], bool] = holds or (lambda _: True)
        self._revocations = revocations or Revocations()
        self._unbind: dict[str, Callable[[], None]] = {}
        self._weighing: asyncio.TimerHandle | None = None
        self._kept = kept
        self._access_of = access_of
        self._restoring: dict[str, asyncio.Task[RemoteConnection | None]] = {}
        self._host = host
        self._limits = limits
        self._quotas = quotas
        self.ending: bool = False
        """Whether the process ends: its connections go on in the next one."""
        self._by_id: dict[str, RemoteConnection] = {}
        self._expiry: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def count(self) -> dict[str, float]:
        """Return how many there are, by transport."""
        http = sum(each.streams is not None for each in self._by_id.values())
        return {'{transport="http"}': http, '{transport="websocket"}': len(self._by_id) - http}

    @property
    def unsent(self) -> int:
        """How many bytes clients have not read."""
        return sum(each.transport.unsent for each in self._by_id.values())

    async def find(self, connection_id: str | None, credential: Credential) -> RemoteConnection:
        """Return a connection over HTTP, perhaps one of an earlier process; raise `Refusal` where there is none."""
        if connection_id is None:
            raise Refusal(400, "The header Acp-Connection-Id is missing; the answer to initialize names it")
        connection = self._by_id.get(connection_id)
        if connection is None:
            connection = await self._restored(connection_id, credential)
        if connection is None or connection.credential != credential or connection.streams is None:
            raise Refusal(404, "There is no such connection; send initialize again")
        return connection

    async def _restored(self, connection_id: str, credential: Credential) -> RemoteConnection | None:
        """Return a connection of an earlier process, as it was (H4)."""
        kept = self._kept.load(connection_id)
        if kept is None or credential != (kept.principal, kept.credential):
            return None
        task = self._restoring.get(connection_id)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._restore(connection_id, kept))
            self._restoring[connection_id] = task
            task.add_done_callback(lambda _: self._restoring.pop(connection_id))
        return await asyncio.shield(task)

    async def _restore(self, connection_id: str, kept: KeptConnection) -> RemoteConnection | None:
        self.check_room(kept.principal)
        connection = self.open_http(Credential(kept.principal, kept.credential), connection_id)
        streams = connection.streams_of
        begun = msgspec.json.decode(kept.initialize, type=Incoming)
        assert begun.id is not None
        answer = streams.expect_initialize(begun.id)
        await streams.transport.deliver(bytes(kept.initialize))
        await answer
        for session_id, session in kept.sessions.items():
            with suppress(RequestError):  # it may not work there any more; its client has to load it, and is told why
                connection.client.reopen(session_id, session.cwd, session.additional)
            streams.session_stream(session_id)
        streams.kept = kept
        streams.answer_broken_prompts()
        self.begun(connection, bytes(kept.initialize))
        return connection

    def begun(self, connection: RemoteConnection, initialize: bytes) -> None:
        """Keep a connection that has answered `initialize`."""
        streams = connection.streams_of
        if streams.kept is None:
            streams.kept = KeptConnection(
                connection.principal, msgspec.Raw(initialize), credential=connection.credential.id
            )
        streams.on_changed = partial(self._kept.save, connection.id, streams.kept)
        streams.on_changed()

    def check_room(self, principal: str) -> None:
        """Raise `Refusal` where a principal has too many connections."""
        if not self._quotas.may_connect(principal):
            raise Refusal(429, "You have too many connections; close some", {"retry-after": "5"})

    def open_http(self, credential: Credential, connection_id: str | None = None) -> RemoteConnection:
        """Open a connection over HTTP; it runs until it is deleted, or nobody reads it for too long."""
        streams = AcpStreams(self._limits.message, self._limits.sessions)
        id_ = connection_id or secrets.token_urlsafe(24)
        connection = self._new(streams.transport, credential, id_)
        connection.streams = streams
        connection.client.positions = streams
        self._add(connection)
        connection.task = asyncio.get_running_loop().create_task(self._run(connection), name="connection over HTTP")
        self.read_changed(connection)
        return connection

    async def run_websocket(self, connection: RemoteConnection) -> None:
        """Serve a connection over a WebSocket until it ends."""
        self._add(connection)
        connection.task = asyncio.current_task()
        await self._run(connection)

    def new_websocket(self, transport: RemoteTransport, credential: Credential, connection_id: str) -> RemoteConnection:
        """Return a connection over a WebSocket that has yet to run."""
        return self._new(transport, credential, connection_id)

    def _new(self, transport: RemoteTransport, credential: Credential, connection_id: str) -> RemoteConnection:
        access = self._access_of(credential.principal)
        return RemoteConnection(self._host, transport, credential, self._limits, connection_id, access, self._audit)

    def _add(self, connection: RemoteConnection) -> None:
        self._by_id[connection.id] = connection
        if self._audit is not None:
            over = "websocket" if connection.streams is None else "http"
            self._audit.record("connect", connection.principal, over=over, connection=connection.id[:8])
        self._quotas.connected(connection.principal)
        self._weigh_soon()
        credential = connection.credential
        self._unbind[connection.id] = self._revocations.bind(
            credential, partial(self._holds, credential), partial(self._turn_out, connection)
        )

    def _weigh_soon(self) -> None:
        if self._weighing is None and self._by_id and not self.ending:
            self._weighing = asyncio.get_running_loop().call_later(WEIGH_SECONDS, self._weigh)

    def _weigh(self) -> None:
        """Cut the connection that reads the least of a principal whose connections together leave too much unread."""
        self._weighing = None
        unread: dict[str, list[tuple[int, RemoteConnection]]] = {}
        for connection in self._by_id.values():
            unread.setdefault(connection.principal, []).append((connection.transport.unsent, connection))
        for weights in unread.values():
            if sum(size for size, _ in weights) > self._limits.bytes_out:
                _, heaviest = max(weights, key=lambda weighed: weighed[0])
                log.info("Connection %s ends: its principal reads too little", heaviest.id[:8])
                heaviest.cut(TRY_AGAIN, "Your connections together do not read what they are sent")
        self._weigh_soon()

    def _turn_out(self, connection: RemoteConnection) -> None:
        """End a connection whose token was removed (H6)."""
        log.info("Connection %s ends: its credential was revoked", connection.id[:8])
        self._kept.remove(connection.id)
        connection.cut(POLICY, "Your token was removed")

    async def _run(self, connection: RemoteConnection) -> None:
        try:
            await connection.client.run()
        finally:
            del self._by_id[connection.id]
            self._unbind.pop(connection.id)()
            if self._audit is not None:
                self._audit.record("disconnect", connection.principal, connection=connection.id[:8])
            if not self.ending:
                self._kept.remove(connection.id)
            self._quotas.disconnected(connection.principal)
            if (timer := self._expiry.pop(connection.id, None)) is not None:
                timer.cancel()

    def read_changed(self, connection: RemoteConnection) -> None:
        """Let a connection that nobody reads end after a while (H5)."""
        if connection.id not in self._by_id or connection.streams is None:
            return
        if (timer := self._expiry.pop(connection.id, None)) is not None:
            timer.cancel()
        connection.streams.forget_unread()
        if not connection.streams.is_read:
            loop = asyncio.get_running_loop()
            self._expiry[connection.id] = loop.call_later(self._limits.idle, self._expire, connection)

    def _expire(self, connection: RemoteConnection) -> None:
        self._expiry.pop(connection.id, None)
        if connection.streams is not None and not connection.streams.is_read:
            log.info("Connection %s ends: nobody reads it", connection.id[:8])
            connection.streams.end("nobody reads the streams of this connection")

    async def close_all(self) -> None:
        """End all connections, and wait until they have ended. Those over HTTP can go on after a restart."""
        self.ending = True
        if self._weighing is not None:
            self._weighing.cancel()
        for connection in list(self._by_id.values()):
            connection.client.peer.close()
        tasks = {each.task for each in self._by_id.values() if each.task is not None}
        if tasks:
            await asyncio.wait(tasks, timeout=LIMITS.end_grace + LIMITS.flush + 1.0)
