"""The replay of a long history, against SQLite's."""

from __future__ import annotations

import statistics
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench.postgres.server import Row, timed
from core.tests.support.stores import NOTHING, message, new
from holdfast.store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bench.postgres.server import Server
    from holdfast.store import SessionStore

ENTRIES = 100_000
ROUNDS = 8


async def measure(_server: Server, store: SessionStore) -> AsyncGenerator[Row]:
    """Compare the replay of 100,000 entries with SQLite's."""
    with TemporaryDirectory() as directory:
        other = await open_store(f"{directory}/sessions.db")
        lines = [message(f"entry {n} with some words in it, as many as a short answer has") for n in range(ENTRIES)]
        sessions: list[tuple[SessionStore, str, list[float]]] = []
        for one in (store, other):
            claim = await new(one)
            await one.seal(claim, lines, NOTHING, messages=len(lines))
            sessions.append((one, claim.session, []))
        for _ in range(ROUNDS):
            for one, session, times in sessions:
                times.append(await timed(lambda one=one, session=session: _read(one, session), 1))
        ours, theirs = (statistics.median(times) for _, _, times in sessions)
        await other.close()
    yield Row(
        f"replay of {ENTRIES:,} entries, of SQLite's time ({theirs:.0f} ms)",
        f"{ours / theirs:.1f} times",
        "≤ 4 times",
        ours <= 4 * theirs,
    )


async def _read(store: SessionStore, session: str) -> None:
    async for _ in store.read(session, 0, 1 << 40):
        pass
