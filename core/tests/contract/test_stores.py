"""What every store does with sessions: keeps them, changes them, lends them to one writer, deletes them.

What it does with lists, histories and words is in the files beside this one.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from core.tests.support.stores import (
    CWD,
    NOTHING,
    bodies,
    history,
    hits,
    info,
    logged,
    message,
    new,
    prompt,
    talked,
    turn,
    walk,
)
from holdfast.errors import SessionBusy, SessionMoved, SessionNotFound
from holdfast.model import SessionInfo, SessionState
from holdfast.store import Changes

if TYPE_CHECKING:
    from core.tests.support.stores import Place

STATE = SessionState(
    options={"units": "f", "loud": True},
    latest={"usage_update": {"sessionUpdate": "usage_update", "used": 2**60}},
    permissions={"write": True, "delete": False},
    memory={"é\U0001f600": [1, None, {"a": "\0\n"}]},
    title_by="user",
    forked_from="sess_other",
    interrupted=True,
)


# Creating and looking up


@pytest.mark.requirement("B1")
async def test_a_session_is_kept_as_it_was_made(place: Place) -> None:
    made = SessionInfo("sess_1", "/wo rk/é\U0001f600", ("/b", "/a'\"\n"), "T'\"\0é", 5, 7, archived=True, messages=3)
    async with place.open() as store:
        claim = await store.create(made, STATE)
        record = await store.get("sess_1")
        assert (record.info, record.state, record.lines) == (made, STATE, 0)
        assert (claim.session, claim.epoch) == ("sess_1", record.epoch)


@pytest.mark.requirement("B1")
async def test_a_session_that_never_got_a_prompt_is_there_after_a_restart(lasting: Place) -> None:
    async with lasting.open() as store:
        claim = await store.create(info(), STATE)
    async with lasting.open() as store:
        assert (await store.get(claim.session)).state == STATE


@pytest.mark.requirement("B1")
async def test_two_sessions_of_the_same_id_are_one_too_many(place: Place) -> None:
    async with place.open() as store:
        made = info(title="first")
        await store.create(made, SessionState())
        with pytest.raises(Exception, match=r".") as refused:
            await store.create(msgspec.structs.replace(made, title="second"), SessionState())
        assert type(refused.value).__module__.startswith("holdfast"), "no error of a database leaves the store"
        assert (await store.get(made.id)).info.title == "first"


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("session", ["nobody", "", "sess_'; DROP TABLE session", "%", "\0", "é" * 10_000])
async def test_a_session_that_is_not_there_is_not_found(place: Place, session: str) -> None:
    async with place.open() as store:
        await new(store)
        with pytest.raises(SessionNotFound):
            await store.get(session)
        with pytest.raises(SessionNotFound):
            await store.claim(session)
        with pytest.raises(SessionNotFound):
            await history(store, session)


async def test_stores_in_memory_have_nothing_in_common() -> None:
    from core.tests.support.stores import Place

    async with Place(":memory:").open() as one, Place(":memory:").open() as other:
        claim = await new(one)
        with pytest.raises(SessionNotFound):
            await other.get(claim.session)


# Changing


async def test_what_is_not_named_stays_as_it_was(place: Place) -> None:
    async with place.open() as store:
        claim = await store.create(info(title="T"), STATE)
        before = await store.get(claim.session)
        await store.save(claim, NOTHING)
        assert await store.get(claim.session) == before
        await store.save(claim, Changes(additional=("/x", "/y")))
        await store.save(claim, Changes(archived=True))
        after = await store.get(claim.session)
        assert after.info == msgspec.structs.replace(before.info, additional=("/x", "/y"), archived=True)
        assert after.state == STATE
        await store.save(claim, Changes(state=SessionState()))
        assert (await store.get(claim.session)).state == SessionState()


@pytest.mark.requirement("B17")
@pytest.mark.parametrize("title", ["New", "", None])
async def test_a_title_can_be_set_and_cleared(place: Place, title: str | None) -> None:
    async with place.open() as store:
        claim = await new(store, title="Old")
        await store.save(claim, Changes(title=title))
        assert (await store.get(claim.session)).info.title == title
        assert await hits(store, "old") == []
        assert await hits(store, "new") == ([title] if title else [])


async def test_a_state_that_changes_while_it_is_stored_is_stored_as_it_was(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        made, forked = info(), info()
        state = SessionState(memory={"n": 1})
        saves: list[asyncio.Task[object]] = [
            asyncio.create_task(store.save(claim, NOTHING)) for _ in range(50)
        ]  # so that the rest has to wait
        saves += [
            asyncio.create_task(store.save(claim, Changes(state=state))),
            asyncio.create_task(store.begin(claim, prompt("x"), Changes(state=state))),
            asyncio.create_task(store.create(made, state)),
            asyncio.create_task(store.fork(claim, forked, state, up_to=None, lines=[])),
        ]
        await asyncio.sleep(0)
        state.memory["n"] = 2
        for saving in saves:
            await saving
        for session in (claim.session, made.id, forked.id):
            assert (await store.get(session)).state.memory == {"n": 1}


@pytest.mark.requirement("B10")
async def test_neither_loading_nor_saving_changes_the_last_activity(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, CWD, "hello")
        before = (await store.get(claim.session)).info.updated_at
        claimed = await store.claim(claim.session)
        await history(store, claim.session)
        await store.save(claimed.claim, Changes(title="T", archived=True, additional=("/x",), state=STATE))
        await store.release(claimed.claim)
        assert (await store.get(claim.session)).info.updated_at == before


@pytest.mark.requirement("B4")
async def test_the_last_activity_only_grows_even_where_the_clock_goes_back(place: Place) -> None:
    future = 1 << 60
    async with place.open() as store:
        claim = await store.create(info(at=future), SessionState())
        seen = [future]
        for _ in range(3):
            await store.begin(claim, prompt("x"), NOTHING)
            seen.append((await store.get(claim.session)).info.updated_at)
            await store.seal(claim, [], NOTHING, messages=0)
            seen.append((await store.get(claim.session)).info.updated_at)
        assert seen == sorted(set(seen))


@pytest.mark.requirement("B5", "B10")
async def test_what_happens_between_turns_is_kept_and_is_no_activity(place: Place) -> None:
    async with place.open() as store:
        blank, used = await new(store), await talked(store, CWD, "hello")
        for claim, lines in ((blank, 1), (used, 2)):
            before = (await store.get(claim.session)).info
            log = await store.begin(claim, [], Changes(title="between"), activity=False)
            log.append(logged(message("in the background")) + b"\n")
            unsealed = (await store.snapshot(claim.session)).unsealed
            assert unsealed is not None
            await store.seal(claim, [message("in the background")], NOTHING, messages=1, activity=False)
            record = await store.get(claim.session)
            assert record.info == msgspec.structs.replace(before, title="between", messages=lines)
            assert record.lines == lines
        assert await walk(store) == [used.session]


async def test_a_turn_may_change_the_session_at_both_its_ends(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await store.begin(claim, prompt("x"), Changes(title="Begun"))
        assert (await store.get(claim.session)).info.title == "Begun"
        await store.seal(claim, [message("a")], Changes(title="Ended", state=STATE), messages=2)
        record = await store.get(claim.session)
        assert (record.info.title, record.info.messages, record.lines, record.state) == ("Ended", 2, 1, STATE)


# One writer (P4)


async def test_whoever_claims_a_session_is_the_only_one_who_may_write(place: Place) -> None:
    async with place.open() as store:
        stale = await talked(store, CWD, "a")
        claimed = await store.claim(stale.session)
        assert claimed.broken is None
        assert claimed.claim.epoch > stale.epoch
        assert claimed.record == await store.get(stale.session)
        before = await store.get(stale.session)
        with pytest.raises(SessionMoved):
            await store.save(stale, Changes(title="stale"))
        with pytest.raises(SessionMoved):
            await store.begin(stale, prompt("stale"), Changes(title="stale"))
        with pytest.raises(SessionMoved):
            await store.seal(stale, [message("stale")], Changes(title="stale"), messages=1)
        with pytest.raises(SessionMoved):
            await store.fork(stale, info(title="stale"), SessionState(), up_to=None, lines=[])
        await store.release(stale)
        assert await store.get(stale.session) == before
        assert await hits(store, "stale") == []
        await turn(store, claimed.claim, message("b"))


async def test_a_session_whose_turn_runs_here_is_neither_lent_nor_deleted(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await store.begin(claim, prompt("x"), NOTHING)
        for refused in (store.claim(claim.session), store.delete(claim.session)):
            with pytest.raises(SessionBusy, match="running"):
                await refused
        await store.seal(claim, [message("a")], NOTHING, messages=1)
        await store.claim(claim.session)


async def test_a_session_that_was_let_go_can_be_claimed_again(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await store.release(claim)
        again = (await store.claim(claim.session)).claim
        assert again.epoch > claim.epoch
        await turn(store, again, message("a"))


async def test_letting_go_twice_takes_nothing_from_whoever_has_it_now(place: Place) -> None:
    async with place.open() as store:
        old = await new(store)
        now = (await store.claim(old.session)).claim
        await store.release(old)
        await turn(store, now, message("a"))


async def test_a_claim_survives_a_restart_only_as_a_number(lasting: Place) -> None:
    async with lasting.open() as store:
        claim = await talked(store, CWD, "a")
    async with lasting.open() as store:
        claimed = await store.claim(claim.session)
        assert claimed.claim.epoch == claim.epoch + 1
        with pytest.raises(SessionMoved):
            await store.save(claim, Changes(title="stale"))


# Deleting


@pytest.mark.requirement("B14")
async def test_a_deleted_session_is_gone_from_everywhere_and_may_be_deleted_again(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, CWD, "needle", title="needle too")
        other = await talked(store, CWD, "needle in another")
        await store.delete(claim.session)
        await store.delete(claim.session)
        await store.delete("never was")
        for gone in (store.get(claim.session), store.claim(claim.session), history(store, claim.session)):
            with pytest.raises(SessionNotFound):
                await gone
        assert await walk(store) == [other.session]
        assert await hits(store, "needle") == ["needle in another"]
        for late in (
            store.save(claim, NOTHING),
            store.begin(claim, prompt("x"), NOTHING),
            store.seal(claim, [message("x")], NOTHING, messages=1),
        ):
            with pytest.raises(SessionNotFound):
                await late


@pytest.mark.requirement("B18")
async def test_old_sessions_are_pruned_unless_somebody_has_them(place: Place) -> None:
    async with place.open() as store:
        old = [await talked(store, CWD, f"old {n}") for n in range(3)]
        blank = await new(store)
        young = await talked(store, CWD, "young")
        before = (await store.get(young.session)).info.updated_at
        for claim in (*old[:2], blank, young):
            await store.release(claim)
        assert await store.prune(before) == 3
        assert set(await walk(store)) == {old[2].session, young.session}
        assert await store.prune(before) == 0
        await store.release(old[2])
        assert await store.prune(before) == 1
        assert await hits(store, "old") == []
        assert await hits(store, "young") == ["young"]


async def test_vacuum_gives_back_space_and_changes_nothing_else(place: Place) -> None:
    async with place.open() as store:
        kept = await talked(store, CWD, *[f"kept {n} {'x' * 1_000}" for n in range(100)])
        fork = (await store.fork(kept, info(), SessionState(), up_to=None, lines=[message("forked")])).claim
        gone = await talked(store, CWD, *[f"gone {n} {'x' * 1_000}" for n in range(1_000)])
        before = await history(store, kept.session), await history(store, fork.session), await hits(store, "kept")
        await store.delete(gone.session)
        await store.vacuum()
        after = await history(store, kept.session), await history(store, fork.session), await hits(store, "kept")
        assert before == after
        assert await hits(store, "gone") == []
        await turn(store, kept, message("later"))
        assert await hits(store, "later") == ["later"]


@pytest.mark.requirement("B14")
async def test_what_was_deleted_takes_no_space_after_a_vacuum(in_file: Place) -> None:
    async with in_file.open() as store:
        kept = await talked(store, CWD, "kept")
        await store.vacuum()
        before = Path(in_file.path).stat().st_size  # noqa: ASYNC240
        gone = await talked(store, CWD, *[f"gone {n} {'x' * 1_000}" for n in range(1_000)], title="gone")
        fork = (
            await store.fork(gone, info(title="gone", messages=1), SessionState(), up_to=None, lines=[message("x")])
        ).claim
        await store.delete(gone.session)
        await store.delete(fork.session)
        await store.vacuum()
        assert Path(in_file.path).stat().st_size <= before + 16_384  # noqa: ASYNC240
        assert len(await history(store, kept.session)) == 1


async def test_a_turn_that_says_nothing_leaves_nothing(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        log = await store.begin(claim, prompt("x"), NOTHING)
        log.append(logged(message("y")) + b"\n")
        await log.sync()
        await store.seal(claim, [], NOTHING, messages=0)
        assert (await store.get(claim.session)).lines == 0
        assert await history(store, claim.session) == []
        assert (await store.claim(claim.session)).broken is None


async def test_turns_of_many_sessions_run_side_by_side(place: Place) -> None:
    async with place.open() as store:
        claims = [await new(store) for _ in range(20)]
        logs = [await store.begin(claim, prompt("x"), NOTHING) for claim in claims]
        for log in logs:
            log.append(b'{"sessionUpdate":"_x"}\n')
        said = [message(f"said {n}") for n in range(20)]
        for claim, line in zip(claims, said, strict=True):
            await store.seal(claim, [line], NOTHING, messages=1)
        assert [await history(store, claim.session) for claim in claims] == [[line] for line in bodies(said)]
