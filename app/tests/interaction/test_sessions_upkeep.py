"""`holdfast sessions stats`, `vacuum` and `doctor`."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from app.tests.support.commands import ELSEWHERE, HERE, TOOLS, a_store, live_at, sessions
from core.tests.support import postgres
from core.tests.support.engines import engine_process

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    live_at(tmp_path / "s.db", monkeypatch, tmp_path)
    return tmp_path / "s.db"


def make(place: Path, *talks: tuple[str, tuple[str, ...]]) -> list[str]:
    return asyncio.run(a_store(place, *talks))


def test_what_is_in_the_store_is_counted(place: Path) -> None:
    ids = make(place, (HERE, ("say 1", "\n".join(TOOLS))), (HERE, ("say 2",)), (ELSEWHERE, ("say 3",)), (HERE, ()))
    sessions("archive", ids[1])
    out = sessions("stats").out
    assert "Sessions         3, 1 archived\nNever prompted   1\nMessages         9\n" in out
    assert out.endswith(f"       1         2  just now  {ELSEWHERE}\n       1         5  just now  {HERE}\n")
    found = sessions("stats", "--json").json
    assert (found["sessions"], found["messages"], found["directories"][0]["cwd"]) == (3, 9, ELSEWHERE)
    assert found["size"]["used"] > 0


def test_the_space_of_what_was_deleted_is_given_back(place: Path) -> None:
    (one, _) = make(place, (HERE, ("say " + "x" * 3_000_000,)), (HERE, ("say 2",)))
    sessions("delete", one, "--yes")
    done = sessions("vacuum", "--json").json
    assert done["after"] < done["before"] / 2
    assert sessions("vacuum").out.endswith(" now.\n")


def test_a_database_says_what_was_freed_for_reuse_as_a_vacuum_cannot_make_it_smaller() -> None:
    address = postgres.empty_database()
    (one, _) = asyncio.run(a_store(address, (HERE, ("say " + "x" * 300_000,)), (HERE, ("say 2",))))
    sessions("delete", one, "--yes", "--store", address)
    out = sessions("vacuum", "--store", address).out
    assert "freed for reuse" in out and "before" not in out
    assert set(sessions("vacuum", "--json", "--store", address).json) == {"before", "after", "reusable"}


def test_progress_is_shown_to_somebody_who_looks_and_is_gone_afterwards(place: Path) -> None:
    make(place, (HERE, ("say 1",)))
    assert sessions("vacuum").err == ""
    assert "Putting" in sessions("vacuum", terminal=True).err


def test_a_store_that_is_well_is_told_to_be_well(place: Path) -> None:
    make(place, (HERE, ("say 1",)))
    done = sessions("doctor")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[0].endswith(str(place))
    assert [it[0] for it in done.out.splitlines()[1:]] == ["✓"] * 11
    assert {it["level"] for it in sessions("doctor", "--json").json["findings"]} == {"ok"}


def test_what_is_wrong_is_explained_and_put_right_where_that_is_safe(place: Path) -> None:
    make(place, (HERE, ("say 1",)))
    place.chmod(0o644)
    (place.parent / "s.db.turns" / "77-1.jsonl").write_text("{}\n")
    done = sessions("doctor")
    assert done.status == 0
    assert "✓ permissions" in done.out and "· turn logs" in done.out
    assert place.stat().st_mode & 0o777 == 0o600  # it is made private whenever it is opened
    assert "`holdfast sessions doctor --repair`" in done.out
    repaired = sessions("doctor", "--repair", "--json")
    assert repaired.status == 0
    assert len(repaired.json["repaired"]) == 1
    assert {it["level"] for it in repaired.json["findings"]} == {"ok"}


def test_a_file_that_cannot_be_opened_as_a_store_is_explained(place: Path) -> None:
    place.write_bytes(b"SQLite format 3\0" + b"\xff" * 5_000)
    done = sessions("doctor")
    assert done.status == 1
    assert "✗ store" in done.out and "restore a backup" in done.out
    assert sessions("doctor", "--json").json["findings"][0]["level"] == "problem"


async def test_turns_that_broke_are_told_and_are_no_problem(place: Path) -> None:
    async with engine_process(place) as other:
        session = await other.do("create")
        await other.do("begin", session, "say half\nwait gate")
        running = await asyncio.to_thread(sessions, "doctor")
        assert "1 running" in running.out and f"In use by process {other.pid}" in running.out
        await other.kill()
    done = await asyncio.to_thread(sessions, "doctor")
    assert done.status == 0
    assert f"as in {session}" in done.out and "Nothing was lost" in done.out


@pytest.mark.requirement("P11")
@pytest.mark.parametrize("wrong", ["title = x'ff41'", "cwd = x'2fff'", "additional = '['", "state = x'7b'"])
def test_a_session_whose_row_is_damaged_is_listed_with_the_others_and_the_doctor_names_it(
    place: Path, wrong: str
) -> None:
    ids = make(place, (HERE, ("say 1",)), (HERE, ("say 2",)))
    with closing(sqlite3.connect(place)) as db, db:
        db.execute(f"UPDATE session SET {wrong} WHERE id = ?", (ids[0],))
    assert {each["sessionId"] for each in sessions("list", "--all", "--json").json["sessions"]} == set(ids)
    assert sessions("list", "--all").status == 0
    shown = sessions("show", ids[0])
    assert shown.status == 1 and f"session {ids[0]} is damaged" in shown.err
    assert sessions("show", ids[1]).status == 0
    examined = sessions("doctor")
    assert examined.status == 1 and f"damaged, as of {ids[0]}" in examined.out
