"""What every store does with histories: puts lines behind lines, reads them back, shares them between forks."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

import pytest

from core.tests.support.stores import (
    ALL,
    CWD,
    NOTHING,
    bodies,
    history,
    hits,
    info,
    lines,
    message,
    new,
    prompt,
    talked,
    turn,
    walk,
)
from holdfast.errors import InvalidParams, SessionNotFound
from holdfast.format import fold
from holdfast.model import SessionState
from holdfast.store import Claim

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from core.tests.support.stores import Place
    from holdfast.format import Line
    from holdfast.store import Store

KIB = 1 << 10
SEGMENT = 64 * KIB


def line_of(size: int) -> Line:
    """Make a line of exactly so many bytes."""
    empty = message("", key="m")
    return message("x" * (size - len(empty.body)), key="m")


async def fork(
    store: Store, claim: Claim, *, up_to: str | None = None, more: tuple[Line, ...] = (), messages: int = 1
) -> Claim:
    return (await store.fork(claim, info(messages=messages), SessionState(), up_to=up_to, lines=more)).claim


async def rest(reading: AsyncIterator[list[bytes]]) -> list[bytes]:
    return [block async for some in reading for block in some]


# Reading back


@pytest.mark.parametrize(
    "sizes",
    [
        [SEGMENT], [SEGMENT - 1], [SEGMENT + 1], [SEGMENT // 2] * 2, [SEGMENT // 2 - 1] * 3, [SEGMENT // 2 + 1] * 3,
        [100, SEGMENT, 100], [SEGMENT - 101, 100], [SEGMENT - 102, 100], [SEGMENT - 100, 100],
        [SEGMENT + 1, SEGMENT + 1, 100, 100], [3_000_000], [100, 3_000_000, 100, 3_000_000],
    ],
)  # fmt: skip
@pytest.mark.parametrize("at_once", [True, False])
async def test_lines_come_back_as_they_were_whatever_their_lengths(
    place: Place, sizes: list[int], at_once: bool
) -> None:
    said = [line_of(size) for size in sizes]
    async with place.open() as store:
        claim = await new(store)
        for part in [said] if at_once else [[line] for line in said]:
            await turn(store, claim, *part)
        record = await store.get(claim.session)
        assert (record.lines, record.info.messages) == (len(said), len(said))
        assert await history(store, claim.session, record.lines) == bodies(said)


async def test_thousands_of_turns_come_back_in_order(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        said = [message(f"{n} {'x' * (n % 200)}") for n in range(2_000)]
        for line in said:
            await store.seal(claim, [line], NOTHING, messages=1)
        assert await history(store, claim.session, 2_000) == bodies(said)


@pytest.mark.parametrize("seed", range(5))
async def test_turns_of_random_sizes_come_back_and_so_does_every_beginning_of_them(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    async with place.open() as store:
        claim = await new(store)
        said: list[Line] = []
        for _ in range(30):
            sizes = [chance.choice([80, 500, 5_000, 30_000, 66_000]) for _ in range(chance.randint(0, 5))]
            some = [line_of(chance.randint(size // 2 + 80, size + 80)) for size in sizes]
            await turn(store, claim, *some)
            said += some
        for count in [0, 1, len(said), *(chance.randint(0, len(said)) for _ in range(10))]:
            assert await history(store, claim.session, count) == bodies(said)[:count]
        assert await history(store, claim.session) == bodies(said), "asking for more than there is gives what there is"
        blocks = [block async for some in store.read(claim.session, 0, len(said)) for block in some]
        assert all(len(block) <= SEGMENT or b"\n" not in block for block in blocks), "what is read at once is bounded"


@pytest.mark.parametrize("seed", range(3))
async def test_a_history_is_read_from_any_line_to_any_other(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    async with place.open() as store:
        claim = await new(store)
        said: list[Line] = []
        for _ in range(12):
            some = [line_of(chance.choice([100, 9_000, 70_000])) for _ in range(chance.randint(1, 4))]
            await turn(store, claim, *some)
            said += some
        for _ in range(40):
            start, end = chance.randint(0, len(said) + 2), chance.randint(0, len(said) + 2)
            assert await history(store, claim.session, end, start=start) == bodies(said)[start:end]
        with pytest.raises(SessionNotFound):
            await history(store, "sess_0", 0)


@pytest.mark.requirement("B11")
async def test_the_first_lines_come_before_much_is_read(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await turn(store, claim, *[line_of(1_000) for _ in range(10_000)])
        reading = store.read(claim.session, 0, 10_000)
        first = await anext(reading)
        assert sum(map(len, first)) <= 2 * SEGMENT
        sizes = [sum(map(len, some)) async for some in reading]
        assert max(sizes) <= 1_000 * KIB
        assert sum(sizes) + sum(map(len, first)) >= 10_000 * 1_000


@pytest.mark.requirement("B12")
async def test_whoever_reads_sees_what_was_there_when_it_began_however_much_is_added(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        said = [line_of(20_000) for _ in range(100)]
        await turn(store, claim, *said)
        await turn(store, claim, small := message("small"))
        read: list[bytes] = []
        async for some in store.read(claim.session, 0, 101):
            read += [line for block in some for line in block.split(b"\n")]
            await turn(store, claim, message("later"), line_of(50_000))
        assert read == bodies([*said, small])


@pytest.mark.requirement("B12")
async def test_segments_made_into_one_while_they_are_read_are_read_once(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        said = [line_of(5_000) for _ in range(12)]
        for line in said:
            await turn(store, claim, line)
        async with aclosing(cast("AsyncGenerator[list[bytes]]", store.read(claim.session, 0, 12))) as reading:
            read = await anext(reading)
        assert 1 < len(read) < 12, "they are apart, and not all of them are read at once"
        await turn(store, claim, line_of(10_000))
        read += [block async for some in store.read(claim.session, len(read), 12) for block in some]
        assert b"\n".join(read).split(b"\n") == bodies(said)
        (whole, _) = [block async for some in store.read(claim.session, 0, 13) for block in some]
        assert whole.split(b"\n") == bodies(said), "now they are one"


async def test_a_reading_that_is_closed_leaves_nothing_at_work(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        for _ in range(6):
            await turn(store, claim, line_of(60_000))
        before = asyncio.all_tasks()
        async with aclosing(cast("AsyncGenerator[list[bytes]]", store.read(claim.session, 0, 6))) as reading:
            await anext(reading)
        assert asyncio.all_tasks() <= before


async def test_what_two_sessions_share_stays_as_it_was_when_one_goes_on(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        said = [message(f"word{n} {'x' * 10_000}") for n in range(8)]
        for line in said:
            await turn(store, claim, line)
        copy = (await store.fork(claim, info(), SessionState(), up_to=None, lines=[])).claim
        more = {owner: [message(f"more{n} {'y' * 20_000}") for n in range(16)] for owner in (claim, copy)}
        for owner, lines in more.items():
            for line in lines:
                await turn(store, owner, line)
        for owner, lines in more.items():
            assert await history(store, owner.session) == bodies([*said, *lines])
        await store.delete(claim.session)
        assert await history(store, copy.session) == bodies([*said, *more[copy]])
        (hit,) = await store.search("word3", ALL, cwd=None, limit=9)
        assert (hit.session.id, hit.text.split()[0]) == (copy.session, "word3")


async def test_a_session_deleted_while_it_is_read_is_not_taken_for_a_short_one(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await turn(store, claim, *[line_of(20_000) for _ in range(200)])
        reading = store.read(claim.session, 0, 200)
        await anext(reading)
        await store.delete(claim.session)
        with pytest.raises(SessionNotFound):
            await rest(reading)


async def test_a_reader_that_leaves_early_holds_up_nobody(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await turn(store, claim, *[line_of(20_000) for _ in range(100)])
        async for _ in store.read(claim.session, 0, 100):
            break
        await turn(store, claim, message("later"))
        await store.vacuum()
        assert (await history(store, claim.session))[-1] == (await history(store, claim.session, 101))[100]


# Forks


@pytest.mark.requirement("B15")
async def test_a_fork_begins_with_all_that_was_said_and_then_goes_its_own_way(place: Place) -> None:
    async with place.open() as store:
        source = await talked(store, CWD, "one", "two")
        common = await history(store, source.session)
        extra = message("extra")
        copy = await fork(store, source, more=(extra,))
        await turn(store, source, here := message("only here"))
        await turn(store, copy, there := message("only there"))
        await turn(store, source, here_too := message("here too"))
        assert await history(store, source.session) == [*common, here.body, here_too.body]
        assert await history(store, copy.session) == [*common, extra.body, there.body]
        assert (await store.get(source.session)).lines == 4
        assert (await store.get(copy.session)).lines == 4
        assert (await store.get(copy.session)).info.cwd == CWD


@pytest.mark.requirement("B15")
@pytest.mark.parametrize("up_to", [None, "m3"])
async def test_a_session_is_forked_under_the_claim_of_whoever_has_it_and_both_go_their_own_way(
    place: Place, up_to: str | None
) -> None:
    if not place.lasts:
        pytest.skip("a store in memory has one process")
    async with place.open() as owner, place.open() as other:
        source = await new(owner)
        for number in range(6):
            await turn(owner, source, message(f"needle {number} " + "x" * 20_000, key=f"m{number}"))
        before = await history(owner, source.session)
        record = await other.get(source.session)
        borrowed = Claim(source.session, record.epoch)
        made = info(messages=record.info.messages)
        copy = await other.fork(borrowed, made, SessionState(), up_to=up_to, lines=[])
        expected = before if up_to is None else before[:4]
        assert copy.lines == len(expected)
        for number in range(8):
            await turn(owner, source, message(f"later {number} " + "y" * 20_000))
            await turn(other, copy.claim, message(f"elsewhere {number} " + "z" * 20_000))
        assert (await history(owner, source.session))[: len(before)] == before
        assert (await history(owner, made.id))[: len(expected)] == expected
        assert (await owner.get(made.id)).info.messages == len(await history(owner, made.id))
        assert {found.level async for found in owner.examine()} <= {"ok", "note"}
        await owner.delete(source.session)
        assert (await history(other, made.id))[: len(expected)] == expected
        assert len(await hits(other, "needle")) == len(expected)


async def test_a_fork_of_a_blank_session_is_blank(place: Place) -> None:
    async with place.open() as store:
        source = await new(store)
        copy = await fork(store, source, messages=0)
        assert await history(store, copy.session) == []
        assert await walk(store, archived="include") == []


@pytest.mark.requirement("B15")
@pytest.mark.parametrize("at", [0, 1, 2, 31, 32, 33, 64, 98, 99])
async def test_a_fork_may_end_anywhere_in_the_history(place: Place, at: int) -> None:
    said = [message(f"{n} {'x' * 2_000}", key=f"m{n}") for n in range(100)]
    async with place.open() as store:
        source = await new(store)
        for start in range(0, 100, 7):
            await turn(store, source, *said[start : start + 7])
        copy = await fork(store, source, up_to=f"m{at}")
        record = await store.get(copy.session)
        assert await history(store, copy.session) == bodies(said)[: at + 1]
        assert (record.lines, record.info.messages) == (at + 1, at + 1)
        await turn(store, copy, message("on"))
        assert (await history(store, copy.session))[: at + 1] == bodies(said)[: at + 1]
        assert await history(store, source.session) == bodies(said)


@pytest.mark.requirement("B15")
@pytest.mark.parametrize("up_to", ["nobody", "", "m", "m1x", '"', "%", "x", "\\", "inner", "plan"])
async def test_a_fork_up_to_what_is_not_there_is_refused_and_leaves_nothing(place: Place, up_to: str) -> None:
    async with place.open() as store:
        source = await new(store)
        await turn(
            store,
            source,
            *lines(
                {"sessionUpdate": "agent_message", "messageId": "m1", "content": [{"type": "text", "text": '"m"'}]},
                {
                    "sessionUpdate": "tool_call_update",
                    "toolCallId": "c1",
                    "title": "x",
                    "rawInput": {"messageId": "inner", "toolCallId": "inner"},
                },
                {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "plan", "entries": []}},
            ),
        )
        made = info()
        with pytest.raises(InvalidParams):
            await store.fork(source, made, SessionState(), up_to=up_to, lines=[])
        with pytest.raises(SessionNotFound):
            await store.get(made.id)


@pytest.mark.requirement("B15")
async def test_a_fork_is_not_misled_by_what_only_mentions_the_entry(place: Place) -> None:
    async with place.open() as store:
        source = await new(store)
        said = lines(
            {"sessionUpdate": "_log", "messageId": "m9", "n": 1},
            {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "t", "rawInput": {"messageId": "m9"}},
            {"sessionUpdate": "agent_message", "messageId": "m1", "content": [], "_meta": {"messageId": "m9"}},
            {"sessionUpdate": "agent_message", "messageId": "m9", "content": [{"type": "text", "text": "here"}]},
            {"sessionUpdate": "agent_message", "messageId": "m2", "content": []},
        )
        await turn(store, source, *said)
        copy = await fork(store, source, up_to="m9")
        assert await history(store, copy.session) == bodies(said[:4])


@pytest.mark.requirement("B15")
@pytest.mark.parametrize("key", ['q"uote', "back\\slash", "new\nline", "é\U0001f600", "'", "\0"])
async def test_a_fork_finds_the_entry_whatever_its_id(place: Place, key: str) -> None:
    async with place.open() as store:
        source = await new(store)
        said = [message("a", key="m1"), message("b", key=key), message("c", key="m3")]
        await turn(store, source, *said)
        copy = await fork(store, source, up_to=key)
        assert await history(store, copy.session) == bodies(said[:2])


@pytest.mark.requirement("B15")
@pytest.mark.parametrize("before", [1, 500])
async def test_a_fork_takes_all_lines_of_the_entry_it_ends_with(place: Place, before: int) -> None:
    """A message whose chunks came with something is stored on several lines, maybe in several segments."""
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "_meta": {"x": 1}}
    said = lines(*[{**chunk, "content": {"type": "text", "text": f"{n} {'x' * 1_000}"}} for n in range(100)])
    assert len(said) == 101
    async with place.open() as store:
        source = await new(store)
        first = [message("x" * 100) for _ in range(before)]
        await turn(store, source, *first, *said, message("after", key="after"))
        copy = await fork(store, source, up_to="m")
        assert fold(await history(store, copy.session)).get("agent_message", "m") is not None
        assert await history(store, copy.session) == bodies([*first, *said])


@pytest.mark.requirement("B14")
async def test_forks_outlive_what_they_were_forked_from_and_are_still_found(place: Place) -> None:
    async with place.open() as store:
        source = await talked(store, CWD, "needle one", "needle two")
        first = await fork(store, source)
        second = await fork(store, first)
        await store.delete(source.session)
        expected = await history(store, first.session)
        assert len(expected) == 2
        assert await hits(store, "needle") == ["needle two", "needle one"]
        await turn(store, first, message("three"))
        await store.delete(first.session)
        await store.vacuum()
        assert await history(store, second.session) == expected
        found = await store.search("needle", ALL, cwd=None, limit=9)
        assert {hit.session.id for hit in found} == {second.session}
        await store.delete(second.session)
        assert await hits(store, "needle") == []


@pytest.mark.requirement("B15")
@pytest.mark.parametrize("seed", range(6))
async def test_forks_of_forks_never_leak_into_each_other(place: Place, seed: int) -> None:
    """Random turns, forks and deletions, against lists that do the same."""
    chance = random.Random(seed)
    async with place.open() as store:
        first = await new(store)
        known: dict[Claim, list[bytes]] = {first: []}
        for step in range(120):
            claim = chance.choice(list(known))
            match chance.choice(["turn", "turn", "fork", "fork up to", "delete"]):
                case "turn":
                    said = [line_of(chance.choice([200, 3_000, 40_000])) for _ in range(chance.randint(1, 4))]
                    said = [message(line.text, key=f"{step}-{n}") for n, line in enumerate(said)]
                    await turn(store, claim, *said)
                    known[claim] += bodies(said)
                case "fork":
                    extra = [message("e", key=f"{step}-e")] if chance.random() < 0.5 else []
                    copy = await fork(store, claim, more=tuple(extra))
                    known[copy] = [*known[claim], *bodies(extra)]
                case "fork up to" if known[claim]:
                    at = chance.randrange(len(known[claim]))
                    entry = next(iter(fold([known[claim][at]])))
                    known[await fork(store, claim, up_to=entry.key)] = known[claim][: at + 1]
                case "delete" if len(known) > 2:
                    await store.delete(claim.session)
                    del known[claim]
                case _:
                    pass
        for claim, expected in known.items():
            assert await history(store, claim.session) == expected
            assert (await store.get(claim.session)).lines == len(expected)


async def test_a_prompt_alone_is_no_history(place: Place) -> None:
    async with place.open() as store:
        claim = await new(store)
        await store.begin(claim, prompt("x"), NOTHING)
        assert await history(store, claim.session) == []
        assert (await store.get(claim.session)).lines == 0
