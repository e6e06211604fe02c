"""A store that an older version made opens, whole (F6).

`store_format_1` was made by the last version that wrote format 1: a session with a long past, one fork that shares all
of it and one that shares a part, one that was archived, one that was never prompted, one whose process was killed in
the middle of a turn and in the middle of a line, one whose turn was left unsealed, and the space of one that was
deleted. `known.json` is what that version itself could say about it; of lines, the beginning of their SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from core.tests.support.stores import ALL, Place, history, hits, message, prompt, turn, walk
from holdfast.errors import StoreDamaged
from holdfast.format import FORMAT
from holdfast.model import LOCAL, UNBOUND, Scope, SessionInfo, SessionState
from holdfast.store import Changes
from holdfast.store.sqlite import database

pytestmark = pytest.mark.requirement("F6")

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false

OLD = Path(__file__).with_name("store_format_1")
KNOWN: dict[str, Any] = json.loads((OLD / "known.json").read_text())
SESSIONS: dict[str, Any] = KNOWN["sessions"]
LONG, FORK, PART, ARCHIVED, BLANK, BROKEN, LEFT = (f"sess_{n:032x}" for n in (1, 2, 3, 4, 5, 7, 8))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    shutil.copytree(OLD, tmp_path / "store")
    return Place(str(tmp_path / "store" / "sessions.db"))


def test_there_is_a_migration_for_every_number_of_the_format() -> None:
    assert len(database.migrations()) == FORMAT


async def test_every_session_is_there_with_every_line(place: Place) -> None:
    async with place.open() as store:
        assert [info.id for info in await store.find("sess_", limit=99)] == sorted(SESSIONS)
        for session, known in SESSIONS.items():
            record = await store.get(session)
            assert record.info == msgspec.convert(known["info"], SessionInfo)
            assert (record.info.principal, record.info.agent) == (LOCAL, UNBOUND)
            assert record.epoch == known["epoch"]
            lines = await history(store, session, record.lines)
            assert [hashlib.sha256(line).hexdigest()[:16] for line in lines] == known["lines"]
            assert await store.read_private(session) == []


async def test_what_a_session_remembers_is_kept_and_what_was_allowed_for_ever_is_not(place: Place) -> None:
    assert sum(bool(known["state"].get("permissions")) for known in SESSIONS.values()) == 3
    async with place.open() as store:
        for session, known in SESSIONS.items():
            state = msgspec.convert(known["state"], SessionState)
            state.permissions = {}
            assert (await store.get(session)).state == state


async def test_lists_and_searches_find_what_they_found(place: Place) -> None:
    async with place.open() as store:
        assert await walk(store, archived="include", limit=2) == KNOWN["list"]
        assert await walk(store, archived="only") == [ARCHIVED]
        assert await walk(store, Scope(LOCAL, "any agent"), cwd="/work") == [
            session for session in KNOWN["list"] if session != ARCHIVED
        ]
        found = await store.search("green", ALL, cwd=None, limit=99)
        assert [[hit.session.id, hit.kind, hit.key, hit.text] for hit in found] == KNOWN["green"]
        assert await store.agents(LOCAL) == []


async def test_turns_that_were_left_unsealed_are_recovered_once(place: Place) -> None:
    async with place.open() as store:
        for session in (BROKEN, LEFT):
            expected = [line.encode() for line in SESSIONS[session]["unsealed"]]
            assert len(expected) > 1
            snapshot = await store.snapshot(session)
            assert snapshot.unsealed is not None
            assert (snapshot.unsealed.lines, snapshot.unsealed.running_in) == (expected, None)
            claimed = await store.claim(session)
            assert claimed.broken is not None and claimed.broken.lines == expected
            await store.seal(claimed.claim, [message("recovered")], Changes(), messages=1)
            await store.release(claimed.claim)
            assert (await store.claim(session)).broken is None
        assert place.beside("turns") == []


async def test_forks_share_what_they_shared_and_outlive_each_other(place: Place) -> None:
    async with place.open() as store:
        before = await store.stats()
        long = [await history(store, session) for session in (LONG, FORK, PART)]
        assert long[1][: len(long[0]) - 2] == long[0][:-2]
        assert long[2] == long[0][: len(long[2])]
        await store.delete(LONG)
        assert [await history(store, session) for session in (FORK, PART)] == long[1:]
        assert (await store.stats()).entries > before.entries - len(long[0])
        assert "grass is green" in await hits(store, "green")
        claim = (await store.claim(FORK)).claim
        for n in range(20):
            await turn(store, claim, message(f"on {n} {'x' * 9_000}"))
        assert (await history(store, FORK))[: len(long[1])] == long[1]
        assert {finding.about: finding.level async for finding in store.examine() if finding.level == "problem"} == {}


async def test_a_session_is_gone_on_with_and_bound(place: Place) -> None:
    async with place.open() as store:
        claim = (await store.claim(LONG)).claim
        log = await store.begin(claim, prompt("on"), Changes(agent="weather"))
        log.append(b'{"sessionUpdate":"_x"}\n')
        await store.seal(claim, [message("on it goes")], Changes(), messages=1, private=[b"mine"])
        assert LONG in await walk(store, Scope(LOCAL, "weather"))
        assert LONG not in await walk(store, Scope(LOCAL, "code"))
        assert len(await history(store, LONG)) == len(SESSIONS[LONG]["lines"]) + 1


async def test_a_store_is_migrated_once_and_by_one_of_many(place: Place) -> None:
    async with place.open() as one, place.open() as other:
        assert await walk(one) == await walk(other)
    async with place.open() as again:
        assert await walk(again, archived="include") == KNOWN["list"]


async def test_a_damaged_state_does_not_keep_the_other_sessions_from_being_migrated(place: Place) -> None:
    spoil(place, "UPDATE session SET state = x'7b227065726d697373696f6e7322' WHERE id = ?", BLANK)
    async with place.open() as store:
        with pytest.raises(StoreDamaged):
            await store.get(BLANK)
        assert await walk(store, archived="include") == KNOWN["list"]


@pytest.mark.requirement("P11")
async def test_damage_from_before_there_were_checksums_is_found_where_it_is_no_json(place: Place) -> None:
    spoil(
        place,
        "UPDATE segment SET body = CAST(replace(CAST(body AS TEXT), 'grass is', 'grass\"is') AS BLOB)"
        " WHERE instr(body, 'grass is')",
    )
    async with place.open() as store:
        with pytest.raises(StoreDamaged, match=f"Lines 1 to .* of session {LONG}"):
            await history(store, LONG)
        found = {finding.about: finding async for finding in store.examine()}
        assert found["histories"].level == "problem" and LONG in found["histories"].says


def spoil(place: Place, statement: str, *bindings: str) -> None:
    with closing(apsw.Connection(place.path)) as db:
        db.execute(statement, bindings)
