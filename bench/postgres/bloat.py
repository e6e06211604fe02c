"""How large the log of turns becomes, whose rows come and go all the time."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from bench.postgres.server import Row
from core.tests.support.stores import NOTHING, message, new, prompt

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bench.postgres.server import Server
    from holdfast.store import Claim, SessionStore

TURNS = 100_000
AT_ONCE = 50
SAID = b'{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"some words "}}\n' * 10

SIZE = """
SELECT pg_total_relation_size('holdfast.turn_log') AS used,
    (SELECT coalesce(sum(pg_column_size(turn_log.*)), 0) FROM holdfast.turn_log) AS live,
    (SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 'turn_log') AS vacuums
"""


async def measure(server: Server, store: SessionStore) -> AsyncGenerator[Row]:
    """Let many turns begin, say something and be sealed; look at the log now and then."""
    connection: Any = await server.connect()
    claims = [await new(store) for _ in range(AT_ONCE)]
    left = TURNS
    largest = live = 0

    async def work(claim: Claim) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await _turn(store, claim)

    async def watch() -> None:
        nonlocal largest, live
        while True:
            found = await connection.fetchrow(SIZE)
            largest, live = max(largest, found["used"]), max(live, found["live"])
            print(f"  {TURNS - left:,} turns, {found['used'] >> 10:,} KiB", file=sys.stderr, flush=True)
            await asyncio.sleep(15)

    watching = asyncio.ensure_future(watch())
    await asyncio.gather(*(work(claim) for claim in claims))
    watching.cancel()
    await asyncio.wait({watching})
    found = await connection.fetchrow(SIZE)
    yield Row(
        f"the log of turns after {TURNS:,} turns, {AT_ONCE} at a time, {found['vacuums']} vacuums by itself",
        f"{found['used'] / (1 << 20):.1f} MiB, at most {largest / (1 << 20):.1f} MiB for {live >> 10} KiB of live rows",
    )
    await connection.close()


async def _turn(store: SessionStore, claim: Claim) -> None:
    log = await store.begin(claim, prompt("q"), NOTHING)
    for _ in range(3):
        if (kept := log.append(SAID)) is not None:
            await kept
    await store.seal(claim, [message("an answer of some words")], NOTHING, messages=1)
