"""Measure the PostgreSQL store: `python -m bench.postgres [what…]`. Ratios are taken in one run, in turns.

Each figure is a ratio to something that the same server does at the same time: a busy machine changes it little.
`flush`, `replay`, `takeover`, `find`; without a name all of them. `find` makes a million sessions and messages first.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
from tests.support import postgres
from tests.support.neighbours import neighbour
from tests.support.stores import NOTHING, message, new, prompt, talked

from holdfast.errors import SessionBusy
from holdfast.model import LOCAL, Scope
from holdfast.store import open_store
from holdfast.store.postgres.search_words import indexed_words

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from holdfast.store import SessionStore

# asyncpg has no types that strict checking can see through.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

UPDATE = b'{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"some words "}}\n'
SLICES = 4


async def timed(work: Callable[[], Awaitable[Any]], count: int) -> float:
    """Return the median time of something, in milliseconds."""
    times: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        await work()
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


async def flush(store: SessionStore, address: str) -> None:
    """Compare emit → kept with a bare commit, and with a commit for each session."""
    connection: Any = await asyncpg.connect(address)
    pool: Any = await asyncpg.create_pool(address, min_size=8, max_size=8)
    await connection.execute("CREATE TABLE IF NOT EXISTS public.bare (id BIGSERIAL PRIMARY KEY, lines BYTEA)")
    insert = "INSERT INTO public.bare (lines) VALUES ($1)"
    for sessions in (1, 100, 500):
        claims = [await new(store) for _ in range(sessions)]
        logs = [await store.begin(claim, prompt("q"), NOTHING) for claim in claims]

        async def ours(at: int, logs: list[Any] = logs) -> None:
            await logs[at].append(UPDATE)

        async def alone(_: int) -> None:
            await pool.execute(insert, UPDATE)

        bare, grouped, single = list[float](), list[float](), list[float]()
        for _ in range(SLICES):
            bare.append(await timed(lambda: connection.execute(insert, UPDATE), 40))
            grouped.append(await streamed(ours, sessions))
            single.append(await streamed(alone, sessions))
        commit, group, each = (statistics.median(times) for times in (bare, grouped, single))
        print(
            f"{sessions} streaming sessions: emit → kept p50 {group:.2f} ms, {group / commit:.1f} times a bare commit "
            f"({commit:.2f} ms); a commit for each session {each:.2f} ms, {group / each:.2f} times of it"
        )
        for claim in claims:
            await store.seal(claim, [], NOTHING, messages=0)
    await pool.close()
    await connection.close()


async def streamed(say: Callable[[int], Awaitable[None]], sessions: int, seconds: float = 1.5) -> float:
    """Let sessions say something now and then, 1,000 times a second in all; return the median wait, in ms."""
    times: list[float] = []
    pause = max(sessions / 1_000, 0.01)

    async def one(at: int) -> None:
        until = time.perf_counter() + seconds
        await asyncio.sleep(pause * at / sessions)
        while (began := time.perf_counter()) < until:
            await say(at)
            times.append((time.perf_counter() - began) * 1e3)
            await asyncio.sleep(pause)

    await asyncio.gather(*(one(at) for at in range(sessions)))
    return statistics.median(times)


async def replay(store: SessionStore, _address: str) -> None:
    """Compare the replay of 100,000 entries with SQLite's."""
    with TemporaryDirectory() as directory:
        other = await open_store(f"{directory}/sessions.db")
        stores = {"PostgreSQL": store, "SQLite": other}
        lines = [message(f"entry {n} with some words in it, as many as a short answer has") for n in range(100_000)]
        sessions: dict[str, str] = {}
        for name, one in stores.items():
            claim = await new(one)
            await one.seal(claim, lines, NOTHING, messages=len(lines))
            sessions[name] = claim.session
        times: dict[str, list[float]] = {name: [] for name in stores}
        for _ in range(2 * SLICES):
            for name, one in stores.items():
                times[name].append(await timed(lambda one=one, name=name: read(one, sessions[name]), 1))
        theirs, ours = statistics.median(times["SQLite"]), statistics.median(times["PostgreSQL"])
        print(f"replay of 100,000 entries: {ours:.0f} ms, {ours / theirs:.1f} times SQLite's {theirs:.0f} ms")
        await other.close()


async def read(store: SessionStore, session: str) -> None:
    async for _ in store.read(session, 0, 1 << 40):
        pass


async def takeover(store: SessionStore, address: str) -> None:
    """Measure how long after a kill a session whose turn ran can be taken."""
    for sessions in (1, 2_000):
        async with neighbour(address) as other:
            ids = [await other.do("create") for _ in range(sessions)]
            for session in ids[-200:]:
                await other.do("begin", session, "q")
            began = time.perf_counter()
            await other.kill()
            while True:
                try:
                    await store.claim(ids[-1])
                    break
                except SessionBusy:
                    await asyncio.sleep(0.02)
            first = time.perf_counter() - began
            for session in ids[-200:-1]:
                await store.claim(session)
            print(f"take-over of a node with {sessions:,} sessions: {first:.2f} s after kill -9 (lease 5 s), "
                  f"{min(sessions, 200)} broken ones {time.perf_counter() - began - first:.2f} s more")  # fmt: skip


async def find(store: SessionStore, address: str) -> None:
    """Compare a page of a million sessions, and searches in a million messages, with a look-up by id."""
    claim = await talked(store, "/w", "x")
    connection: Any = await asyncpg.connect(address)
    await fill(connection)
    scope = Scope(LOCAL)
    look = await timed(lambda: store.get(claim.session), 200)
    pages = {
        "first page": lambda: store.list(scope, cwd=None, archived="exclude", cursor=None, limit=50),
        "first page of a directory": lambda: store.list(scope, cwd="/d7", archived="exclude", cursor=None, limit=50),
    }
    print(f"a look-up by id among 1,000,000 sessions: {look:.2f} ms")
    for name, ask in pages.items():
        took = await timed(ask, 100)
        print(f"{name}: {took:.2f} ms, {took / look:.1f} times")
    for words in ("common", "rare77777", "middle500", "absentword", "common absentword"):
        took = await timed(lambda words=words: store.search(words, scope, cwd=None, limit=20), 20)
        print(f"search for {words!r}: {took:.2f} ms, {took / look:.0f} times")
    await connection.close()


MANY = """
INSERT INTO holdfast.session
    (id, scope, cwd, additional, title, created_at, updated_at, listed, archived, messages, state)
SELECT 'many_' || n, 1, to_jsonb('/d' || n % 1000)::text, '[]', to_jsonb('session ' || n)::text, n, n, true, false, 1,
    '{}'
FROM generate_series(1, 1000000) AS n;

INSERT INTO holdfast.segment (id, lines, checksum, body)
SELECT 1000000 + n, 1, 0, convert_to(
    '{"messageId":"m","sessionUpdate":"agent_message' || chr(1) || '{"type":"text","text":"common rare' || n || '"}'
    || chr(2) || '}', 'UTF8'
) FROM generate_series(1, 1000000) AS n;

INSERT INTO holdfast.history_segment (session, position, segment)
SELECT n + 10, 0, 1000000 + n FROM generate_series(1, 1000000) AS n;

INSERT INTO holdfast.doc (segment, at, size, words)
SELECT 1000000 + n, 0, 200, array_to_tsvector(
    ARRAY[OWNER, 'common', 'rare' || n, 'middle' || n % 1000, 'w' || n % 97, 'x' || n % 5003]
) FROM generate_series(1, 1000000) AS n;

VACUUM ANALYZE;
"""


async def fill(connection: Any) -> None:
    """Make a million sessions and a million texts, as statements of the database: it would take hours otherwise."""
    for statement in MANY.replace("OWNER", indexed_words("", LOCAL)).strip().split(";\n"):
        began = time.perf_counter()
        await connection.execute(statement)
        print(f"  {statement.strip()[:32]}… {time.perf_counter() - began:.0f} s", flush=True)


WHAT = {"flush": flush, "replay": replay, "takeover": takeover, "find": find}


@asynccontextmanager
async def server() -> AsyncGenerator[str]:
    cluster = postgres.Cluster(Path(mkdtemp(prefix="holdfast-pg-")))  # on a disk: commits cost what they cost
    try:
        cluster.create(max_wal_size="4GB", shared_buffers="512MB", maintenance_work_mem="512MB")
        cluster.start()
        yield cluster.address
    finally:
        cluster.remove()


async def main(names: list[str]) -> None:
    async with server() as address:
        for name in names or list(WHAT):
            store = await open_store(address)
            try:
                await WHAT[name](store, address)
            finally:
                await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
