"""What every store offers to whoever looks after it: to find, to look, to change by hand, to add whole, to examine."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import msgspec
import pytest

from core.tests.support.neighbours import neighbour
from core.tests.support.stores import (
    ALL,
    CWD,
    NOTHING,
    bodies,
    died,
    history,
    hits,
    info,
    keep,
    lines,
    logged,
    message,
    new,
    prompt,
    talked,
    turn,
    walk,
)
from holdfast.errors import SessionNotFound, StoreError
from holdfast.model import SessionState
from holdfast.store import Changes

if TYPE_CHECKING:
    from core.tests.support.stores import Place
    from holdfast.model import Update
    from holdfast.store import Finding, SessionStore


async def findings(store: SessionStore) -> dict[str, Finding]:
    return {finding.about: finding async for finding in store.examine()}


async def repaired(store: SessionStore) -> list[str]:
    """Put right what can be; give what is still not well."""
    for finding in [finding async for finding in store.examine() if finding.repair]:
        await store.repair(finding)
    return [finding.about async for finding in store.examine() if finding.level != "ok"]


def spoil(place: Place, *statements: str) -> None:
    with closing(apsw.Connection(place.path)) as db:
        for statement in statements:
            db.execute(statement)  # pyright: ignore[reportUnknownMemberType]


def spoil_pages(place: Place, table: str) -> None:
    with closing(apsw.Connection(place.path)) as db:
        pages = [page for (page,) in db.execute("SELECT pageno FROM dbstat WHERE name = ?", (table,))]  # pyright: ignore[reportUnknownMemberType]
    file = Path(place.path)
    data = bytearray(file.read_bytes())
    for page in pages[1:]:
        data[(page - 1) * 4096 : (page - 1) * 4096 + 64] = b"\xff" * 64
    file.write_bytes(data)


def modes(place: Place) -> list[int]:
    return [Path(f"{place.path}{name}").stat().st_mode & 0o777 for name in ("", ".turns")]


def set_modes(place: Place, file: int, directory: int) -> None:
    Path(place.path).chmod(file)
    Path(f"{place.path}.turns").chmod(directory)


# Finding and looking


async def test_sessions_are_found_by_how_their_ids_begin(place: Place) -> None:
    async with place.open() as store:
        ids = sorted([(await new(store)).session for _ in range(20)])
        assert [session.id for session in await store.find("sess_", limit=99)] == ids
        assert [session.id for session in await store.find("sess_", limit=3)] == ids[:3]
        assert [session.id for session in await store.find(ids[7], limit=9)] == [ids[7]]
        assert [session.id for session in await store.find(ids[7][:20], limit=9)] == [ids[7]]
        for nothing in ("x", "sess_\uffff", "%", "sess_*", ids[7] + "0"):
            assert await store.find(nothing, limit=9) == []


async def test_whoever_looks_sees_the_turn_that_runs_and_disturbs_nobody(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, CWD, "before")
        assert (await store.snapshot(claim.session)).unsealed is None
        log = await store.begin(claim, asked := prompt("question"), NOTHING)
        await keep(log, said := message("half an answer"))
        seen = await store.snapshot(claim.session)
        record, unsealed = seen.record, seen.unsealed
        assert record == await store.get(claim.session)
        assert unsealed is not None and unsealed.running_in is not None
        assert unsealed.lines == [*asked, *([logged(said)] if place.lasts else [])]
        await store.seal(claim, [said], NOTHING, messages=1)
        assert (await store.snapshot(claim.session)).unsealed is None
        with pytest.raises(SessionNotFound):
            await store.snapshot("sess_0")


async def test_whoever_looks_sees_what_a_turn_had_said_that_broke_and_leaves_it_as_it_is(lasting: Place) -> None:
    async with lasting.open() as store:
        async with neighbour(lasting.path) as other:
            session = await other.do("create")
            await other.do("begin", session, "q")
            await other.do("append", session, "half")
            running = (await store.snapshot(session)).unsealed
            assert running is not None and str(other.pid) in (running.running_in or "")
        await lasting.end_lease(session)
        await died(store, session)
        for _ in range(2):
            broken = (await store.snapshot(session)).unsealed
            assert broken is not None and broken.running_in is None
            assert broken.lines == running.lines
        claimed = await store.claim(session)
        assert claimed.broken is not None and claimed.broken.lines == running.lines


# Changing and adding


async def test_a_title_is_changed_by_hand_and_the_writer_writes_on(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, CWD, "hello", title="old words")
        before = (await store.get(claim.session)).info
        await store.edit(claim.session, title="new words")
        record = await store.get(claim.session)
        assert record.info == msgspec.structs.replace(before, title="new words")
        assert record.state.title_by == "user"
        assert await hits(store, "words") == ["new words"]
        await turn(store, claim, message("and on"))
        assert (await store.get(claim.session)).info.title == "new words"
        await store.edit(claim.session, title=None)
        assert (await store.get(claim.session)).info.title is None
        assert await hits(store, "words") == []


async def test_a_session_is_put_away_by_hand_while_a_turn_runs(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store)
        await store.begin(claim, prompt("q"), NOTHING)
        await store.edit(claim.session, archived=True)
        assert await walk(store) == []
        await store.seal(claim, [message("a")], NOTHING, messages=1)
        assert await walk(store, archived="only") == [claim.session]
        await store.edit(claim.session, archived=False)
        assert await walk(store) == [claim.session]
        with pytest.raises(SessionNotFound):
            await store.edit("sess_0", archived=True)


async def test_a_session_is_added_whole_and_anybody_may_claim_it(place: Place) -> None:
    written = [message(f"text {n} " + "x" * 5_000, key=f"m{n}") for n in range(30)]
    about = msgspec.structs.replace(info(title="from elsewhere", at=7, messages=30), archived=True)
    state = SessionState(options={"units": "f"}, memory={"n": 1}, title_by="user")
    async with place.open() as store:
        await store.add(about, state, written)
        record = await store.get(about.id)
        assert (record.info, record.state, record.lines) == (about, state, 30)
        assert await history(store, about.id) == bodies(written)
        assert await walk(store, archived="only") == [about.id]
        assert (await hits(store, "17"))[0].startswith("text 17")
        assert await hits(store, "elsewhere") == ["from elsewhere"]
        claimed = await store.claim(about.id)
        await turn(store, claimed.claim, message("more"))
        with pytest.raises(StoreError):
            await store.add(about, state, written)
        assert len(await history(store, about.id)) == 31


# Counting


async def test_what_is_there_is_counted(place: Place) -> None:
    async with place.open() as store:
        empty = await store.stats()
        assert (empty.sessions, empty.blank, empty.oldest, empty.newest, empty.directories) == (0, 0, None, None, ())
        await new(store)
        claims = [await talked(store, "/a", "one", "two"), await talked(store, "/b", "three", title="b")]
        claims += [await talked(store, "/a", "four"), await talked(store, "/c", "five")]
        await store.save(claims[3], Changes(archived=True))
        found = await store.stats()
        assert (found.sessions, found.archived, found.blank, found.messages) == (4, 1, 1, 5)
        assert (found.entries, found.texts) == (5, 6)
        assert [(directory.cwd, directory.sessions, directory.messages) for directory in found.directories] == [
            ("/a", 2, 3),
            ("/b", 1, 1),
        ]
        newest = [(await store.get(claim.session)).info.updated_at for claim in claims]
        assert (found.oldest, found.newest) == (1, max(newest))
        assert found.size.used > found.history_bytes > 0


async def test_the_space_of_what_was_deleted_can_be_given_back(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, CWD, *(f"{n} " + "x" * 50_000 for n in range(40)))
        await store.release(claim)
        await store.delete(claim.session)
        before = await store.size()
        assert before.free > 1_000_000 or place.is_postgres, "a server counts when it has the time"
        await store.vacuum()
        after = await store.size()
        assert after.free < 100_000 or place.is_postgres
        assert after.used < before.used - 1_000_000
        assert after.shrinks is not place.is_postgres
        assert place.is_postgres or await store.stats() == msgspec.structs.replace(await store.stats(), size=after)


async def test_whoever_waits_no_longer_for_a_long_piece_of_work_stops_it(lasting: Place) -> None:
    async with lasting.open() as store:
        claim = await talked(store, CWD, *(f"{n} " + "word " * 10_000 for n in range(40)))
        task = asyncio.ensure_future(store.vacuum())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(await history(store, claim.session)) == 40
        await store.vacuum()
        assert await repaired(store) == []


# Examining


async def test_a_store_that_is_well_is_found_to_be_well(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, CWD, "hello", title="t")
        fork = (await store.fork(claim, info(messages=1), SessionState(), up_to=None, lines=[])).claim
        await turn(store, fork, message("in the fork"))
        await talked(store)
        await store.delete(claim.session)
        assert {finding.level for finding in (await findings(store)).values()} == {"ok"}


async def test_words_that_are_missing_too_many_or_damaged_are_noticed_and_made_anew(in_file: Place) -> None:
    async with in_file.open() as store:
        claim = await new(store, title="green title")
        long: Update = {"sessionUpdate": "agent_message", "messageId": "long", "content": []}
        chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "long"}
        said = [{**chunk, "content": {"type": "text", "text": f"green part {n}"}, "_meta": {"n": n}} for n in range(3)]
        await turn(store, claim, message("green one"), *lines(long, *said), message("green two"))
        fork = (
            await store.fork(claim, info(messages=3, title="green fork"), SessionState(), up_to=None, lines=[])
        ).claim
        await turn(store, fork, message("green three"))
        expected = await hits(store, "green")
        assert len(expected) == 6
    some = "(SELECT max(id) FROM doc WHERE segment IS NOT NULL)"
    for wrong in (
        (f"DELETE FROM doc WHERE id = {some}",),
        (f"DELETE FROM words WHERE rowid = {some}",),
        ("INSERT INTO words (rowid, text) VALUES (99, 'green')",),
        (f"UPDATE doc SET segment = 77 WHERE id = {some}",),
        ("UPDATE session SET title_doc = NULL",),
        ("DELETE FROM words_docsize",),
        ("UPDATE words_data SET block = x'00' WHERE id > 10",),
        ("DELETE FROM words_data", "DELETE FROM words_idx"),
    ):
        spoil(in_file, *wrong)
        async with in_file.open() as store:
            found = await findings(store)
            assert found["search index"].repair == "words", wrong
            assert [finding.about for finding in found.values() if finding.level != "ok"] == ["search index"], wrong
            assert await repaired(store) == [], wrong
            assert sorted(await hits(store, "green")) == sorted(expected), wrong
            assert {hit.text for hit in await store.search("part", ALL, cwd=None, limit=9)} == {expected[3]}


async def test_rights_that_others_should_not_have_are_noticed_and_taken_away(in_file: Place) -> None:
    async with in_file.open() as store:
        await talked(store)
        set_modes(in_file, 0o644, 0o755)
        found = (await findings(store))["permissions"]
        assert found.level == "problem" and in_file.path in found.says
        assert await repaired(store) == []
        assert modes(in_file) == [0o600, 0o700]


async def test_logs_that_were_left_over_are_noticed_and_removed_and_no_others(in_file: Place) -> None:
    async with in_file.open() as store:
        claim = await talked(store)
        log = await store.begin(claim, prompt("q"), NOTHING)
        running = in_file.beside("turns")
        for name in ("1-1.jsonl", "99-3.jsonl"):
            (running[0].parent / name).write_text("{}\n")
        assert "2 were left over" in (await findings(store))["turn logs"].says
        assert await repaired(store) == []
        assert in_file.beside("turns") == running
        log.append(b"{}\n")


async def test_turns_that_broke_and_processes_at_work_are_told(lasting: Place) -> None:
    async with lasting.open() as store:
        async with neighbour(lasting.path) as other:
            session = await other.do("create")
            await other.do("begin", session, "q")
            found = await findings(store)
            assert found["turns"].says == "1 running"
            assert f"process {other.pid} " in found["processes"].says
        await lasting.end_lease(session)
        await died(store, session)
        found = await findings(store)
        assert found["turns"].level == "note" and session in found["turns"].says
        assert "1 sessions were last used by processes that died" in found["processes"].says
        assert (await store.snapshot(session)).unsealed is not None


async def test_parts_of_histories_that_are_missing_or_belong_to_nobody_are_noticed(in_file: Place) -> None:
    async with in_file.open() as store:
        claim = await talked(store)
        await talked(store, CWD, "x")
    spoil(in_file, "DELETE FROM history_segment WHERE session = 2")
    async with in_file.open() as store:
        found = (await findings(store))["histories"]
        assert found.level == "problem" and claim.session not in found.says
        assert await repaired(store) == ["histories"]


async def test_a_damaged_page_is_noticed_and_nothing_is_done_to_it(in_file: Place) -> None:
    async with in_file.open() as store:
        for _ in range(50):
            await talked(store, CWD, "x" * 3_000)
        await store.vacuum()
    spoil_pages(in_file, "segment")
    async with in_file.open() as store:
        found = await findings(store)
        assert {"problem"} <= {finding.level for finding in found.values()}
        assert found["database" if "database" in found else "integrity"].level == "problem"
