"""A process as a node: its row in the database, the lease on it, and the heartbeat that renews the lease.

One row and one heartbeat stand for all sessions of a process. Whoever wants a session of a node whose lease is over
deletes the node's row; every write of that node finds its row gone and does nothing (P4). A lease that is over changes
nothing by itself: where nobody wanted anything, the node just goes on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.store.postgres.database import PAUSES, is_gone

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.store.postgres.database import Database

log: logging.Logger = logging.getLogger(__name__)

LEASE = 5.0
"""So many seconds after its last heartbeat the sessions of a node may be taken over."""

BEATS = 5
"""So many heartbeats are in a lease."""


class Node:
    """A row in the table of nodes. Once it is gone it never comes back, and neither does its id."""

    def __init__(self, node_id: int, valid_until: float) -> None:
        self.id = node_id
        self.valid_until = valid_until
        """Until then, by the clock of this process, nobody can have taken over."""
        self.is_fenced = False


class Nodes:
    """The node that this process is: none until it wants to write, another one after it was fenced."""

    def __init__(self, database: Database, fenced: Callable[[Node], None]) -> None:
        self.url: str | None = None
        """Where other nodes reach this one."""
        self._database = database
        self._lease = database.address.lease
        self._fenced = fenced
        self._node: Node | None = None
        self._registering = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None

    @property
    def current(self) -> Node | None:
        """The node that this process is now."""
        return None if self._node is None or self._node.is_fenced else self._node

    @property
    def current_id(self) -> int:
        """The id of the node; 0, which is no node's, where there is none."""
        node = self.current
        return 0 if node is None else node.id

    async def get(self) -> Node:
        """Return the node that this process is; become one first if need be."""
        async with self._registering:
            node = self.current
            if node is None:
                await self._stop()
                # Drawn at random: numbers that are counted may come again after a database was restored.
                node_id, sent = secrets.randbits(63) or 1, _now()
                await self._database.fetch("add_node", node_id, describe_process(), self.url, self._lease)
                node = self._node = Node(node_id, sent + self._lease)
                self._beating = asyncio.get_running_loop().create_task(self._beat(node), name="heartbeat")
            return node

    def fence(self, node: Node) -> None:
        """Take note that the row of a node is gone."""
        if not node.is_fenced:
            node.is_fenced = True
            log.warning("The lease of this node was over and another one took its place; its sessions were let go")
            self._fenced(node)

    def is_valid(self, node: Node) -> bool:
        """Return whether nobody can have taken over from a node yet, without asking the database."""
        return not node.is_fenced and _now() < node.valid_until

    async def close(self) -> None:
        """Stop being a node: whatever is unsealed can be taken over at once."""
        await self._stop()
        if (node := self.current) is not None:
            node.is_fenced = True
            await self._database.fetch("remove_node", node.id)

    async def _stop(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait({self._beating})
            self._beating = None

    async def _beat(self, node: Node) -> None:
        """Renew the lease, over a connection that nothing else waits for, until the node is fenced."""
        connection: Any = None
        pause = PAUSES[0]
        try:
            while not node.is_fenced:
                try:
                    if connection is None:
                        connection = await self._database.connect()
                    await self._renew(node, connection)
                except Exception as e:  # noqa: BLE001  (a node without a heartbeat loses its sessions: it goes on)
                    _tell(e)
                    connection = _dropped(connection)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, PAUSES[1])
                else:
                    pause = PAUSES[0]
                    await asyncio.sleep(self._lease / BEATS)
        finally:
            _dropped(connection)

    async def _renew(self, node: Node, connection: Any) -> None:
        sent = _now()
        # An answer that comes later than the lease ends is none: the connection may be dead, and nobody says so.
        if await connection.fetch(self._database.query("beat"), node.id, self._lease, timeout=self._lease):
            node.valid_until = sent + self._lease
        else:
            self.fence(node)


def _tell(error: Exception) -> None:
    if is_gone(error):
        log.info("The heartbeat did not reach the database: %s", error)
    else:
        log.warning("The database refuses the heartbeat of this node; others may take its sessions over: %s", error)


def _dropped(connection: Any) -> None:
    if connection is not None:
        connection.terminate()


def _now() -> float:
    """Return the time by a clock that goes on while the machine sleeps, where there is one."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def describe_process() -> str:
    """Say in words where this process runs."""
    program = Path(sys.argv[0]).name.encode(errors="replace").decode() or "python"
    return f"process {os.getpid()} ({program}) on {socket.gethostname()}"
