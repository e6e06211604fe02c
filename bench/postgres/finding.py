"""A page of a million sessions, and searches in a million messages, against a look-up by id."""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.postgres.server import Row, timed
from core.tests.support.stores import talked
from holdfast.model import LOCAL, Scope
from holdfast.store.postgres.search_words import indexed_words

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from bench.postgres.server import Server
    from holdfast.store import SessionStore

ROUNDS = 7
SLICE = 250.0
"""So many milliseconds something is done before the other has its turn."""
SCOPE = Scope(LOCAL)
WORDS = {
    "common": "is in all",
    "x77": "is in 200, spread evenly",
    "middle500": "is in 1,000",
    "w33": "is in 10,000",
    "rare77777": "is in one",
    "absentword": "is in none",
    "common absentword": "are in none together",
    "rare777*": "begins words of 1,111",
    '"common rare77777"': "is in one, in a row",
}

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


async def measure(server: Server, store: SessionStore) -> AsyncGenerator[Row]:
    """Make a million of each; ask for pages and words in turns with a look-up by id."""
    claim = await talked(store, "/w", "x")
    connection: Any = await server.connect()
    await fill(connection)
    await connection.close()

    async def look_up() -> None:
        await store.get(claim.session)

    for cwd, name in ((None, "of all"), ("/d7", "of a directory")):
        page = await by_turns(
            server, lambda cwd=cwd: store.list(SCOPE, cwd=cwd, archived="exclude", cursor=None, limit=50), look_up
        )
        yield page.row(f"a page of 50 {name} among 1,000,000 sessions", 3)
    for words, which in WORDS.items():
        found = await by_turns(server, lambda words=words: store.search(words, SCOPE, cwd=None, limit=20), look_up)
        yield found.row(f"20 hits among 1,000,000 messages for {words!r}, which {which}", 50)


class Compared(NamedTuple):
    """How many times a look-up's something took, by the clock and in processor time of server and client."""

    wall: float
    cpu: float
    look: float
    """The processor time of a look-up, in milliseconds."""

    def row(self, what: str, at_most: float) -> Row:
        """Say what came of it. Whether it is met is judged by processor time: others may be at work here, too."""
        return Row(
            f"{what}, CPU, of a look-up by id ({self.look:.2f} ms)",
            f"{self.cpu:.1f} times (by the clock {self.wall:.1f})",
            f"≤ {at_most:g} times",
            self.cpu <= at_most,
        )


async def by_turns(
    server: Server, work: Callable[[], Awaitable[Any]], look_up: Callable[[], Awaitable[Any]]
) -> Compared:
    """Compare something with a look-up: both are measured many times, in turns.

    The system counts a server's time in hundredths of a second: slices are long, and added up before they are compared.
    """
    await work()
    works: list[_Slice] = []
    looks: list[_Slice] = []
    for _ in range(ROUNDS):
        works.append(await _slice(server, work))
        looks.append(await _slice(server, look_up))
    cpu, look = (sum(taken.cpu for taken in slices) / sum(taken.times for taken in slices) for slices in (works, looks))
    wall, look_wall = (statistics.median(taken.wall for taken in slices) for slices in (works, looks))
    return Compared(wall / look_wall, cpu / look, look)


class _Slice(NamedTuple):
    times: int
    wall: float
    cpu: float


async def _slice(server: Server, work: Callable[[], Awaitable[Any]]) -> _Slice:
    """Do something for a while; return how often, the median time of one and the processor time of all (both in ms)."""
    used, own, times = server.cpu, time.process_time(), list[float]()
    while sum(times) < SLICE:
        times.append(await timed(work, 1))
    return _Slice(len(times), statistics.median(times), (server.cpu - used + time.process_time() - own) * 1e3)


async def fill(connection: Any) -> None:
    """Make a million sessions and a million texts, as statements of the database: it would take hours otherwise."""
    for statement in MANY.replace("OWNER", indexed_words("", LOCAL)).strip().split(";\n"):
        began = time.perf_counter()
        await connection.execute(statement)
        print(f"  {statement.strip()[:32]}… {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
