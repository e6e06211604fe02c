"""Which sessions are open, in what programs, and what they are doing: asked of the programs themselves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from holdfast.store import SessionStore

_STATES = {"running": "running in", "requires_action": "waits for an answer in"}


class OpenElsewhere(NamedTuple):
    """A session that a program has open."""

    name: str
    """What people call the program."""
    activity: str = "idle"
    clients: tuple[str, ...] = ()
    """Who watches it, in whatever program."""

    def describe(self) -> str:
        """Return what it is doing and where, in words."""
        where = ", ".join(dict.fromkeys(self.clients)) or self.name
        return f"{_STATES.get(self.activity, 'open in')} {where}"


async def find_open(store: SessionStore) -> dict[str, OpenElsewhere]:
    """Return the sessions that are open, by their ids. A program that does not answer is named all the same."""
    owners = await store.owners()
    opened = {session: OpenElsewhere(owner.name) for session, owner in owners.items()}
    addresses = {owner.address for owner in owners.values() if owner.address is not None}
    for name, found in zip(addresses, await asyncio.gather(*map(_ask, addresses)), strict=True):
        for session, status in found.items():
            if session in opened and owners[session].address == name:
                opened[session] = opened[session]._replace(activity=status[0], clients=status[1])
    return opened


async def _ask(address: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Ask a program what its sessions are doing."""
    import msgspec  # noqa: PLC0415

    from holdfast.engine.relay.messages import Status  # noqa: PLC0415
    from holdfast.errors import HoldfastError  # noqa: PLC0415
    from holdfast.neighbours import SocketNeighbours, is_available  # noqa: PLC0415

    if not is_available() or not address.startswith(("unix:", "tcp:")):
        return {}
    neighbours = SocketNeighbours("")
    try:
        answer = await neighbours.ask(address, "status", None)
        found = msgspec.json.decode(answer, type=list[Status])
    except HoldfastError:
        return {}
    finally:
        await neighbours.close()
    return {status.session: (status.activity, tuple(status.clients)) for status in found}
