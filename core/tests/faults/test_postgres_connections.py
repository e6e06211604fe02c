"""The connections that queries share: how many there are, and what becomes of those that break or that nobody needs."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from core.tests.support import postgres
from holdfast.errors import StoreError
from holdfast.store.postgres import connections
from holdfast.store.postgres.connections import CONNECTIONS, Connections
from holdfast.store.postgres.database import parse_address
from holdfast.store.postgres.nodes import LEASE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = [pytest.mark.requirement("P1"), pytest.mark.timeout(180)]

OURS = "FROM pg_stat_activity WHERE application_name = 'shared' AND datname = current_database()"
OPEN = f"SELECT count(*) {OURS}"
CUT = f"SELECT count(pg_terminate_backend(pid, 10000)) {OURS}"


async def _nothing(_: Any) -> None: ...


@asynccontextmanager
async def sharing(address: str) -> AsyncGenerator[Connections]:
    opened = Connections()
    await opened.open(parse_address(address, LEASE).dsn, init=_nothing, server_settings={"application_name": "shared"})
    try:
        yield opened
    finally:
        await opened.close()


async def _number(address: str, query: str) -> int:
    ((number,),) = await postgres.run_sql(address, query)
    return number


async def _backend(shared: Connections, wait: float = 0) -> int:
    async with shared.take() as connection:
        await connection.execute("SELECT pg_sleep($1)", wait)
        return await connection.fetchval("SELECT pg_backend_pid()")


async def test_queries_one_after_the_other_use_one_connection() -> None:
    async with sharing(postgres.empty_database()) as shared:
        assert len({await _backend(shared) for _ in range(5)}) == 1


async def test_many_at_once_share_few_connections_and_all_get_one() -> None:
    async with sharing(postgres.empty_database()) as shared:
        await _backend(shared)  # one is at hand
        for _ in range(3):
            used = await asyncio.gather(*(_backend(shared, 0.01) for _ in range(5 * CONNECTIONS)))
            assert len(set(used)) <= CONNECTIONS


async def test_one_that_was_cut_while_nobody_used_it_is_not_used_again() -> None:
    address = postgres.empty_database()
    async with sharing(address) as shared:
        used = await asyncio.gather(*(_backend(shared, 0.2) for _ in range(3)))
        assert await _number(address, CUT) == len(set(used))
        await asyncio.sleep(0.1)  # for the news to arrive
        assert await _backend(shared) not in used


async def test_one_whose_query_failed_or_was_given_up_is_still_good() -> None:
    async with sharing(postgres.empty_database()) as shared:
        first = await _backend(shared)
        with pytest.raises(asyncpg.UndefinedTableError):
            async with shared.take() as connection:
                await connection.fetch("SELECT * FROM there_is_none")
        query = asyncio.create_task(_backend(shared, 60))
        await asyncio.sleep(0.05)
        query.cancel()
        await asyncio.wait({query})
        assert query.cancelled()
        assert {await _backend(shared) for _ in range(3)} == {first}


async def test_those_that_nobody_needs_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "AT_HAND_SECONDS", 0.05)
    monkeypatch.setattr(connections, "UNUSED_SECONDS", 0.05)
    address = postgres.empty_database()
    async with sharing(address) as shared:
        await asyncio.gather(*(_backend(shared, 0.01) for _ in range(4)))
        for _ in range(600):
            if await _number(address, OPEN) == 0:
                break
            await asyncio.sleep(0.05)
        assert await _number(address, OPEN) == 0
        assert await _backend(shared)


async def test_none_is_given_after_they_were_closed_and_those_in_use_have_a_moment() -> None:
    address = postgres.empty_database()
    async with sharing(address) as shared:
        await _backend(shared)
        at_work = asyncio.create_task(_backend(shared, 0.2))
        await asyncio.sleep(0.05)
        await shared.close()
        assert await at_work
        with pytest.raises(StoreError, match="is closed"):
            await _backend(shared)
        assert await _number(address, OPEN) == 0
