"""What every store does for clients whose stream was cut: the logs of sealed turns stay readable for a while (H4)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from core.tests.support.stores import CWD, NOTHING, keep, logged, message, new, prompt, talked
from holdfast.store.port import EventWindow

if TYPE_CHECKING:
    from core.tests.support.stores import Place
    from holdfast.store import Claim, SessionStore

pytestmark = pytest.mark.requirement("H4")

LAST = b'{"sessionUpdate":"_last"}'


async def logged_turn(store: SessionStore, claim: Claim, *said: str, last: bytes | None = LAST + b"\n") -> None:
    log = await store.begin(claim, prompt("q"), NOTHING)
    for text in said:
        await keep(log, message(text, key=text))
    await store.seal(claim, [message("x")], NOTHING, messages=1, last=last)


async def kept(store: SessionStore, claim: Claim) -> dict[int, list[bytes]]:
    return {log.turn: log.lines for log in await store.read_events(claim.session)}


def lines(*said: str) -> list[bytes]:
    return [logged(message(text, key=text)) for text in said]


async def test_the_logs_of_sealed_turns_are_read_in_order_with_their_last_lines(place: Place) -> None:
    async with place.open() as store:
        store.keep_events(EventWindow())
        claim = await new(store)
        await logged_turn(store, claim, "a", "b")
        await logged_turn(store, claim, "c")
        log = await store.begin(claim, prompt("q"), NOTHING)
        await keep(log, message("d", key="d"))
        expected = {1: [*lines("a", "b"), LAST], 2: [*lines("c"), LAST], 3: lines("d")}
        assert await kept(store, claim) == expected
        assert (await store.get(claim.session)).turn == 3
        await store.seal(claim, [], NOTHING, messages=0)
        assert not any((await kept(store, claim)).values()), "one that has no last line ends it for all"


@pytest.mark.parametrize("last", [[LAST], []])
@pytest.mark.parametrize("durable", [True, False])
async def test_the_lines_that_a_log_is_opened_with_come_first_and_what_was_accepted_is_not_among_them(
    place: Place, durable: bool, last: list[bytes]
) -> None:
    first = (
        b'{"sessionUpdate":"_holdfast/begun","epoch":1,"events":[]}',
        b'{"sessionUpdate":"_holdfast/passed","count":1}',
    )
    opening = b"".join(line + b"\n" for line in first)
    tricky = prompt('{"sessionUpdate":"_holdfast/begun"')
    async with place.open() as store:
        store.keep_events(EventWindow())
        claim = await new(store)
        for said in ("a", "b", ""):  # the first begins in the database, others may not; the last says nothing
            log = await store.begin(claim, tricky, NOTHING, durable=durable, opening=opening)
            if said:
                await keep(log, message(said, key=said))
            ending = b"".join(line + b"\n" for line in last)
            await store.seal(claim, [message("x")], NOTHING, messages=1, last=ending)
        await store.begin(claim, [], NOTHING, activity=False, opening=opening)
        ended = {n: [*first, *lines(*said), *last] for n, said in enumerate(("a", "b", ""), 1)}
        assert await kept(store, claim) == {**ended, 4: [*first]}


async def test_nothing_stays_where_nobody_asked_for_it(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await logged_turn(store, claim, "a")
        assert not any((await kept(store, claim)).values())


async def test_logs_stay_across_the_death_of_their_process_and_a_claim_of_another(lasting: Place) -> None:
    async with lasting.open() as store:
        store.keep_events(EventWindow())
        claim = await new(store)
        await logged_turn(store, claim, "a")
    async with lasting.open() as store:
        store.keep_events(EventWindow())
        claimed = await store.claim(claim.session)
        assert claimed.record.turn == 1
        assert await kept(store, claim) == {1: [*lines("a"), LAST]}
        await logged_turn(store, claimed.claim, "b")
        assert await kept(store, claim) == {1: [*lines("a"), LAST], 2: [*lines("b"), LAST]}


async def test_a_process_that_keeps_nothing_removes_what_others_have_kept(lasting: Place) -> None:
    async with lasting.open() as store:
        store.keep_events(EventWindow())
        claim = await new(store)
        await logged_turn(store, claim, "a")
        await logged_turn(store, claim, "b")
    async with lasting.open() as store:
        claim = (await store.claim(claim.session)).claim
        await logged_turn(store, claim, "c")
        assert not any((await kept(store, claim)).values())
        await logged_turn(store, claim, "d")
        assert not any((await kept(store, claim)).values())
        store.keep_events(EventWindow())
        await logged_turn(store, claim, "e")
        await logged_turn(store, claim, "f")
        assert {turn: said for turn, said in (await kept(store, claim)).items() if said} == {
            5: [*lines("e"), LAST], 6: [*lines("f"), LAST]
        }  # fmt: skip
        await logged_turn(store, claim, "g", last=None)
        assert not any((await kept(store, claim)).values())


async def test_what_is_too_much_goes_oldest_first(place: Place) -> None:
    async with place.open() as store:
        store.keep_events(EventWindow(size=20_000))
        claim = await new(store)
        for n in range(12):
            await logged_turn(store, claim, f"{n}{'x' * 5_000}")
        turns = list(await kept(store, claim))
        assert turns == list(range(turns[0], 13))
        assert turns[0] > 6 and turns[-1] == 12


async def test_what_is_too_old_goes_and_what_runs_stays(place: Place) -> None:
    async with place.open() as store:
        store.keep_events(EventWindow(seconds=0))
        done, running = await new(store), await talked(store, CWD, "x")
        await logged_turn(store, done, "a")
        await store.release(done)
        log = await store.begin(running, prompt("q"), NOTHING)
        await keep(log, message("b", key="b"))
        await asyncio.sleep(0.05)
        await store.forget_events()
        if place.lasts:  # in memory the newest log always stays
            assert not any((await kept(store, done)).values())
        assert (await kept(store, running))[2] == lines("b")


async def test_a_session_that_belongs_to_another_agent_has_no_logs_of_before(place: Place) -> None:
    async with place.open() as store:
        store.keep_events(EventWindow())
        claim = await new(store)
        await logged_turn(store, claim, "a")
        await store.hand_over(claim.session, "other")
        if place.lasts:
            assert not any((await kept(store, claim)).values())
