"""Private entries: in order beside a history, forked and cut and deleted with it, never in it."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import msgspec
import pytest

from core.tests.support.stores import ALL, CWD, NOTHING, bodies, history, hits, info, message, new, prompt, talked
from holdfast.errors import SessionMoved, SessionNotFound
from holdfast.model import SessionState

if TYPE_CHECKING:
    from core.tests.support.stores import Place
    from holdfast.format import Line
    from holdfast.store import Claim, SessionStore


async def turn(store: SessionStore, claim: Claim, lines: list[Line], *private: bytes) -> None:
    await store.begin(claim, prompt("prompt"), NOTHING)
    await store.seal(claim, lines, NOTHING, messages=len(lines), private=private)


async def test_private_entries_come_back_in_order_and_are_no_part_of_the_history(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        assert await store.read_private(claim.session) == []
        said = [message(f"said {n}") for n in range(3)]
        await turn(store, claim, said[:1], b"one", b"two")
        await turn(store, claim, said[1:2])
        await turn(store, claim, said[2:], b"\0\xff three", b"")
        assert await store.read_private(claim.session) == [b"one", b"two", b"\0\xff three", b""]
        assert await history(store, claim.session) == bodies(said)
        assert await hits(store, "one") == await hits(store, "three") == []
        with pytest.raises(SessionNotFound):
            await store.read_private("sess_0")


async def test_private_entries_are_there_after_a_restart(lasting: Place) -> None:
    async with lasting.open() as store:
        claim = await new(store)
        await turn(store, claim, [message("a")], b"x" * 1_000_000)
    async with lasting.open() as store:
        assert await store.read_private(claim.session) == [b"x" * 1_000_000]


@pytest.mark.requirement("P4")
async def test_private_entries_of_a_stale_writer_are_refused(place: Place) -> None:
    async with place.open() as store:
        stale = await new(store)
        claim = (await store.claim(stale.session)).claim
        with pytest.raises(SessionMoved):
            await store.seal(stale, [message("a")], NOTHING, messages=1, private=[b"stale"])
        await turn(store, claim, [message("b")], b"mine")
        assert await store.read_private(stale.session) == [b"mine"]


@pytest.mark.requirement("B14")
async def test_private_entries_go_with_their_session(lasting: Place) -> None:
    async with lasting.open() as store:
        claims = [await new(store) for _ in range(2)]
        for claim in claims:
            await turn(store, claim, [message("a")], os.urandom(1_000_000))
            await store.release(claim)
        before = (await store.size()).used
        await store.delete(claims[0].session)
        assert await store.prune(1 << 60) == 1
        await store.vacuum()
        assert (await store.size()).used < before - 1_000_000
        assert {finding.level async for finding in store.examine()} == {"ok"}


# Forks


async def source_of(store: SessionStore, agent: str = "") -> Claim:
    """Make a session of four turns of two messages: m0 to m7. The second and the fourth have private entries."""
    claim = await store.create(info(agent=agent), SessionState())
    for at, private in enumerate([(), (b"second",), (), (b"fourth a", b"fourth b")]):
        said = [message(f"said {n}", key=f"m{n}") for n in (2 * at, 2 * at + 1)]
        await turn(store, claim, said, *private)
    return claim


@pytest.mark.requirement("B15")
@pytest.mark.parametrize(
    ("up_to", "private", "cut_turn"),
    [
        (None, [b"second", b"fourth a", b"fourth b"], False),
        ("m7", [b"second", b"fourth a", b"fourth b"], False),
        ("m6", [b"second"], True),
        ("m5", [b"second"], False),
        ("m4", [b"second"], False),
        ("m3", [b"second"], False),
        ("m2", [], True),
        ("m1", [], False),
        ("m0", [], False),
    ],
)
async def test_a_fork_has_the_private_entries_of_the_turns_it_has_whole(
    place: Place, up_to: str | None, private: list[bytes], cut_turn: bool
) -> None:
    async with place.open() as store:
        source = await source_of(store, "weather")
        forked = await store.fork(source, info(agent="weather"), SessionState(), up_to=up_to, lines=[])
        assert await store.read_private(forked.claim.session) == private
        assert forked.cut_turn == cut_turn
        assert forked.lines == (await store.get(forked.claim.session)).lines
        await turn(store, forked.claim, [message("on")], b"later")
        await turn(store, source, [message("here")], b"here")
        assert await store.read_private(forked.claim.session) == [*private, b"later"]
        again = await store.fork(forked.claim, info(agent="weather"), SessionState(), up_to=None, lines=[])
        await store.delete(source.session)
        await store.delete(forked.claim.session)
        assert await store.read_private(again.claim.session) == [*private, b"later"]


@pytest.mark.requirement("B15")
async def test_a_fork_of_a_running_turn_ends_inside_it(place: Place) -> None:
    async with place.open() as store:
        source = await source_of(store)
        await store.begin(source, prompt("x"), NOTHING)
        before = await store.fork(source, info(), SessionState(), up_to=None, lines=[])
        forked = await store.fork(source, info(), SessionState(), up_to=None, lines=[message("finished so far")])
        assert (before.cut_turn, forked.cut_turn) == (False, True)
        assert (before.lines, forked.lines) == (8, 9)
        assert len(await store.read_private(forked.claim.session)) == 3
        await store.seal(source, [message("all")], NOTHING, messages=1, private=[b"of the whole turn"])
        assert len(await store.read_private(forked.claim.session)) == 3


@pytest.mark.requirement("F2")
async def test_a_fork_for_another_agent_has_no_private_entries(place: Place) -> None:
    async with place.open() as store:
        source = await source_of(store, "weather")
        for other in (info(agent="code"), msgspec.structs.replace(info(agent="weather"), principal="stranger")):
            forked = await store.fork(source, other, SessionState(), up_to=None, lines=[])
            assert await store.read_private(forked.claim.session) == []
            assert len(await history(store, forked.claim.session)) == 8
        assert len(await store.read_private(source.session)) == 3


@pytest.mark.requirement("B15")
@pytest.mark.parametrize("seed", range(4))
async def test_private_entries_stay_with_their_turns_through_forks_of_forks(place: Place, seed: int) -> None:
    """Random turns and forks, against lists that do the same."""
    chance = random.Random(seed)
    async with place.open() as store:
        first = await new(store)
        known: dict[Claim, list[tuple[int, bytes]]] = {first: []}
        keys: dict[Claim, list[str]] = {first: []}
        for step in range(60):
            claim = chance.choice(list(known))
            if chance.random() < 0.6 or not keys[claim]:
                said = [message("x" * chance.choice([10, 30_000]), key=f"{step}-{n}") for n in range(3)]
                private = [b"%d" % step] * chance.randint(0, 2)
                await turn(store, claim, said, *private)
                keys[claim] += [f"{step}-{n}" for n in range(3)]
                known[claim] += [(len(keys[claim]), data) for data in private]
            else:
                at = chance.randint(1, len(keys[claim]))
                forked = await store.fork(claim, info(), SessionState(), up_to=keys[claim][at - 1], lines=[])
                keys[forked.claim] = keys[claim][:at]
                known[forked.claim] = [(end, data) for end, data in known[claim] if end <= at]
        for claim, expected in known.items():
            assert await store.read_private(claim.session) == [data for _, data in expected]


async def test_a_search_and_a_list_know_nothing_of_private_entries(place: Place) -> None:
    async with place.open() as store:
        claim = await talked(store, CWD, "hello")
        await turn(store, claim, [], b"secret")
        page = await store.list(ALL, cwd=None, archived="exclude", cursor=None, limit=9)
        assert page.sessions[0].messages == 1
        assert await store.read_private(claim.session) == [b"secret"]
