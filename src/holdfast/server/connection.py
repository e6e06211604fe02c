"""`Connection`: negotiates the version, then lets the dialect of that version speak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.errors import InvalidRequest, UnsupportedVersion
from holdfast.peer import Peer, Routes

if TYPE_CHECKING:
    from holdfast.jsonrpc import Request
    from holdfast.peer import PeerLimits
    from holdfast.server.host import Host
    from holdfast.transport import Transport


class _Initialize(msgspec.Struct, rename="camel"):
    """What every version's `initialize` has in common."""

    protocol_version: int
    client_capabilities: dict[str, Any] | None = None
    capabilities: dict[str, Any] | None = None


class Dialect(Protocol):
    """One protocol version, bound to one connection."""

    version: int

    def routes(self) -> Routes:
        """Give the methods it answers."""
        ...

    def introduction(self) -> object:
        """Answer `initialize`."""
        ...

    def leave(self) -> None:
        """Stop watching sessions: the client is gone."""
        ...


class Connection:
    """One client's connection to a host."""

    def __init__(self, host: Host, transport: Transport, *, limits: PeerLimits | None = None) -> None:
        self.host = host
        self.peer = Peer(transport, self._first_routes(), limits=limits)
        self._dialect: Dialect | None = None

    async def run(self) -> None:
        """Serve until the client is gone."""
        try:
            await self.peer.run()
        finally:
            if self._dialect is not None:
                self._dialect.leave()

    def _first_routes(self) -> Routes:
        routes = Routes(fallback=_not_yet)
        routes.request("initialize", self._initialize, _Initialize, ordered=True)
        return routes

    async def _initialize(self, params: _Initialize) -> object:
        version = self._negotiate(params.protocol_version)
        if self._dialect is None or self._dialect.version != version:
            if self._dialect is not None:
                self._dialect.leave()
            self._dialect = self._speak(version, params)
            routes = self._dialect.routes()
            routes.request("initialize", self._initialize, _Initialize, ordered=True)  # some send it twice (A6)
            self.peer.routes = routes
        return self._dialect.introduction()

    def _negotiate(self, asked: int) -> int:
        """Choose the highest version that both sides speak (A7, A8)."""
        spoken = [it for it in self.host.versions if it <= asked]
        if spoken:
            return max(spoken)
        if self.host.versions == (2,) or asked < 1:
            supported = list(self.host.versions)
            raise UnsupportedVersion(
                f"This agent does not speak protocol version {asked}", {"requested": asked, "supported": supported}
            )
        return 1

    def _speak(self, version: int, params: _Initialize) -> Dialect:
        # Only the version that is spoken is loaded.
        if version == 1:
            from holdfast.server.v1 import Version1  # noqa: PLC0415

            return Version1(self.host, self.peer, params.client_capabilities or {})
        from holdfast.server.v2 import Version2  # noqa: PLC0415

        return Version2(self.host, self.peer, params.capabilities or {})


async def _not_yet(request: Request) -> object:
    raise InvalidRequest(f"{request.method[:100]} came before initialize")
