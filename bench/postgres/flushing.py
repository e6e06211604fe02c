"""From said to kept: one statement for all sessions of a node, against a commit for each session and flush.

Sessions say something at a steady pace, whatever becomes of it. What is compared with does the same as we do — the same
statement, the same connections; what was said while one is under way goes with the next — but for each session alone.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from bench.postgres.server import Row, timed
from core.tests.support.stores import NOTHING, new, prompt
from holdfast.store.postgres.connections import CONNECTIONS
from holdfast.store.postgres.database import queries

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from bench.postgres.server import Server
    from holdfast.store import Claim, SessionStore

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false

UPDATE = b'{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"some words "}}\n'
SLICES = 5
SECONDS = 2.0
PACE = {1: 50, 100: 10, 500: 10}
"""How many updates a second each session says, by how many sessions there are."""


class Slice(NamedTuple):
    """What a while of streaming took."""

    wait: float
    """The median time from said to kept, in milliseconds."""
    cpu: float
    """The processor time of the server, in microseconds an update."""


async def measure(server: Server, store: SessionStore) -> AsyncGenerator[Row]:
    """Compare emit → kept with a bare commit, and with a commit for each session and flush."""
    connection: Any = await server.connect()
    pool: Any = await asyncpg.create_pool(server.address, min_size=CONNECTIONS, max_size=CONNECTIONS)
    await connection.execute("CREATE TABLE IF NOT EXISTS public.bare (id BIGSERIAL PRIMARY KEY, lines BYTEA)")

    async def commit() -> None:
        await connection.execute("INSERT INTO public.bare (lines) VALUES ($1)", UPDATE)

    for sessions in PACE:
        claims = [await new(store) for _ in range(2 * sessions)]
        logs: list[Any] = [await store.begin(claim, prompt("q"), NOTHING) for claim in claims]
        single = [await _alone(pool, connection, claim) for claim in claims[sessions:]]
        bare, grouped, alone = list[float](), list[Slice](), list[Slice]()
        for _ in range(SLICES):
            bare.append(await timed(commit, 60))
            grouped.append(await stream(server, lambda at, logs=logs: logs[at].append(UPDATE), sessions))
            alone.append(await stream(server, lambda at, single=single: single[at].append(UPDATE), sessions))
        for row in rows(sessions, statistics.median(bare), _medians(grouped), _medians(alone)):
            yield row
        for claim in claims:
            await store.seal(claim, [], NOTHING, messages=0)
    await pool.close()
    await connection.close()


def rows(sessions: int, commit: float, group: Slice, alone: Slice) -> list[Row]:
    """Say what came of it."""
    name = f"{sessions} streaming session{'s' * (sessions > 1)}"
    asked = sessions == 500
    return [
        Row(
            f"{name}, said → kept, p50, of a bare commit ({commit:.2f} ms)",
            f"{group.wait / commit:.2f} times",
            "≤ 3 times",
            group.wait <= 3 * commit,
        ),
        Row(
            f"{name}, said → kept, p50, of a commit for each session and flush ({alone.wait:.1f} ms)",
            f"{group.wait / alone.wait:.3f} times",
            "≤ 0.1 times" * asked,
            group.wait <= alone.wait / 10 if asked else None,
        ),
        Row(
            f"{name}, CPU of the server an update, of the same ({alone.cpu:.0f} µs)",
            f"{group.cpu / alone.cpu:.2f} times",
            "≤ 0.6 times" * asked,
            group.cpu <= 0.6 * alone.cpu if asked else None,
        ),
    ]


async def stream(server: Server, say: Callable[[int], asyncio.Future[None]], sessions: int) -> Slice:
    """Let sessions say something at their pace, one after the other; wait until all of it is kept."""
    loop = asyncio.get_running_loop()
    waits: list[float] = []
    kept: list[asyncio.Future[None]] = []
    pace = PACE[sessions] * sessions
    cpu, began = server.cpu, loop.time()
    for number in range(int(pace * SECONDS)):
        early = began + number / pace - loop.time()
        if early > 0 or number % 8 == 0:
            await asyncio.sleep(early)
        said = time.perf_counter()
        kept.append(say(number % sessions))
        kept[-1].add_done_callback(lambda _, said=said: waits.append(time.perf_counter() - said))
    await asyncio.gather(*kept)
    return Slice(statistics.median(waits) * 1e3, (server.cpu - cpu) / len(kept) * 1e6)


class Alone:
    """The log of one session, flushed for itself."""

    def __init__(self, pool: Any, node: int, n: int, epoch: int) -> None:
        self._pool = pool
        self._arguments = node, [n], [epoch], [1]
        self._seq = 0
        self._lines: list[bytes] = []
        self._waiting: asyncio.Future[None] | None = None
        self._flushing: asyncio.Task[None] | None = None

    def append(self, lines: bytes) -> asyncio.Future[None]:
        """Keep something with the next flush of this session."""
        self._lines.append(lines)
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
        if self._flushing is None:
            self._flushing = asyncio.ensure_future(self._flush())
        return self._waiting

    async def _flush(self) -> None:
        while self._waiting is not None:
            lines, self._lines = b"".join(self._lines), []
            kept, self._waiting = self._waiting, None
            self._seq += 1
            await self._pool.fetch(FLUSH, *self._arguments, [self._seq], [lines])
            kept.set_result(None)
        self._flushing = None


FLUSH = queries()["flush"]


async def _alone(pool: Any, connection: Any, claim: Claim) -> Alone:
    row = await connection.fetchrow("SELECT n, node FROM holdfast.session WHERE id = $1", claim.session)
    return Alone(pool, row["node"], row["n"], claim.epoch)


def _medians(slices: list[Slice]) -> Slice:
    return Slice(*(statistics.median(values) for values in zip(*slices, strict=True)))
