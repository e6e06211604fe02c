"""`SocketNeighbours`: links to other processes, each a peer on a socket.

Rules, then code:

- The first thing on a link is a greeting: both ends speak the same version of what goes over it, and where there is a
  secret (nodes on a network have one) both prove that they know it, without saying it. Whoever does not greet in
  time is cut off; so is everybody above a number.
- After that all messages are the business of the `LinkUser` at each end.
- When a process ends, it says so to all who have linked to it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import secrets
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import ConnectionLost, InvalidRequest, NeighbourLost, RemoteError
from holdfast.neighbours import sockets
from holdfast.peer import Peer, PeerLimits, Routes
from holdfast.transport.descriptors import PipeTransport

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from holdfast.engine import Link, LinkUser
    from holdfast.engine.relay.messages import Operation
    from holdfast.jsonrpc import Notification, Request

log: logging.Logger = logging.getLogger(__name__)

VERSION = 1
"""Of what goes over a link."""

GREETING_SECONDS = 4.0
"""So long a process may take to answer a greeting, or to send one."""

LINKS = 512
"""So many others may be linked to this process at once."""

LINE_BYTES = 64 << 20
"""An event is at most 12 MiB long, and its text is sent beside it."""

LIMITS = PeerLimits(linger=0.1, end_grace=0.1, flush=0.2)


def is_available() -> bool:
    """Return whether processes on this system can be linked."""
    return sys.platform != "win32"


class _Greeting(msgspec.Struct):
    version: int
    nonce: str = ""
    proof: str = ""


class SocketNeighbours:
    """The other processes on a store, over sockets; `address` is our own."""

    def __init__(self, address: str, *, secret: bytes | None = None) -> None:
        self._address = address
        self._secret = secret
        self._listening: socket.socket | None = None
        self._accept: Callable[[Link], LinkUser] | None = None
        self._accepted: set[PeerLink] = set()
        self._running: set[asyncio.Task[None]] = set()

    async def listen(self, accept: Callable[[Link], LinkUser]) -> None:
        """Let others reach this process. Where that cannot be it is logged: then sessions are taken over instead."""
        self._accept = accept
        try:
            self._listening = sockets.listen(self._address)
        except OSError as e:
            log.warning("Other processes cannot reach this one for its sessions: %s", e)
            return
        asyncio.get_running_loop().add_reader(self._listening.fileno(), self._accept_one)

    def _accept_one(self) -> None:
        assert self._listening is not None
        try:
            connected, _ = self._listening.accept()
        except OSError:
            return
        try:
            sockets.check_other_end(connected)
            if len(self._accepted) >= LINKS:
                raise PermissionError("too many are linked already")
        except OSError as e:
            log.warning("A process was not let in: %s", e)
            connected.close()
            return
        link = PeerLink(connected)
        self._accepted.add(link)
        self._run(self._welcome(link))

    async def _welcome(self, link: PeerLink) -> None:
        """Serve a link from its greeting to its end."""
        assert self._accept is not None
        accept, ours = self._accept, secrets.token_hex(16)
        greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def greet(greeting: _Greeting) -> _Greeting:
            if greeting.version != VERSION:
                raise InvalidRequest("This process has another version of Holdfast; end one of them and try again")
            if self._secret is None or hmac.compare_digest(greeting.proof, self._prove("client", ours, greeting.nonce)):
                if not greeted.done():
                    greeted.set_result(None)
                    link.use(accept(link))
                return _Greeting(VERSION, ours, self._prove("server", ours, greeting.nonce))
            if greeting.proof:
                link.close()
                raise InvalidRequest("The secret is not the same")
            return _Greeting(VERSION, ours)

        link.greet_with(greet)
        running = self._run(link.run())
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                await asyncio.wait({greeted, running}, return_when=asyncio.FIRST_COMPLETED)
            await running
        except TimeoutError:
            link.close()
            await running
        finally:
            self._accepted.discard(link)

    async def reach(self, address: str, user: Callable[[Link], LinkUser]) -> Link:
        """Open a link to a process; raise `NeighbourLost` where it cannot be reached, or does not answer."""
        link = PeerLink(await sockets.connect(address))
        self._run(link.run())
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                await self._greet(link)
        except (TimeoutError, RemoteError, ConnectionLost, msgspec.DecodeError) as e:
            link.close()
            says = e.message if isinstance(e, RemoteError) else "it does not answer"
            raise NeighbourLost(says, hangs=isinstance(e, TimeoutError)) from None
        except BaseException:
            link.close()
            raise
        link.use(user(link))
        return link

    async def _greet(self, link: PeerLink) -> None:
        mine = secrets.token_hex(16)
        answer = msgspec.json.decode(await link.request("hello", _Greeting(VERSION, mine)), type=_Greeting)
        if self._secret is None:
            return
        proof = self._prove("client", answer.nonce, mine)
        proven = msgspec.json.decode(await link.request("hello", _Greeting(VERSION, mine, proof)), type=_Greeting)
        if not hmac.compare_digest(proven.proof, self._prove("server", answer.nonce, mine)):
            raise NeighbourLost("it does not know the secret")

    def _prove(self, who: str, server_nonce: str, client_nonce: str) -> str:
        if self._secret is None:
            return ""
        return hmac.new(self._secret, f"{who}:{server_nonce}:{client_nonce}".encode(), "sha256").hexdigest()

    async def do(self, address: str, operation: Operation) -> None:
        """Have a process do something with a session; raise what it raised, or `NeighbourLost`."""
        await self.ask(address, "do", operation, operation.session)

    async def ask(self, address: str, method: str, params: object, session_id: str = "") -> msgspec.Raw:
        """Ask a process something on a link of its own; raise what it raised, or `NeighbourLost`."""
        from holdfast.engine.relay.messages import error_from  # noqa: PLC0415

        link = await self.reach(address, lambda _: _Nobody())
        try:
            return await link.request(method, params)
        except RemoteError as e:
            raise error_from((e.code, e.message, e.data), session_id) from None
        except ConnectionLost as e:
            raise NeighbourLost(str(e)) from None
        finally:
            link.close()

    def pack_servers(self, servers: Sequence[Any]) -> Any:
        """Return MCP servers as JSON values."""
        return [
            ["", server] if isinstance(server, dict) else [server.kind, msgspec.to_builtins(server)]
            for server in servers
        ]

    def unpack_servers(self, packed: Any) -> Sequence[Any]:
        """Return what `pack_servers` has packed."""
        if not packed:
            return ()
        from holdfast.mcp.servers import HttpServer, SseServer, StdioServer  # noqa: PLC0415  (not everybody has any)

        kinds: dict[str, Any] = {kind.kind: kind for kind in (HttpServer, SseServer, StdioServer)}
        return tuple(msgspec.convert(members, type=kinds[kind]) if kind else members for kind, members in packed)

    async def close(self, farewell: str = "") -> None:
        """Be reached no more; tell all who are linked the name of the client that leaves, and hang up."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening.fileno())
            sockets.stop_listening(self._listening, self._address)
            sockets.remove_left_over(self._address)
            self._listening = None
        for link in list(self._accepted):
            link.notify("left", farewell)
            link.close()
        if self._running:
            await asyncio.wait(self._running, timeout=LIMITS.linger + LIMITS.end_grace + LIMITS.flush)

    def _run(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name="link")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task


class PeerLink:
    """A link: a peer on a socket."""

    def __init__(self, connected: socket.socket) -> None:
        fd = connected.detach()
        routes = Routes(fallback=self._request)
        routes.notification_fallback = self._notification
        transport = PipeTransport(fd, os.dup(fd), limit=LINE_BYTES)
        self._peer = Peer(transport, routes, limits=LIMITS)
        self._peer.on_lost = self._lost
        self._user: LinkUser | None = None

    async def run(self) -> None:
        """Serve until the other side has hung up."""
        with suppress(ConnectionLost):
            await self._peer.run()

    def greet_with(self, greet: Callable[[_Greeting], Any]) -> None:
        """Answer greetings."""
        self._peer.routes.request("hello", greet, _Greeting)

    def use(self, user: LinkUser) -> None:
        """Give all messages from now on to somebody."""
        self._user = user
        if self._peer.has_ended:
            user.lost()

    @property
    def unsent(self) -> int:
        """How many bytes the other side has not read."""
        return self._peer.unsent

    async def drain(self) -> None:
        """Wait until it has read most of them."""
        await self._peer.drain()

    async def request(self, method: str, params: object) -> msgspec.Raw:
        """Send a request and return the answer."""
        return await self._peer.request(method, params)

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._peer.notify(method, params)

    def close(self) -> None:
        """Hang up."""
        self._peer.flush()
        self._peer.close()

    async def _request(self, request: Request) -> object:
        if self._user is None:
            raise InvalidRequest("A greeting comes first")
        return await self._user.requested(request.method, msgspec.Raw(request.params or b"null"))

    async def _notification(self, notification: Notification) -> None:
        if self._user is not None and not notification.method.startswith("$/"):
            await self._user.notified(notification.method, msgspec.Raw(notification.params or b"null"))

    def _lost(self, _: ConnectionLost) -> None:
        if self._user is not None:
            self._user.lost()


class _Nobody:
    """Is at our end of a link on which we only ask."""

    async def requested(self, method: str, params: msgspec.Raw) -> object:  # noqa: ARG002
        raise InvalidRequest(f"{method[:100]} is not for here")

    async def notified(self, method: str, params: msgspec.Raw) -> None: ...

    def lost(self) -> None: ...
