"""`RemoteServer`: the ASGI application. It lets in whom it should, and gives messages to connections and back.

Rules, then code:

- Before anything else: the `Host` and `Origin` are ours, somebody is known to ask, and asks not too often (H6).
- ``/acp`` takes WebSockets (H1), POST, GET and DELETE (H2).
- ``/healthz``, ``/readyz`` and ``/metrics`` tell how it is (H8).
- ``/link/…`` signs in a browser, once; a POST to ``/link`` makes such a link for the principal of a token.
- A POST to ``/sign-in``, which has a form for a token, signs in a browser too.
- ``/holdfast/node`` is for the other nodes on a PostgreSQL store, if this is one.
- ``/share/…`` goes to the application for shared sessions, if there is one: whoever has such a link need not sign in.
- All other paths go to the application for pages, if there is one; ``scope["holdfast.principal"]`` tells it who asks,
  ``scope["holdfast.credential"]`` by what, and ``scope["holdfast.access"]`` what they may use of this machine.
- All that is open ends with the credential it was let in with (F3). What is shared binds itself to its link, by
  ``scope["holdfast.bound"]`` and ``scope["holdfast.holds"]``.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from holdfast.errors import RequestError
from holdfast.model import Position
from holdfast.server.positions import SeenUpTo
from holdfast.server.remote.acp_streams import read_incoming
from holdfast.server.remote.arrivals import comes_from_another_page, let_in
from holdfast.server.remote.authentication import Credential, Everybody
from holdfast.server.remote.connections import Connections
from holdfast.server.remote.credentials import Credentials
from holdfast.server.remote.event_streams import serve_events
from holdfast.server.remote.kept_connections import KeptConnections
from holdfast.server.remote.limits import Hold, Quotas, RemoteLimits
from holdfast.server.remote.metrics import Metrics
from holdfast.server.remote.node_entrance import NodeEntrance
from holdfast.server.remote.requests import (
    Refusal,
    declared_length,
    is_page_wanted,
    read_body,
    refuse,
    request_from,
    respond,
    too_much,
)
from holdfast.server.remote.revocation import Revocations, RevokedError
from holdfast.server.remote.sign_in import SignIn, address_of, cookie_name, how_to_get_a_link
from holdfast.server.remote.small_pages import (
    LONGEST_FORM,
    SIGN_IN,
    path_of,
    read_form,
    refusal_page,
    sign_in_page,
)
from holdfast.server.remote.workspaces import Workspaces
from holdfast.transport.asgi_websocket import AsgiWebSocketTransport
from holdfast.transport.lines import Oversized
from holdfast.transport.websocket_frames import POLICY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from holdfast.server.access import Access
    from holdfast.server.audit import AuditLog
    from holdfast.server.host import Host
    from holdfast.server.remote.acp_streams import Incoming
    from holdfast.server.remote.authentication import Authenticator
    from holdfast.server.remote.connections import RemoteConnection, RemoteTransport
    from holdfast.server.remote.door import Door
    from holdfast.server.remote.names import Names
    from holdfast.server.remote.requests import Receive, RemoteRequest, Scope, Send
    from holdfast.server.remote.small_pages import SmallPage

    Page: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

log: logging.Logger = logging.getLogger(__name__)

CONNECTION_ID, SESSION_ID = "acp-connection-id", "acp-session-id"

SUBPROTOCOL = "acp.v1"
"""What is echoed to a WebSocket that offers it."""

DIRECT = "holdfast.direct"
"""The extension that our own uvicorn puts into the scope; see `holdfast.server.remote.direct`."""

NO_PAGE = "This server shows a page only with `serve --web`. Open the link that it prints then"

FORM = "application/x-www-form-urlencoded"

CLOSE_SECONDS = 0.2
"""So long a page that is revoked may take to be told why its feed ends."""

POSTS = 64
"""So many POSTs of one connection may be on their way at once."""


class RemoteServer:
    """An agent that can be reached over WebSocket and HTTP: an ASGI application."""

    def __init__(
        self,
        host: Host,
        *,
        names: Names,
        authenticator: Authenticator | None = None,
        sign_in: SignIn | None = None,
        limits: RemoteLimits | None = None,
        path: str = "/acp",
        pages: Page | None = None,
        shared: Page | None = None,
        keep: Path | None = None,
        workspaces: Workspaces | None = None,
        programs: bool = False,
        on_close: Callable[[], Awaitable[None]] | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        """Serve a host.

        `names` says under which names it may be asked. Without an `authenticator` everybody is let in as the user of
        this machine. `pages` is an ASGI application for all paths that are not ours, `shared` one for ``/share/…``, and
        `on_close` ends them. In the directory `keep` connections over HTTP are kept, so that their ids are known after
        a restart. `workspaces` says who may work in which directories; without it the user of this machine may work
        anywhere, and nobody else at all. `programs` says that MCP servers which are programs may be named by those
        who may not work anywhere. `audit` is where it is noted who did what.
        """
        self.host = host
        self.path = path
        self.limits: RemoteLimits = limits or RemoteLimits()
        self.names = names
        self.authenticator: Authenticator | Everybody = authenticator or Everybody()
        self.credentials: Credentials = Credentials(self.authenticator)
        self.revocations: Revocations = Revocations()
        self.sign_in: SignIn = sign_in or SignIn()
        self.metrics: Metrics = Metrics()
        self.quotas: Quotas = Quotas(self.limits, time.monotonic)
        self.workspaces: Workspaces = workspaces or Workspaces()
        self._programs = programs
        self.audit: AuditLog | None = audit
        self.connections: Connections = Connections(
            host, self.limits, self.quotas, KeptConnections(keep), self._access_of, audit, self.credentials.hold,
            self.revocations,
        )  # fmt: skip
        self.door: Door | None = None
        """Where its sockets come in, on our own uvicorn."""
        self.draining: bool = False
        """Whether it is about to end: it takes no new connections and turns (H8)."""
        self._pages = pages
        self._shared = shared
        self._on_close = on_close
        self._nodes = NodeEntrance(host)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, grace: float = 0.0) -> None:
        """Take no new turns, give running ones `grace` seconds, end all connections, let go of the store (H8)."""
        self.draining = True
        await self.host.drain(grace)
        if self._on_close is not None:
            await self._on_close()
        await self.connections.close_all()
        self.revocations.close()
        await self.host.shut_down(1.0)
        if self.audit is not None:
            self.audit.close()

    # The application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or serve a WebSocket."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        websocket = scope["type"] == "websocket"
        status = _Status(send)
        try:
            request = request_from(scope)
            await self._answer(request, scope, receive, status)
        except Refusal as e:
            await refuse(status, e, websocket=websocket, page=self._page_for(e, scope))
        except RevokedError:
            await self._end_revoked(status, scope, websocket=websocket)
        finally:
            self.metrics.requests["WEBSOCKET" if websocket else scope["method"][:10], status.code] += 1

    def _page_for(self, refusal: Refusal, scope: Scope) -> SmallPage | None:
        """Return what a person at a browser is shown: why there is nothing else, or how to sign in."""
        if not is_page_wanted(scope):
            return None
        if refusal.status == 401 and self._pages is None:
            return refusal_page(401, NO_PAGE)
        if refusal.status == 401:
            return sign_in_page(scope, address_of(request_from(scope)), to=path_of(scope))
        return refusal_page(refusal.status, refusal.message)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, request: RemoteRequest, scope: Scope, receive: Receive, send: Send) -> None:
        if request.method in ("GET", "HEAD") and request.path in ("/healthz", "/readyz"):
            await self._health(request, send)
            return
        if request.path == self._nodes.path and self.host.node is not None:
            await self._nodes.serve(request, _direct(scope), receive, send)
            return
        try:
            self.names.check(request)
        except Refusal as e:
            self._note_refusal("host", request, e)
            raise
        if self._shared is not None and request.method in ("GET", "HEAD") and request.path.startswith("/share/"):
            told = {"holdfast.bound": self.revocations.bound, "holdfast.holds": self._holds}
            await self._shared({**scope, **told}, receive, send)
            return
        if comes_from_another_page(request) and (self._pages is not None or request.path.startswith("/link/")):
            await let_in(request, send)
            return
        if request.method == "GET" and request.path.startswith("/link/"):
            await self._use_link(request, send)
            return
        if request.method == "POST" and request.path == SIGN_IN and self._pages is not None:
            await self._sign_in(request, scope, receive, send)
            return
        credential = await self._who(request, scope)
        if request.path == self.path and request.method == "WEBSOCKET":
            await self._websocket(request, credential, scope, receive, send)
            return
        async with self.revocations.bound(credential, lambda: self.credentials.hold(credential)):
            await self._answer_to(credential, request, scope, receive, send)

    async def _answer_to(
        self, credential: Credential, request: RemoteRequest, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer somebody who is let in, as long as he is."""
        principal = credential.principal
        if request.path == self.path:
            await self._serve(request, credential, scope, receive, send)
        elif request.path == "/metrics" and request.method == "GET":
            text = self.metrics.text(self._gauges()).encode()
            await respond(send, 200, text, [("content-type", "text/plain; version=0.0.4")])
        elif request.path == "/link" and request.method == "POST":
            await self._new_link(request, credential, send)
        elif self._pages is not None:
            told = {"holdfast.principal": principal, "holdfast.credential": credential.id}
            asked = {**scope, **told, "holdfast.access": self._access_of(principal)}
            self._note_page(request, principal)
            await self._page(self._pages, request, principal, asked, receive, send)
        else:
            raise Refusal(404, f"The agent is at {self.path}, and a page would be here with `serve --web`")

    async def _page(
        self, pages: Page, request: RemoteRequest, principal: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Let the pages answer, within what a principal may take: feeds are connections, and bodies are bodies."""
        if request.method == "WEBSOCKET":
            self._check_open(principal)
            self.quotas.connected(principal)
            try:
                await pages(scope, receive, send)
            finally:
                self.quotas.disconnected(principal)
        elif request.method in ("GET", "HEAD"):
            await pages(scope, receive, send)
        else:
            with Hold(self.quotas, principal) as hold:
                body = await self._body(request, receive, hold)
                await pages(scope, _once(body, receive), send)

    async def _serve(
        self, request: RemoteRequest, credential: Credential, scope: Scope, receive: Receive, send: Send
    ) -> None:
        match request.method:
            case "POST":
                await self._post(request, credential, receive, send)
            case "GET":
                await self._get(request, credential, scope, receive, send)
            case "DELETE":
                connection = await self.connections.find(request.headers.get(CONNECTION_ID), credential)
                assert connection.streams is not None
                connection.streams.end()
                await respond(send, 202)
            case _:
                raise Refusal(405, "Use POST, GET, DELETE or a WebSocket", {"allow": "GET, POST, DELETE"})

    # Who asks

    async def _who(self, request: RemoteRequest, scope: Scope) -> Credential:
        """Return by what a request is let in; raise `Refusal` before anything else is done for it (H6)."""
        credential = await self.credentials.of(request)
        if credential is None and (cookie := request.cookie(cookie_name(request))) is not None:
            credential = self.sign_in.credential_of(cookie)
            if credential is not None and not self.credentials.hold(credential):
                credential = None
            browser = request.method not in ("GET", "HEAD")
            if credential is not None and browser and "origin" not in request.headers:
                raise Refusal(403, "A browser says which page asks; this request does not")
        if credential is None:
            wanted = "Send a token: Authorization: Bearer …"
            why = wanted if request.bearer is None else "This token is not known here; was it removed?"
            refusal = Refusal(401, why, {"www-authenticate": 'Bearer realm="holdfast"'})
            self._note_refusal("token", request, refusal)
            raise refusal
        self._admit(credential, scope)
        return credential

    def _admit(self, credential: Credential, scope: Scope) -> None:
        """Refuse a principal that asks too often, or has too many connections."""
        if not self.quotas.may_ask(credential.principal):
            self.metrics.refused["rate"] += 1
            raise Refusal(429, "Too many requests; wait a moment", {"retry-after": "1"})
        direct = _direct(scope)
        if direct is not None and not direct.claim(credential.principal):
            self.metrics.refused["sockets"] += 1
            why = "You have too many connections to this server; close some"
            raise Refusal(429, why, {"retry-after": "5", "connection": "close"})

    def _holds(self, principal: str, credential: str) -> bool:
        """Return whether a credential that was noted somewhere still holds."""
        return self.credentials.hold(Credential(principal, credential))

    async def _end_revoked(self, status: _Status, scope: Scope, *, websocket: bool) -> None:
        """End what was open when its credential was revoked; a reader that does not read is cut off."""
        if not status.begun:
            refusal = Refusal(401, "This token is not known here; was it removed?")
            await refuse(status, refusal, websocket=websocket, page=self._page_for(refusal, scope))
            return
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_SECONDS):
                if websocket:
                    await status({"type": "websocket.close", "code": POLICY, "reason": "Your token was removed"})
                    return
        if (direct := _direct(scope)) is not None:
            direct.abort()
            await asyncio.sleep(0)  # the server hears of it before it sees an answer that is not complete

    def _note_refusal(self, why: str, request: RemoteRequest, refusal: Refusal) -> None:
        self.metrics.refused[why] += 1
        if self.audit is not None:
            self.audit.refuse(why, status=refusal.status, address=request.client)

    def _note_page(self, request: RemoteRequest, principal: str) -> None:
        """Note what somebody does with the page, and which session is read there (H11)."""
        _, kind, *named = request.path.split("/")
        reads = request.method == "GET" and kind == "sessions" and len(named) == 1
        if self.audit is not None and (reads or request.method not in ("GET", "HEAD", "WEBSOCKET")):
            session = named[0] if kind == "sessions" and named else None
            self.audit.record("page", principal, method=request.method, path=request.path, session=session)

    def _access_of(self, principal: str) -> Access:
        """Return what a principal may use of this machine (H10)."""
        return self.workspaces.access(principal, programs=self._programs)

    async def _use_link(self, request: RemoteRequest, send: Send) -> None:
        credential = self.sign_in.use_link(request.path.removeprefix("/link/"))
        if credential is not None and not self.credentials.hold(credential):
            credential = None
        if self.audit is not None:
            principal = None if credential is None else credential.principal
            self.audit.record("link", principal, used=credential is not None)
        if credential is None:
            raise Refusal(403, f"This link was used before, or is too old; {how_to_get_a_link(request)}")
        await self._signed_in(request, credential, "../", send)

    async def _signed_in(self, request: RemoteRequest, credential: Credential, to: str, send: Send) -> None:
        """Give a browser its cookie, and lead it on."""
        cookie = self.sign_in.cookie_for(credential, secure=request.secure, name=cookie_name(request))
        headers = [("set-cookie", cookie), ("location", to), ("cache-control", "no-store"),
                   ("referrer-policy", "no-referrer")]  # fmt: skip
        await respond(send, 303, b"", headers)

    async def _sign_in(self, request: RemoteRequest, scope: Scope, receive: Receive, send: Send) -> None:
        """Sign in a browser by the token that its user has typed into our form."""
        if "origin" not in request.headers:  # another page must not sign anybody in; `names` has looked at its value
            raise Refusal(403, "A browser says which page asks; this request does not")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            raise Refusal(415, f"Send {FORM}")
        declared_length(request, LONGEST_FORM)
        form = read_form(await read_body(receive, LONGEST_FORM, self.limits.body_seconds))
        credential = await self._by_token(request, form.token)
        if self.audit is not None and credential is not None:
            self.audit.record("sign-in", credential.principal)
        if credential is None:
            trouble = "This token is not known here. Was it copied whole, and not removed since?"
            refusal = Refusal(401, trouble, {"www-authenticate": 'Bearer realm="holdfast"'})
            self._note_refusal("token", request, refusal)
            await refuse(send, refusal, page=sign_in_page(scope, address_of(request), to=form.to, trouble=trouble))
            return
        self._admit(credential, scope)
        await self._signed_in(request, credential, (scope.get("root_path") or "") + form.to, send)

    async def _by_token(self, request: RemoteRequest, token: str) -> Credential | None:
        """Return what a token alone is a credential for: a cookie must not outlive what a proxy says in its headers."""
        shown = {"host": request.headers.get("host", ""), "authorization": f"Bearer {token}"}
        return await self.credentials.of(request._replace(headers=shown, subprotocols=()))

    async def _new_link(self, request: RemoteRequest, credential: Credential, send: Send) -> None:
        """Make a link for a principal, which shows it with the token: a cookie alone makes no other."""
        if request.bearer is None or await self._by_token(request, request.bearer) != credential:
            raise Refusal(403, "A link is made with a token, and not with the cookie of a browser")
        if self.audit is not None:
            self.audit.record("link", credential.principal, made=True)
        body = msgspec.json.encode({"link": self.sign_in.new_link(credential)})
        await respond(send, 200, body, [("content-type", "application/json"), ("cache-control", "no-store")])

    # Over a WebSocket, as H1 has it

    async def _websocket(
        self, request: RemoteRequest, credential: Credential, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._check_open(credential.principal)
        await receive()  # the handshake
        subprotocol = SUBPROTOCOL if SUBPROTOCOL in request.subprotocols else None
        accept: dict[str, Any] = {"type": "websocket.accept", "subprotocol": subprotocol}
        connection_id = secrets.token_urlsafe(24)
        await send({**accept, "headers": [(CONNECTION_ID.encode(), connection_id.encode())]})
        with Hold(self.quotas, credential.principal) as hold:
            transport = self._websocket_transport(scope, receive, send, hold)
            connection = self.connections.new_websocket(transport, credential, connection_id)
            self.metrics.opened["websocket"] += 1
            await self.connections.run_websocket(connection)

    def _websocket_transport(self, scope: Scope, receive: Receive, send: Send, hold: Hold) -> RemoteTransport:
        direct = _direct(scope)
        if direct is None:
            return AsgiWebSocketTransport(receive, send, limit=self.limits.message)
        limits = self.limits
        return direct.take_over(limit=limits.message, ping=limits.ping, pong=limits.pong, hold=hold.up_to)

    def _check_open(self, principal: str) -> None:
        if self.draining:
            raise Refusal(503, "The server is about to end; try again in a moment", {"retry-after": "5"})
        try:
            self.connections.check_room(principal)
        except Refusal:
            self.metrics.refused["connections"] += 1
            raise

    # Over HTTP, as H2 has it

    async def _post(self, request: RemoteRequest, credential: Credential, receive: Receive, send: Send) -> None:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "Send application/json")
        connection_id = request.headers.get(CONNECTION_ID)
        connection = None if connection_id is None else await self.connections.find(connection_id, credential)
        with Hold(self.quotas, credential.principal) as hold:
            body = await self._body(request, receive, hold)
            await self._take_message(request, connection, credential, body, send)

    async def _body(self, request: RemoteRequest, receive: Receive, hold: Hold) -> bytes:
        """Read the body of a request as soon as there is room for it among those on their way."""
        length, patience = declared_length(request, 2 * self.limits.message), self.limits.body_seconds
        if not await hold.when_there_is_room(length, patience):
            self.metrics.refused["bytes"] += 1
            raise too_much()
        return await read_body(receive, 2 * self.limits.message, patience, lambda size: hold.up_to(max(size, length)))

    async def _take_message(
        self,
        request: RemoteRequest,
        connection: RemoteConnection | None,
        credential: Credential,
        body: bytes,
        send: Send,
    ) -> None:
        if len(body) > self.limits.message:
            if connection is not None:
                await connection.streams_of.transport.deliver(Oversized.of(body, self.limits.message))
            raise Refusal(413, f"The message is too long; at most {self.limits.message} bytes")
        message = read_incoming(body)
        if message.method == "initialize" and message.id is not None:
            await self._initialize(connection, credential, message, body, send)
            return
        if connection is None:
            raise Refusal(400, "The header Acp-Connection-Id is missing; the answer to initialize names it")
        self._check_session(request, message)
        await self._deliver(connection, message, body)
        await respond(send, 202)

    def _check_session(self, request: RemoteRequest, message: Incoming) -> None:
        named, in_body = request.headers.get(SESSION_ID), message.session_id
        if named is not None and in_body is not None and named != in_body:
            raise Refusal(400, "Acp-Session-Id and the message name two sessions")

    async def _deliver(self, connection: RemoteConnection, message: Incoming, body: bytes) -> None:
        streams = connection.streams_of
        if connection.posts >= POSTS:
            raise Refusal(429, "Too many requests at once; wait for those before", {"retry-after": "1"})
        streams.expect(message)
        connection.posts += 1
        try:
            if not await streams.transport.deliver(body):
                raise Refusal(404, "This connection has ended; send initialize again")
        finally:
            connection.posts -= 1

    async def _initialize(
        self, connection: RemoteConnection | None, credential: Credential, message: Incoming, body: bytes, send: Send
    ) -> None:
        assert message.id is not None
        if connection is None:
            self._check_open(credential.principal)
            connection = self.connections.open_http(credential)
            self.metrics.opened["http"] += 1
        streams = connection.streams_of
        answer = streams.expect_initialize(message.id)
        if not await streams.transport.deliver(body):
            raise Refusal(404, "This connection has ended; send initialize again")
        try:
            encoded = await answer
        except asyncio.CancelledError:
            if not answer.cancelled():
                raise
            raise Refusal(503, "The connection has ended; send initialize again") from None
        self.connections.begun(connection, body)
        headers = [("content-type", "application/json"), (CONNECTION_ID, connection.id), ("cache-control", "no-store")]
        await respond(send, 200, encoded, headers)

    async def _get(
        self, request: RemoteRequest, credential: Credential, scope: Scope, receive: Receive, send: Send
    ) -> None:
        accepts = request.headers.get("accept", "*/*")
        if "text/event-stream" not in accepts and "*/*" not in accepts:
            raise Refusal(406, "Accept text/event-stream")
        connection = await self.connections.find(request.headers.get(CONNECTION_ID), credential)
        streams = connection.streams_of
        session_id = request.headers.get(SESSION_ID)
        stream = streams.connection if session_id is None else streams.session_stream(session_id)
        last_event_id = request.headers.get("last-event-id")
        if not stream.read_from(last_event_id):
            await self._resume(connection, session_id, last_event_id or "")
        direct = _direct(scope)
        serving = serve_events(stream, receive, send, abort=None if direct is None else direct.abort)
        try:
            self.connections.read_changed(connection)
            await serving
        finally:
            self.connections.read_changed(connection)

    async def _resume(self, connection: RemoteConnection, session_id: str | None, last_event_id: str) -> None:
        """Let a stream go on behind an event that is not here any more: from the session's journal (H4)."""
        position_text, _, frame = last_event_id.rpartition(".")
        position = Position.parse(position_text)
        if session_id is None or position is None or not frame.isdecimal():
            raise Refusal(409, "What came after that event is not kept; load the session again")
        try:
            await connection.client.resume_at(session_id, SeenUpTo(position, int(frame)))
        except RequestError as e:
            raise Refusal(409, e.message) from None
        self.metrics.resumed["journal"] += 1

    # How it is (H8)

    async def _health(self, request: RemoteRequest, send: Send) -> None:
        ready = request.path == "/healthz" or not self.draining
        body = b"" if request.method == "HEAD" else (b"ok\n" if ready else b"draining\n")
        await respond(send, 200 if ready else 503, body, [("content-type", "text/plain")])

    def _gauges(self) -> dict[str, dict[str, float]]:
        engine = self.host.opened
        sessions, turns = (0, 0) if engine is None else engine.load()
        return {
            "holdfast_connections": self.connections.count(),
            "holdfast_sessions": {"": sessions},
            "holdfast_turns": {"": turns},
            "holdfast_unsent_bytes": {"": self.connections.unsent},
            "holdfast_draining": {"": float(self.draining)},
            **({} if self.door is None else {"holdfast_sockets": self.door.count()}),
        }


def _direct(scope: Scope) -> Any:
    """Return the extension that our own uvicorn puts into the scope, if it is there."""
    extensions: dict[str, Any] = scope.get("extensions") or {}
    return extensions.get(DIRECT)


def _once(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read already, and then what else comes."""
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class _Status:
    """Passes on what is sent, and keeps the status."""

    __slots__ = ("_send", "begun", "code")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.code = 101
        self.begun = False  # whether anything was sent

    async def __call__(self, message: Any) -> None:
        self.begun = True
        if "status" in message:
            self.code = message["status"]
        await self._send(message)
