"""Ten followers of one session, each over a link of its own, in one process; of them ``STALLED`` never read.

``STORE SESSION TURNS STALLED``: it says ``ready``, follows so many turns, and reports how long each took: from its
first event to its last, at those that read.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from meter import Meter

from holdfast.cluster import PeerNeighbours
from holdfast.engine.relay.follower import FollowedSession
from holdfast.model import LOCAL, Scope
from holdfast.store import open_store
from holdfast_app.cli.sessions.follow import Watcher

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from holdfast.model import Event

FOLLOWERS = 10

meter = Meter()


class Counting(Watcher):
    """Counts; one that stalls says that it has much unread, and never reads it."""

    def __init__(self, *, stalls: bool) -> None:
        super().__init__(as_json=True, cwd="/")
        self.turns: list[tuple[float, float]] = []
        self._first = 0.0
        self.backlog = (64 << 20) * stalls

    def show(self, events: Sequence[Event]) -> None:
        """Note when a turn begins and ends."""
        for event in events:
            if event.kind == "user_message":
                self._first = time.perf_counter()
            elif event.kind == "state_update" and b'"idle"' in event.body:
                self.turns.append((self._first, time.perf_counter()))

    async def drain(self) -> None:
        """Read nothing."""
        await asyncio.get_running_loop().create_future()

    def dropped(self, reason: str) -> None: ...


async def main(place: str, session_id: str, turns: int, stalled: int) -> None:
    store = await open_store(place)
    address = (await store.owners())[session_id].address
    assert address is not None
    neighbours = PeerNeighbours()
    tasks: set[asyncio.Task[None]] = set()

    def start(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        return task

    def lost(_: FollowedSession, __: str) -> None: ...

    clients: list[Counting] = []
    for number in range(FOLLOWERS):
        client = Counting(stalls=number < stalled)
        session = FollowedSession(
            session_id, Scope(LOCAL), client, neighbours=neighbours, on_lost=lost, start=start, is_guest=True
        )
        await session.open(address)
        client.attachment = await session.attach(client)
        client.attachment.follow()
        clients.append(client)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    reading = clients[stalled:]
    while min(len(client.turns) for client in reading) < turns:  # noqa: ASYNC110  (ten of them, no event for all)
        await asyncio.sleep(0.01)
    walls = [sum(end - begin for begin, end in client.turns[:turns]) for client in reading]
    meter.more["wall"] = max(walls)
    meter.report()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
