"""What only the PostgreSQL store does: it finds out where it is, and says plainly why it cannot be used."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from core.tests.support import postgres
from core.tests.support.stores import CWD, hits, info, message, talked, turn, walk
from holdfast.errors import StoreError, StoreTooNew, UsageError
from holdfast.model import Scope, SessionState
from holdfast.store import open_store

if TYPE_CHECKING:
    from core.tests.support.stores import Place


async def test_many_processes_make_a_store_at_once_and_all_may_use_it() -> None:
    address = postgres.blank_database("new")
    stores = await asyncio.gather(*(open_store(address) for _ in range(6)))
    claims = [await talked(store, CWD, f"said {n}") for n, store in enumerate(stores)]
    for store in stores:
        assert sorted(await walk(store)) == sorted(claim.session for claim in claims)
        await store.close()


async def test_what_a_newer_version_wrote_is_left_alone() -> None:
    address = postgres.blank_database("newer")
    await (await open_store(address)).close()
    await postgres.run_sql(address, "UPDATE holdfast.setting SET value = '99' WHERE name = 'format'")
    with pytest.raises(StoreTooNew, match=r"schema 99.*upgrade Holdfast"):
        await open_store(address)


async def test_a_server_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, in_postgres: Place) -> None:
    monkeypatch.setattr("holdfast.store.postgres.database.OLDEST_SERVER", 99)
    with pytest.raises(StoreError, match=r"PostgreSQL \d+\..* is too old.*version 99 or newer"):
        await open_store(in_postgres.path)


async def test_a_server_that_acknowledges_what_it_has_not_stored_is_refused(in_postgres: Place) -> None:
    role, _, rest = in_postgres.path.removeprefix("postgresql://").partition("@")
    assert role
    await postgres.run_sql(
        in_postgres.path,
        "DROP ROLE IF EXISTS hasty",
        "CREATE ROLE hasty LOGIN SUPERUSER",
        "ALTER ROLE hasty SET synchronous_commit = off",
    )
    with pytest.raises(StoreError, match="synchronous_commit is off"):
        await open_store(f"postgresql://hasty@{rest}")


@pytest.mark.requirement("P10")
async def test_why_a_database_cannot_be_used_is_said_without_its_password(in_postgres: Place) -> None:
    server = postgres.server()
    for address, says in (
        (postgres.with_database(server, "nothing_there"), "createdb"),
        ("postgresql://me:hunter2@127.0.0.1:1/x", "cannot be reached"),
        ("postgresql://me:hunter2@no-such-host.invalid/x", "cannot be reached"),
    ):
        with pytest.raises(StoreError, match=says) as refused:
            await open_store(address)
        assert "hunter2" not in str(refused.value)
    for address in ("x/y?lease=0", "x/y?lease=x", "x/y?prepare=perhaps", "me:hunter2@x:54x9/y"):
        with pytest.raises(UsageError) as refused:
            await open_store(f"postgresql://{address}")
        assert "hunter2" not in str(refused.value)


async def test_statements_need_not_be_prepared(in_postgres: Place) -> None:
    store = await open_store(in_postgres.path + "&prepare=no")
    try:
        claim = await talked(store, CWD, "one needle")
        fork = await store.fork(claim, info(messages=1), SessionState(), up_to=None, lines=[])
        await turn(store, fork.claim)
        assert await hits(store, "needle") == ["one needle"]
    finally:
        await store.close()


@pytest.mark.requirement("P12")
@pytest.mark.parametrize("few", [0, 5, 6, 7, 30], ids=lambda few: f"few are {few}")
async def test_what_is_older_than_those_walked_through_is_found_newest_first_and_nothing_of_others(
    in_postgres: Place, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    for name, value in (("WALKED", 4), ("PAGE", 2), ("FEW", few)):
        monkeypatch.setattr(f"holdfast.store.postgres.search.{name}", value)
    async with in_postgres.open() as store:
        for number in range(12):
            principal = "me" if number % 2 else "another"
            claim = await store.create(msgspec.structs.replace(info(), principal=principal), SessionState())
            await turn(store, claim, message(f"needle {number}"), message(f"hay {number}"))
        for principal, expected in (("me", [11, 9, 7, 5, 3, 1]), ("another", [10, 8, 6, 4, 2, 0]), ("nobody", [])):
            for limit in (1, 3, 20):
                found = await store.search("needle", Scope(principal), cwd=None, limit=limit)
                assert [hit.text for hit in found] == [f"needle {number}" for number in expected[:limit]]
            assert await store.search("absent", Scope(principal), cwd=None, limit=20) == []
