"""How long after a node was killed its sessions can be had, and what it costs that nodes know of each other."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from bench.postgres.server import Row, Server
from core.tests.support.neighbours import neighbour
from holdfast.errors import SessionBusy
from holdfast.store.postgres.database import queries
from holdfast.store.postgres.nodes import LEASE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from holdfast.store import SessionStore

MANY = 10_000
KILLS = 3
BEATS = 2_000
ALL_AT_ONCE = 500
"""So many of the sessions are claimed, one after the other, to see what each costs."""

SESSIONS = """
WITH made AS (
    INSERT INTO holdfast.session (id, scope, cwd, additional, created_at, updated_at, listed, archived, messages, state,
        node, turn, unsealed)
    SELECT $1 || '_' || number, 1, '"/w"', '[]', number, number, true, false, 1, '{}', node, 1, true
    FROM generate_series(1, $2::int) AS number, (SELECT node FROM holdfast.session WHERE id = $1) AS node
    RETURNING n
)
INSERT INTO holdfast.turn_log (session, turn, seq, lines) SELECT n, 1, 0, '{}\n' FROM made
"""


async def measure(server: Server, store: SessionStore) -> AsyncGenerator[Row]:
    """Kill nodes that have one session, and such that have many; then look at what a heartbeat costs."""
    connection: Any = await server.connect()
    first: dict[int, float] = {}
    each = 0.0
    for sessions in (1, MANY):
        taken = [await _take_over(server, store, connection, sessions) for _ in range(KILLS)]
        first[sessions] = max(one for one, _ in taken)
        each = sum(more for _, more in taken) / KILLS
    yield Row(
        f"take-over after kill -9, the longest of {KILLS}, beyond the lease of {LEASE:g} s",
        f"{first[1] - LEASE:.2f} s",
        "≤ 0.5 s",
        first[1] <= LEASE + 0.5,
    )
    yield Row(
        f"the same with {MANY:,} sessions in mid-turn, longer than with one",
        f"{first[MANY] - first[1]:.2f} s",
        "≤ 0.5 s",
        first[MANY] - first[1] <= 0.5,
    )
    yield Row("each further session of a dead node, when somebody wants it", f"{each * 1e3:.1f} ms")
    yield await _heartbeats(server, connection)
    await connection.close()


async def _take_over(server: Server, store: SessionStore, connection: Any, sessions: int) -> tuple[float, float]:
    """Return how long after a kill a session could be had, and how long each further one took."""
    async with neighbour(server.address) as other:
        session = await other.do("create")
        await connection.execute(SESSIONS, session, sessions)
        await other.do("begin", session, "q")
        await other.kill()
        began = time.perf_counter()
        while True:
            try:
                await store.claim(session)
                break
            except SessionBusy:
                await asyncio.sleep(0.02)
        first = time.perf_counter()
        more = min(sessions, ALL_AT_ONCE)
        for number in range(1, more + 1):
            await store.claim(f"{session}_{number}")
        return first - began, (time.perf_counter() - first) / more


async def _heartbeats(server: Server, connection: Any) -> Row:
    """Compare the heartbeat of a node with no session and of one with many."""
    costs: list[tuple[float, int]] = []
    for node, sessions in ((11, 0), (12, MANY)):
        await connection.execute(queries()["add_node"], node, "bench", None, 3_600.0)
        await connection.execute(
            "UPDATE holdfast.session SET node = $1 WHERE n IN (SELECT n FROM holdfast.session LIMIT $2)", node, sessions
        )
        for statement in ("VACUUM holdfast.session", "VACUUM holdfast.node", "CHECKPOINT"):  # or it comes in between
            await connection.execute(statement)
        cpu, wal = server.cpu, await connection.fetchval("SELECT pg_current_wal_insert_lsn()")
        for _ in range(BEATS):
            await connection.fetch(queries()["beat"], node, 3_600.0)
        written = await connection.fetchval("SELECT pg_current_wal_insert_lsn() - $1::pg_lsn", wal)
        costs.append(((server.cpu - cpu) / BEATS * 1e6, int(written) // BEATS))
    (none, none_wal), (many, many_wal) = costs
    return Row(
        f"a heartbeat with {MANY:,} sessions, CPU of the server of one with none ({none:.0f} µs, {none_wal} B of WAL)",
        f"{many / none:.2f} times ({many_wal} B)",
        "the same",
        many <= 1.3 * none,
    )
