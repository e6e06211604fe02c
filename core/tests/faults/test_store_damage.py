"""Damage inside what is stored is noticed, told, and leaves the rest readable (P11)."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import msgspec
import pytest

from core.tests.support.stores import ALL, CWD, Place, bodies, history, hits, info, message, new, prompt, talked, turn
from holdfast.errors import StoreDamaged
from holdfast.format import updates_in
from holdfast.model import SessionState
from holdfast.store import Changes
from holdfast.store.entries import read_entries

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.store import SessionStore

pytestmark = pytest.mark.requirement("P11")

# apsw describes its values with a type that strict checking cannot see through.
# pyright: reportUnknownMemberType=false

SAID = [message(f"word{n} {'x' * 20_000}", key=f"m{n}") for n in range(12)]
"""Three to a segment, if they are sealed at once."""

SMALL = [message("small one", key="s1"), message("small two", key="s2")]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "sessions.db"))


def spoil(place: Place, statement: str, *bindings: object) -> None:
    with closing(apsw.Connection(place.path)) as db:
        db.execute(statement, bindings)  # pyright: ignore[reportArgumentType]


def flip(place: Place, text: str) -> None:
    """Change a letter of something that was said; what is stored stays JSON."""
    other = ("z" if text[0] != "z" else "y") + text[1:]
    spoil(
        place,
        "UPDATE segment SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB) WHERE instr(body, ?)",
        text,
        other,
        text,
    )


async def filled(place: Place) -> str:
    async with place.open() as store:
        claim = await new(store)
        await turn(store, claim, *SAID)
        for small in SMALL:
            await turn(store, claim, small)
        await store.release(claim)
    return claim.session


async def marked(store: SessionStore, session: str, start: int = 0, end: int = 1 << 40) -> list[object]:
    """Read with marks; give keys of messages and counts of what is damaged."""
    found: list[object] = []
    async for blocks in store.read(session, start, end, damaged="mark"):
        for line in b"\n".join(blocks).split(b"\n"):
            update = msgspec.json.decode(updates_in(line))
            found.append(update.get("messageId") or (update["sessionUpdate"], update["firstLine"], update["lines"]))
    return found


async def test_a_flipped_letter_is_an_error_that_says_where_it_is_and_what_is_before_it_comes_first(
    place: Place,
) -> None:
    session = await filled(place)
    flip(place, "word4 ")
    async with place.open() as store:
        assert await history(store, session, 3) == bodies(SAID[:3])
        reading = store.read(session, 0, 14)
        assert b"\n".join(await anext(reading)).split(b"\n") == bodies(SAID[:3])
        with pytest.raises(StoreDamaged, match=rf"Lines 4 to 6 of session {session} are damaged.*sessions show"):
            await anext(reading)
        assert await history(store, session, 12, start=6) == bodies(SAID[6:])
        with pytest.raises(StoreDamaged, match="Lines 5 to 6 "):
            await history(store, session, start=4)
        assert (await store.get(session)).lines == 14


async def test_what_is_whole_can_be_read_with_a_mark_in_the_place_of_the_rest(place: Place) -> None:
    session = await filled(place)
    flip(place, "word4 ")
    flip(place, "small one")
    async with place.open() as store:
        keys = [f"m{n}" for n in range(12)]
        damaged, small = ("_holdfast/damaged", 3, 3), ("_holdfast/damaged", 12, 1)
        assert await marked(store, session) == [*keys[:3], damaged, *keys[6:], small, "s2"]
        assert await marked(store, session, 2, 7) == ["m2", damaged, "m6"]
        assert await marked(store, session, 4, 5) == [("_holdfast/damaged", 4, 1)]
        assert await marked(store, session, 5, 7) == [("_holdfast/damaged", 5, 1), "m6"]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("DELETE FROM history_segment WHERE position = 0", [("_holdfast/damaged", 0, 3), "m3"]),
        ("DELETE FROM history_segment WHERE position = 3", ["m0", "m1", "m2", ("_holdfast/damaged", 3, 3), "m6"]),
        ("UPDATE segment SET body = x'' WHERE id = 1", [("_holdfast/damaged", 0, 3), "m3"]),
        ("UPDATE segment SET checksum = NULL, body = x'00ff0a0a' WHERE id = 1", [("_holdfast/damaged", 0, 3), "m3"]),
        ("UPDATE segment SET checksum = NULL, lines = 2 WHERE id = 1", None),
        ("UPDATE segment SET checksum = checksum + 1 WHERE id = 1", [("_holdfast/damaged", 0, 3), "m3"]),
        ("UPDATE segment SET body = CAST(body AS TEXT) || 'x' WHERE id = 1", [("_holdfast/damaged", 0, 3), "m3"]),
        ("UPDATE segment SET body = CAST(x'ff61' AS TEXT) WHERE id = 1", [("_holdfast/damaged", 0, 3), "m3"]),
        ("UPDATE segment SET body = 7 WHERE id = 1", [("_holdfast/damaged", 0, 3), "m3"]),
        ("UPDATE segment SET lines = 'x' WHERE id = 1", [("_holdfast/damaged", 0, 3), "m3"]),
        ("UPDATE segment SET lines = 0 WHERE id = 1", [("_holdfast/damaged", 0, 3), "m3"]),
        ("UPDATE history_segment SET position = 4 WHERE position = 3", None),
    ],
)
async def test_whatever_is_missing_is_marked_and_never_passed_over(
    place: Place, wrong: str, expected: list[object] | None
) -> None:
    session = await filled(place)
    spoil(place, wrong)
    async with place.open() as store:
        found = await marked(store, session)
        with pytest.raises(StoreDamaged):
            await history(store, session)
        if expected is not None:
            assert found[: len(expected)] == expected
            assert found[-3:] == ["m11", "s1", "s2"]


KEYS = [*(f"m{n}" for n in range(12)), "s1", "s2"]


@pytest.mark.parametrize("lines", [4, 5, 6, 9, 11, 12, 14, 1 << 40])
@pytest.mark.parametrize("segment", [1, 2, 4])
async def test_a_part_that_counts_its_lines_wrongly_hides_none_of_the_next(
    monkeypatch: pytest.MonkeyPatch, place: Place, segment: int, lines: int
) -> None:
    session = await filled(place)
    spoil(place, "UPDATE segment SET lines = ? WHERE id = ?", lines, segment)
    for size in (1, 1 << 20):  # each part is read by itself, and all at once
        monkeypatch.setattr("holdfast.store.sqlite.histories.FIRST_READ_BYTES", size)
        monkeypatch.setattr("holdfast.store.sqlite.histories.READ_BYTES", size)
        async with place.open() as store:
            assert [key for key in await marked(store, session) if isinstance(key, str)] == KEYS
            assert await history(store, session) == bodies(SAID + SMALL)


@pytest.mark.parametrize("lines", [0, 1, 11, 13])
async def test_a_session_that_counts_too_few_lines_is_not_taken_for_a_short_one(place: Place, lines: int) -> None:
    session = await filled(place)
    spoil(place, "UPDATE session SET lines = ?", lines)
    async with place.open() as store:
        with pytest.raises(StoreDamaged, match=f"Lines {lines + 1} to 14 "):
            await history(store, session, lines)
        assert await marked(store, session) == KEYS
        assert await marked(store, session, end=lines) == KEYS
        found = {finding.about: finding async for finding in store.examine()}
        assert found["histories"].level == "problem"


async def test_the_doctor_finds_parts_that_are_out_of_place(place: Place) -> None:
    session = await filled(place)
    spoil(place, "UPDATE history_segment SET position = 4 WHERE position = 3")
    async with place.open() as store:
        found = {finding.about: finding async for finding in store.examine()}
        assert found["histories"].level == "problem"
        assert f"line 5 of {session}" in found["histories"].says


@pytest.mark.parametrize(
    "wrong",
    [
        "title = x'ff4142'",
        "cwd = x'2f74'",
        "additional = '[oops'",
        "additional = x'ff'",
        "state = x'7b'",
        "state = 3",
        "created_at = 'abc'",
        "lines = 'x'",
    ],
)
async def test_a_session_whose_row_is_damaged_is_told_of_and_harms_no_other(place: Place, wrong: str) -> None:
    session = await filled(place)
    async with place.open() as store:
        other = (await talked(store, CWD, "whole")).session
    spoil(place, f"UPDATE session SET {wrong} WHERE id = ?", session)
    async with place.open() as store:
        page = await store.list(ALL, cwd=None, archived="exclude", cursor=None, limit=50)
        assert {each.id for each in page.sessions} == {session, other}
        assert (await store.get(other)).info.id == other
        with pytest.raises(StoreDamaged, match=f"session {session} is damaged"):
            await store.get(session)
        found = {finding.about: finding async for finding in store.examine()}
        assert found["sessions"].level == "problem"
        assert session in found["sessions"].says
        assert other not in found["sessions"].says


async def test_a_history_whose_end_is_missing_is_not_taken_for_a_short_one(place: Place) -> None:
    session = await filled(place)
    spoil(place, "DELETE FROM history_segment WHERE position >= 9")
    async with place.open() as store:
        with pytest.raises(StoreDamaged, match="Lines 10 to 14 "):
            await history(store, session)
        assert await marked(store, session) == [*(f"m{n}" for n in range(9)), ("_holdfast/damaged", 9, 5)]


async def test_people_read_what_is_whole_and_see_what_is_not(place: Place) -> None:
    session = await filled(place)
    flip(place, "word4 ")
    async with place.open() as store:
        snapshot = await store.snapshot(session)
        entries = [entry async for entry in read_entries(store, snapshot)]
        kinds = [entry.entry.entity or entry.entry.members["sessionUpdate"] for entry in entries]
        assert kinds == ["agent_message"] * 3 + ["_holdfast/damaged"] + ["agent_message"] * 8
        assert [entry.number for entry in entries] == list(range(1, 13))


async def test_a_session_with_damage_goes_on_and_the_damage_stays_to_be_seen(place: Place) -> None:
    session = await filled(place)
    flip(place, "small one")
    async with place.open() as store:
        claim = (await store.claim(session)).claim
        for n in range(12):
            await turn(store, claim, message(f"later {n} {'y' * 20_000}", key=f"l{n}"))
        found = await marked(store, session)
        assert found[12:14] == [("_holdfast/damaged", 12, 1), "s2"]
        assert found[14:] == [f"l{n}" for n in range(12)]
        forked = await store.fork(claim, info(), SessionState(), up_to=None, lines=[])
        assert await marked(store, forked.claim.session) == found


async def test_a_fork_that_has_to_look_into_what_is_damaged_is_refused(place: Place) -> None:
    session = await filled(place)
    flip(place, "word4 ")
    async with place.open() as store:
        claim = (await store.claim(session)).claim
        forked = await store.fork(claim, info(), SessionState(), up_to="m1", lines=[])
        assert await history(store, forked.claim.session) == bodies(SAID[:2])
        made = info()
        with pytest.raises(StoreDamaged, match="Lines 4 to 6 "):
            await store.fork(claim, made, SessionState(), up_to="m9", lines=[])
        assert await store.find(made.id, limit=1) == []


async def test_a_search_says_where_something_was_found_that_cannot_be_read(place: Place) -> None:
    session = await filled(place)
    flip(place, "word4 ")
    async with place.open() as store:
        (hit,) = await store.search("word4", ALL, cwd=None, limit=9)
        assert (hit.session.id, hit.kind) == (session, "_holdfast/damaged")
        assert "damaged" in hit.text
        assert len(await hits(store, "word2")) == 1
        await talked(store, CWD, "word4 elsewhere")
        assert (await hits(store, "word4"))[0] == "word4 elsewhere"


async def test_the_doctor_finds_damaged_parts_and_says_of_which_session(place: Place) -> None:
    session = await filled(place)
    flip(place, "word4 ")
    async with place.open() as store:
        other = await talked(store, CWD, "whole")
        found = {finding.about: finding async for finding in store.examine()}
        assert [finding.about for finding in found.values() if finding.level == "problem"] == ["histories"]
        assert f"lines 4 to 6 of {session}" in found["histories"].says
        assert other.session not in found["histories"].says


async def test_the_index_is_made_anew_from_what_is_whole(place: Place) -> None:
    await filled(place)
    flip(place, "word4 ")
    spoil(place, "DELETE FROM words_docsize")
    async with place.open() as store:
        for finding in [finding async for finding in store.examine() if finding.repair]:
            await store.repair(finding)
        assert len(await hits(store, "word2")) == 1
        assert len(await hits(store, "word8")) == 1
        assert {finding.about async for finding in store.examine() if finding.level != "ok"} == {"histories"}


async def test_turns_are_stored_with_checksums_whatever_becomes_of_their_segments(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        for n in range(40):
            await store.begin(claim, prompt("x"), Changes())
            await store.seal(claim, [message(f"{n} {'x' * 9_000}", key=f"m{n}")], Changes(), messages=1)
        await store.fork(claim, info(), SessionState(), up_to="m7", lines=[message("on")])
        await store.hand_over(claim.session, "other")
    with closing(apsw.Connection(place.path)) as db:
        assert list(db.execute("SELECT id FROM segment WHERE checksum IS NULL")) == []
