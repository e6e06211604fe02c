"""What SQLite's write-ahead log has lost is noticed: the database is whole then, and older than it was (P11)."""

from __future__ import annotations

import logging
import random
import shutil
from typing import TYPE_CHECKING

import pytest

from core.tests.support.stores import bodies, history, message, new, turn
from holdfast.errors import HoldfastError
from holdfast.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.store.reports import Finding

pytestmark = pytest.mark.requirement("P11")

SAID = [message(f"word{n} {'x' * 300}", key=f"m{n}") for n in range(30)]


async def crashed(directory: Path) -> tuple[Path, str]:
    """Return a store as a machine that dies leaves it, with much in its write-ahead log, and its session."""
    image = directory / "image"
    store = await SqliteStore.open(str(directory / "s.db"))
    try:
        claim = await new(store)
        for said in SAID:
            await turn(store, claim, said)
        shutil.copytree(directory, image, ignore=shutil.ignore_patterns("image", "s.db.sockets"))
    finally:
        await store.close()
    return image / "s.db", claim.session


async def findings(store: SqliteStore) -> dict[str, Finding]:
    return {finding.about: finding for finding in [each async for each in store.examine()]}


async def test_what_damage_to_the_write_ahead_log_takes_away_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, session = await crashed(tmp_path)
    chance, lost = random.Random(7), 0
    for attempt in range(25):
        spoiled = tmp_path / f"spoiled{attempt}"
        shutil.copytree(path.parent, spoiled)
        wal = spoiled / "s.db-wal"
        data = bytearray(wal.read_bytes())
        at = chance.randrange(len(data))
        data[at] ^= 0xFF
        wal.write_bytes(data)
        caplog.clear()
        try:
            store = await SqliteStore.open(str(spoiled / "s.db"))
        except HoldfastError:
            continue  # noticed
        try:
            found = await findings(store)
            try:
                said = await history(store, session)
            except HoldfastError:
                continue
            if said != bodies(SAID):
                lost += 1
                assert said == bodies(SAID)[: len(said)]
                assert found["losses"].level == "problem", f"byte {at}: {len(said)} entries of {len(SAID)}"
                assert "not in the session store any more" in caplog.text
        finally:
            await store.close()
    assert lost


async def test_a_store_that_has_lost_nothing_says_so_after_a_crash_and_an_older_copy_is_told(tmp_path: Path) -> None:
    path, session = await crashed(tmp_path)
    store = await SqliteStore.open(str(path))
    try:
        assert await history(store, session) == bodies(SAID)
        assert (await findings(store))["losses"].level == "ok"
    finally:
        await store.close()
    older = tmp_path / "older"
    shutil.copy(path, older)
    store = await SqliteStore.open(str(path))
    try:
        await new(store)
    finally:
        await store.close()
    shutil.copy(older, path)
    for repaired in (False, True):
        store = await SqliteStore.open(str(path))
        try:
            found = (await findings(store))["losses"]
            assert (found.level == "ok") is repaired
            if not repaired:
                assert found.repair is not None
                await store.repair(found)
        finally:
            await store.close()


async def test_a_store_that_was_removed_and_begun_anew_has_lost_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, _ = await crashed(tmp_path)
    for name in ("", "-wal", "-shm"):
        path.with_name(path.name + name).unlink(missing_ok=True)
    caplog.set_level(logging.ERROR)
    store = await SqliteStore.open(str(path))
    try:
        await new(store)
        assert (await findings(store))["losses"].level == "ok"
    finally:
        await store.close()
    assert not caplog.records
