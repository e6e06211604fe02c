"""Under which names a server may be asked, and from which pages: the `Host` and `Origin` of a request (H6).

A page of somebody else that gets a browser to ask us under a name of its own (DNS rebinding) is refused, because we are
not called that. An address in numbers cannot be made to point anywhere else, and so may be one. A page at such an
address is ours only where we were asked under that address: anybody may have a page at an address of his own.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.server.remote.arrivals import comes_from_another_page
from holdfast.server.remote.requests import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.server.remote.requests import RemoteRequest

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Names:
    """The names a server answers to."""

    def __init__(self, hosts: Iterable[str], origins: Iterable[str] = (), *, addresses: int | None = None) -> None:
        """`hosts` are values of `Host`, with the port where it is not the usual one; `origins` other pages' origins.

        `addresses` is a port: any address in numbers is then a name as well, with that port.
        """
        self.hosts: frozenset[str] = frozenset(host.lower() for host in hosts)
        self.origins: frozenset[str] = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._port = addresses

    def check(self, request: RemoteRequest) -> None:
        """Raise `Refusal` for a request that was made under another name, or by a page that is not ours."""
        host = request.headers.get("host", "").lower()
        if not self._is_ours(host):
            raise Refusal(403, f"This server is not called {host[:100]!r}; start it with --name, or use its own name")
        origin = request.headers.get("origin")
        if origin is not None and not self._may_ask(origin.lower(), host, secure=request.secure):
            raise Refusal(403, f"Pages of {origin[:100]!r} may not use this server; start it with --origin to let them")
        is_foreign = request.headers.get("sec-fetch-site") in ("cross-site", "same-site") and origin is None
        if is_foreign and not comes_from_another_page(request):
            raise Refusal(403, "Other pages may not use this server")

    def _is_ours(self, host: str) -> bool:
        return host in self.hosts or (self._port is not None and _is_address(host, self._port))

    def _may_ask(self, origin: str, asked_under: str, *, secure: bool) -> bool:
        """Whether scripts of a page may use the server: of one that was named to it, or of its own."""
        scheme, _, host = origin.partition("://")
        # Where the server has TLS itself its pages have it too; otherwise a proxy in front of it may.
        is_own = scheme == "https" or (scheme == "http" and not secure)
        return origin in self.origins or (is_own and (host == asked_under or host in self.hosts))


def names_for(address: str, port: int, names: Iterable[str] = (), origins: Iterable[str] = ()) -> Names:
    """Return the names of a server that listens at an address: the loopback ones, its own, and those it was given."""
    import socket  # noqa: PLC0415  (asked for once, at the start)

    hosts = [*LOOPBACK, address]
    everywhere = not is_loopback(address)
    if everywhere:
        hosts += [socket.gethostname(), socket.getfqdn()]
    with_port = [f"{host}:{port}" for host in hosts]
    usual = hosts if port in (80, 443) else []
    return Names([*with_port, *usual, *names], origins, addresses=port if everywhere else None)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_address(host: str, port: int) -> bool:
    try:
        parts = urlsplit(f"//{host}")
        ipaddress.ip_address(parts.hostname or "")
    except ValueError:
        return False
    return parts.port == port or (parts.port is None and port in (80, 443))
