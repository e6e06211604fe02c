"""The door: takes the sockets that come in, knows whose each is, and keeps some for those who are signed in (H6).

A process has only so many descriptors. A socket on which no token was shown yet is a stranger's. Strangers together
hold a small part of the descriptors; when it is used up, the oldest socket of the network that holds the most of it is
closed for the next one. So connections that say nothing keep nobody out. A socket on which a principal has shown a
token is the principal's. Each principal may hold a part, and when all is used up the one that holds the most gives
some back.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable

log: logging.Logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 15.0
"""A handshake of TLS may take so long."""

RETRY_SECONDS = 0.05
"""Where the system has no descriptor for another socket, one is asked for again after this time."""

NODES = "\0nodes"
"""Who other nodes are at the door; no principal is called that."""


class DoorLimits(NamedTuple):
    """How many sockets may be open at once."""

    strangers: int
    """Of those who have not shown a token."""
    each: int
    """Of one principal."""
    principals: int
    """Of all principals together."""


def door_limits() -> DoorLimits:
    """Return limits that leave a quarter of the process's descriptors to the sessions and agents."""
    files = 65_536
    if sys.platform != "win32":
        import resource  # noqa: PLC0415  (there is none on Windows)

        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        files = files if soft == resource.RLIM_INFINITY else soft
    return DoorLimits(max(8, min(1_024, files // 8)), max(16, files // 3), max(32, files * 5 // 8))


class Visit(socket.socket):
    """A socket that came in. It says when it is closed, whatever closes it."""

    def __init__(self, taken: socket.socket, network: str, door: Door) -> None:
        super().__init__(fileno=taken.detach())
        self.setblocking(False)  # noqa: FBT003
        self.number: int = self.fileno()
        self.network = network
        """Where it comes from, as far as one person can choose that."""
        self.owner: str | None = None
        """Whose it is; None is a stranger's."""
        self.is_idle: bool = True
        """Whether no request on it is being answered."""
        self.transport: asyncio.Transport | None = None
        self.entering: asyncio.Task[None] | None = None
        self._door: Door | None = door

    def claim(self, principal: str) -> bool:
        """Note whose it is; return False where the principal has too many."""
        return self._door is None or self._door.claim(self, principal)

    def close(self) -> None:
        """Close it, and say so once."""
        door, self._door = self._door, None
        super().close()
        if door is not None:
            door.closed(self)

    def turn_out(self) -> None:
        """Cut it off."""
        if self.transport is not None:
            self.transport.abort()
        elif self.entering is not None:
            self.entering.cancel()


class Door:
    """Takes what comes in at a socket that listens. For uvicorn it is one of its servers."""

    def __init__(
        self,
        listening: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        *,
        tls: ssl.SSLContext | None = None,
        limits: DoorLimits | None = None,
    ) -> None:
        listening.setblocking(False)  # noqa: FBT003
        self._listening = listening
        self._make_protocol = make_protocol
        self._tls = tls
        self.limits: DoorLimits = limits or door_limits()
        self._by_number: dict[int, Visit] = {}
        self._strangers: dict[Visit, None] = {}
        self._principals: dict[str, dict[Visit, None]] = {}
        self._loop = asyncio.get_running_loop()
        self._taking = self._loop.create_task(self._take_all(), name="take what comes in")

    def count(self) -> dict[str, float]:
        """Return how many sockets are open."""
        known = sum(map(len, self._principals.values()))
        return {'{whose="strangers"}': len(self._strangers), '{whose="principals"}': known}

    def visit_of(self, transport: asyncio.BaseTransport) -> Visit | None:
        """Return the visit that a protocol serves."""
        found = transport.get_extra_info("socket")
        return None if found is None else self._by_number.get(found.fileno())

    # Who may stay

    def claim(self, visit: Visit, principal: str) -> bool:
        """Note whose a socket is; return False where the principal has too many."""
        if visit.owner == principal:
            return True
        own = self._principals.get(principal, {})
        if principal != NODES and not self._has_room(principal, own):
            return False
        self._leave(visit)
        visit.owner = principal
        self._principals.setdefault(principal, {})[visit] = None
        return True

    def _has_room(self, principal: str, own: dict[Visit, None]) -> bool:
        """Return whether a principal may have one more socket, once others have given some back."""
        if len(own) >= self.limits.each and not self._turn_out_idle(own):
            return False
        held = {name: visits for name, visits in self._principals.items() if name != NODES}
        if sum(map(len, held.values())) < self.limits.principals:
            return True
        most = max(held, key=lambda name: len(held[name]))
        if most == principal or len(own) >= len(held[most]):
            return self._turn_out_idle(own)
        if not self._turn_out_idle(held[most]):
            self._turn_out(next(iter(held[most])))
        return True

    def _turn_out_idle(self, visits: Iterable[Visit]) -> bool:
        """Turn out the oldest that waits for another request; return whether there was one."""
        idle = next((visit for visit in visits if visit.is_idle), None)
        if idle is not None:
            self._turn_out(idle)
        return idle is not None

    def _turn_out(self, visit: Visit) -> None:
        self._leave(visit)
        visit.turn_out()

    def _make_room_for_strangers(self) -> None:
        """Let strangers leave until there are few enough: of where most come from, those who say nothing first."""
        while len(self._strangers) > self.limits.strangers:
            (network, _), *_ = Counter(visit.network for visit in self._strangers).most_common(1)
            from_there = [visit for visit in self._strangers if visit.network == network]
            self._turn_out(next((visit for visit in from_there if visit.is_idle), from_there[0]))

    # Coming and going

    async def _take_all(self) -> None:
        while True:
            try:
                taken, address = await self._loop.sock_accept(self._listening)
            except OSError as e:
                log.warning("No socket can be taken: %s", e)
                if self._strangers:
                    self._turn_out(next(iter(self._strangers)))
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._take(Visit(taken, _network(address), self))
            await asyncio.sleep(0)  # in a flood too, everybody has his turn, and who was turned out is gone

    def _take(self, visit: Visit) -> None:
        self._by_number[visit.fileno()] = visit
        self._strangers[visit] = None
        visit.entering = self._loop.create_task(self._let_in(visit), name="let somebody in")
        visit.entering.add_done_callback(lambda _: self._entered(visit))
        self._make_room_for_strangers()

    async def _let_in(self, visit: Visit) -> None:
        settings: dict[str, Any] = {}
        if self._tls is not None:
            settings = {"ssl": self._tls, "ssl_handshake_timeout": HANDSHAKE_SECONDS}
        with suppress(OSError):  # errors of TLS are among them
            visit.transport, _ = await self._loop.connect_accepted_socket(self._make_protocol, visit, **settings)

    def _entered(self, visit: Visit) -> None:
        visit.entering = None
        if visit.transport is None:
            self._loop.call_soon(visit.close)  # not before what was begun with it has ended

    def closed(self, visit: Visit) -> None:
        """Forget a socket that was closed."""
        if self._by_number.get(visit.number) is visit:
            del self._by_number[visit.number]
        self._leave(visit)

    def _leave(self, visit: Visit) -> None:
        self._strangers.pop(visit, None)
        if visit.owner is not None and (own := self._principals.get(visit.owner)) is not None:
            own.pop(visit, None)
            if not own:
                del self._principals[visit.owner]

    # What uvicorn does with its servers

    def close(self) -> None:
        """Take nothing more."""
        self._taking.add_done_callback(lambda _: self._listening.close())
        self._taking.cancel()
        for visit in list(self._strangers):
            if visit.entering is not None:
                visit.turn_out()

    async def wait_closed(self) -> None:
        """Wait until nothing more is taken."""
        await asyncio.wait({self._taking})


def _network(address: Any) -> str:
    """Return the part of an address that one person cannot choose freely: of IPv6 the first half."""
    host = str(cast("tuple[object, ...]", address)[0]) if isinstance(address, tuple) and address else ""
    if ":" not in host:
        return host
    import ipaddress  # noqa: PLC0415

    parsed = ipaddress.IPv6Address(host.partition("%")[0])
    return str(parsed.ipv4_mapped or parsed.exploded[:19])
