"""Which sessions are open, in what programs, and what they are doing: asked of the programs themselves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from holdfast.cluster import NodeSecret
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
    if not addresses:
        return opened
    from holdfast_app.cli.node_options import node_secret  # noqa: PLC0415

    secret = node_secret()
    answers = await asyncio.gather(*(_ask(address, secret) for address in addresses))
    for name, found in zip(addresses, answers, strict=True):
        for session, status in found.items():
            if session in opened and owners[session].address == name:
                opened[session] = opened[session]._replace(activity=status[0], clients=status[1])
    return opened


async def _ask(address: str, secret: NodeSecret | None) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Ask a program what its sessions are doing."""
    import msgspec  # noqa: PLC0415

    from holdfast.cluster import PeerNeighbours  # noqa: PLC0415
    from holdfast.engine.relay.messages import Status  # noqa: PLC0415
    from holdfast.errors import HoldfastError  # noqa: PLC0415

    neighbours = PeerNeighbours(secret=secret)
    try:
        answer = await neighbours.ask(address, "status", None)
        found = msgspec.json.decode(answer, type=list[Status])
    except HoldfastError:
        return {}
    finally:
        await neighbours.close()
    return {status.session: (status.activity, tuple(status.clients)) for status in found}
