"""`PeerNeighbours`: links to other processes, each a peer on a socket or, between nodes, on a WebSocket.

Rules, then code:

- Who may open a link is decided before: by the user of the process at the other end of a socket (`sockets`), by a
  secret that nodes prove to know (`node_secret`).
- The first thing on a link is a greeting: both ends speak the same version of what goes over it. Whoever does not greet
  in time is cut off; so is everybody above a number.
- After that all messages are the business of the `LinkUser` at each end.
- When a process ends, it says so to all who have linked to it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.cluster import sockets
from holdfast.errors import ConnectionLost, InvalidRequest, NeighbourLost, RemoteError
from holdfast.peer import Peer, PeerLimits, Routes

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from holdfast.cluster.node_secret import NodeSecret
    from holdfast.engine import Link, LinkUser
    from holdfast.engine.cluster import SentRequest
    from holdfast.engine.relay.messages import Operation
    from holdfast.jsonrpc import Notification, Request
    from holdfast.transport import Transport

log: logging.Logger = logging.getLogger(__name__)

VERSION = 1
"""Of what goes over a link."""

GREETING_SECONDS = 4.0
"""So long a process may take to answer a greeting, or to send one."""

LIFE_SECONDS = 8.0
"""So long one that has greeted may be busy when it is asked for a sign of life."""

LOOKS = 8
"""So often it is looked meanwhile whether the answer is there: while this process was stopped nobody could."""

LINKS = 512
"""So many links others may have to this process at once; to a node, ten times as many."""

LIMITS = PeerLimits(linger=0.1, end_grace=0.1, flush=0.2)


def is_available() -> bool:
    """Return whether processes on one machine can be linked on this system."""
    return sys.platform != "win32"


class _Greeting(msgspec.Struct):
    version: int


class PeerNeighbours:
    """The other processes on a store."""

    def __init__(self, address: str = "", *, secret: NodeSecret | None = None, name: str = "") -> None:
        """Be reached at `address`: ``unix:PATH``, or the URL of a node, whose HTTP server then calls `serve`.

        Without an address nobody reaches this process, and it reaches others. Nodes are reached with their `secret`.
        """
        self.name: str = name
        """What people call this process; empty where the name of its client says more."""
        self._address = address
        self._secret = secret
        self._listening: socket.socket | None = None
        self._accept: Callable[[Link], LinkUser] | None = None
        self._accepted: set[PeerLink] = set()
        self._running: set[asyncio.Task[None]] = set()

    async def listen(self, accept: Callable[[Link], LinkUser]) -> None:
        """Let others reach this process. Where that cannot be it is logged: then sessions are taken over instead."""
        self._accept = accept
        if not self._address.startswith(sockets.UNIX):
            return
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
            if not self.has_room:
                raise PermissionError("too many are linked already")
        except OSError as e:
            log.warning("A process was not let in: %s", e)
            connected.close()
            return
        self._run(self.serve(sockets.as_transport(connected)))

    @property
    def has_room(self) -> bool:
        """Whether another link may be opened to this process."""
        return len(self._accepted) < (LINKS if self._listening is not None else 10 * LINKS)

    async def serve(self, transport: Transport) -> None:
        """Serve a link that another process has opened, from its greeting to its end."""
        accept = self._accept
        if accept is None:
            await transport.close(0)
            return
        link = PeerLink(transport)
        greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def greet(greeting: _Greeting) -> _Greeting:
            if greeting.version != VERSION:
                raise InvalidRequest("This process has another version of Holdfast; end one of them and try again")
            if not greeted.done():
                greeted.set_result(None)
                link.use(accept(link))
            return _Greeting(VERSION)

        link.greet_with(greet)
        self._accepted.add(link)
        running = self._run(link.run())
        try:
            await asyncio.wait({greeted, running}, timeout=GREETING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not greeted.done():
                link.close()
            await running
        finally:
            self._accepted.discard(link)

    async def reach(self, address: str, user: Callable[[Link], LinkUser]) -> Link:
        """Open a link to a process; raise `NeighbourLost` where it cannot be reached, or does not answer.

        An owner with our own address is gone: it was started there before us. Whoever asks itself waits for ever.
        """
        if address == self._address:
            raise NeighbourLost("it has ended, and was started anew")
        link = PeerLink(await self._connect(address))
        self._run(link.run())
        try:
            await link.greet(GREETING_SECONDS)
        except (TimeoutError, RemoteError, ConnectionLost, msgspec.DecodeError) as e:
            link.close()
            says = e.message if isinstance(e, RemoteError) else "it does not answer"
            raise NeighbourLost(says, hangs=isinstance(e, TimeoutError)) from None
        except BaseException:
            link.close()
            raise
        link.use(user(link))
        return link

    async def _connect(self, address: str) -> Transport:
        if address.startswith(sockets.UNIX):
            return sockets.as_transport(await sockets.connect(address))
        from holdfast.cluster import node_links  # noqa: PLC0415  (not everybody has a network)

        return await node_links.connect(address, self._secret)

    async def do(self, address: str, operation: Operation) -> None:
        """Have a process do something with a session; raise what it raised, or `NeighbourLost`."""
        await self.ask(address, "do", operation, operation.session)

    async def ask(self, address: str, method: str, params: object, session_id: str = "") -> msgspec.Raw:
        """Ask a process something on a link of its own; raise what it raised, or `NeighbourLost`.

        One that gives no sign of life meanwhile is lost.
        """
        from holdfast.engine.cluster import while_alive  # noqa: PLC0415
        from holdfast.engine.relay.messages import error_from  # noqa: PLC0415

        link = await self.reach(address, lambda _: _Nobody())
        try:
            return await while_alive(link, link.request(method, params))
        except RemoteError as e:
            raise error_from((e.code, e.message, e.data), session_id) from None
        except NeighbourLost:
            raise
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
        self._accept = None
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
    """A link: a peer on a transport."""

    def __init__(self, transport: Transport) -> None:
        routes = Routes(fallback=self._request)
        routes.notification_fallback = self._notification
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

    async def greet(self, within: float) -> None:
        """Greet; raise `TimeoutError` where that is not answered within so many seconds in which this process ran."""
        greeting = asyncio.get_running_loop().create_task(self._peer.request("hello", _Greeting(VERSION)))
        try:
            for _ in range(LOOKS):
                await asyncio.wait({greeting}, timeout=within / LOOKS)
                if greeting.done():
                    greeting.result()
                    return
        finally:
            greeting.cancel()
        raise TimeoutError

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

    def send_request(self, method: str, params: object) -> SentRequest:
        """Send a request now; its answer is waited for later."""
        return self._peer.send_request(method, params)

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._peer.notify(method, params)

    async def is_alive(self) -> bool:
        """Greet once more; return whether that was answered in time."""
        try:
            await self.greet(LIFE_SECONDS)
        except (TimeoutError, RemoteError, ConnectionLost):
            return False
        return True

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
