"""What every transport does, whatever carries its lines (see `holdfast.transport.port`)."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.tests.support.links import LINKS, PATIENCE, Collector, Link
from core.tests.support.web_links import WEB_LINKS
from holdfast.errors import ConnectionLost
from holdfast.transport import Oversized

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20


ALL_LINKS = {**LINKS, **WEB_LINKS}


@pytest.fixture(params=ALL_LINKS)
def link(request: pytest.FixtureRequest) -> Iterator[Link]:
    """Link two transports of each kind in turn; afterwards nothing of them may be left."""
    before = open_descriptors()
    yield ALL_LINKS[request.param]
    for thread in threading.enumerate():
        if thread.name.startswith("holdfast-"):
            thread.join(PATIENCE)
    assert open_descriptors() == before


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


async def test_lines_arrive_whole_and_in_order_in_both_directions(link: Link) -> None:
    async with link() as (near, far):
        here, there = Collector(), Collector()
        near.open(here)
        far.open(there)
        lines = [b"%d" % n * (n % 50) for n in range(1_000)]
        for line in lines:
            near.send(line)
            far.send(line)
        assert await there.get(1_000) == lines
        assert await here.get(1_000) == lines


async def test_lines_sent_before_the_other_end_opens_wait_for_it(link: Link) -> None:
    async with link() as (near, far):
        near.send(b"early")
        near.flush()
        far.open(there := Collector())
        assert await there.get(1) == [b"early"]


async def test_a_line_much_longer_than_any_buffer_arrives_whole(link: Link) -> None:
    async with link() as (near, far):
        far.open(there := Collector())
        line = os.urandom(4 * MIB).hex().encode()
        near.send(line)
        near.send(b"next")
        assert await there.get(2) == [line, b"next"]


async def test_flushed_lines_do_not_wait_for_the_end_of_the_tick(link: Link) -> None:
    async with link() as (near, far):
        far.open(there := Collector())
        near.send(b"a")
        near.flush()
        near.send(b"b")
        near.flush()
        near.flush()
        assert await there.get(2) == [b"a", b"b"]


async def test_a_line_sent_now_does_not_wait_for_the_end_of_the_tick_and_overtakes_nothing(link: Link) -> None:
    async with link() as (near, far):
        far.open(there := Collector())
        near.send(b"queued")
        near.send_now(b"now")
        near.send_now(b"one\nline")
        near.send(b"later")
        words = [bytes(line).split() for line in await there.get(4) if isinstance(line, bytes)]
        assert words == [[b"queued"], [b"now"], [b"one", b"line"], [b"later"]]
        await near.close(PATIENCE)
        near.send_now(b"too late")
        await there.end()
        assert len(there.lines) == 4


@pytest.mark.requirement("A4")
async def test_a_transport_says_how_long_a_line_may_be(link: Link) -> None:
    async with link(limit=12_345) as (near, far):
        assert near.max_line == far.max_line == 12_345


async def test_a_block_of_lines_arrives_behind_what_was_sent_before_and_ahead_of_what_comes_after(link: Link) -> None:
    async with link() as (near, far):
        far.open(there := Collector())
        near.send(b"before")
        near.send_block(b"".join(b"%d\n" % n for n in range(1_000)))
        near.send(b"after")
        assert await there.get(1_002) == [b"before", *(b"%d" % n for n in range(1_000)), b"after"]


async def test_a_block_may_come_in_pieces(link: Link) -> None:
    async with link() as (near, far):
        lines = [b"%d %s" % (n, b"x" * n) for n in range(1_000)]
        block = b"".join(line + b"\n" for line in lines)
        near.send_block(*(block[at : at + 1_000] for at in range(0, len(block), 1_000)))
        near.send_block(*(block[at : at + 1] for at in range(5_000)), block[5_000:])
        near.send_block(b"", b"the ", b"", b"end\n")
        far.open(there := Collector())
        assert await there.get(2_001) == [*lines, *lines, b"the end"]


@pytest.mark.requirement("P7")
async def test_blocks_that_nobody_reads_count_like_lines(link: Link) -> None:
    async with link() as (near, _far):
        near.open(here := Collector())
        block = (b"x" * 1_023 + b"\n") * 1_024
        for _ in range(100):
            near.send_block(block)
        assert isinstance(await here.end(), ConnectionLost)
        near.send_block(block)
        assert near.unsent < 2 * MIB


@pytest.mark.requirement("A1")
async def test_a_newline_inside_a_message_does_not_make_it_two(link: Link) -> None:
    async with link() as (near, far):
        far.open(there := Collector())
        near.send(b'{\n"a":\n1}')
        near.send(b"next")
        first, second = await there.get(2)
        assert isinstance(first, bytes)
        assert first.split() == [b"{", b'"a":', b"1}"]
        assert second == b"next"


@pytest.mark.requirement("A4")
async def test_a_line_longer_than_the_limit_arrives_as_its_ends_and_the_next_ones_whole(link: Link) -> None:
    async with link(limit=100_000) as (near, far):
        far.open(there := Collector())
        longest = b"x" * 100_000
        near.send(longest)
        near.send(b"HEAD" + longest + b"TAIL")
        near.send(b"next")
        first, second, third = await there.get(3)
        assert first == longest
        assert isinstance(second, Oversized)
        assert second.head.startswith(b"HEADx")
        assert second.tail.endswith(b"xTAIL")
        assert second.limit == 100_000
        assert third == b"next"


@pytest.mark.requirement("P7")
async def test_while_paused_the_other_end_has_to_wait(link: Link) -> None:
    async with link() as (near, far):
        near.open(here := Collector())
        far.open(there := Collector())
        far.pause()
        for _ in range(16):
            near.send(b"x" * MIB)
        drained = asyncio.ensure_future(near.drain(1))
        far.send(b"ping")  # a word in the other direction takes as long as a word in this one
        await here.get(1)
        assert not drained.done()
        assert near.unsent > 8 * MIB
        assert there.size < 8 * MIB
        far.resume()
        assert await there.get(16) == [b"x" * MIB] * 16
        async with asyncio.timeout(PATIENCE):
            await drained
        assert near.unsent == 0


async def test_draining_waits_only_until_little_enough_is_unsent(link: Link) -> None:
    async with link() as (near, far):
        near.send(b"x" * MIB)
        async with asyncio.timeout(PATIENCE):
            await near.drain(2 * MIB)
        far.open(there := Collector())
        async with asyncio.timeout(PATIENCE):
            await near.drain(1)
        await there.get(1)


async def test_draining_ends_when_the_other_end_goes_away(link: Link) -> None:
    async with link() as (near, far):
        near.open(Collector())
        for _ in range(16):
            near.send(b"x" * MIB)
        drained = asyncio.ensure_future(near.drain(1))
        await asyncio.sleep(0)
        await far.close(0)
        async with asyncio.timeout(PATIENCE):
            await drained


async def test_a_drain_that_is_cancelled_leaves_the_others_waiting(link: Link) -> None:
    async with link() as (near, far):
        for _ in range(16):
            near.send(b"x" * MIB)
        given_up, kept = asyncio.ensure_future(near.drain(1)), asyncio.ensure_future(near.drain(1))
        await asyncio.sleep(0)
        given_up.cancel()
        far.open(there := Collector())
        await there.get(16)
        async with asyncio.timeout(PATIENCE):
            await kept
        assert given_up.cancelled()


async def test_the_end_is_told_once_after_everything_sent_before(link: Link) -> None:
    async with link() as (near, far):
        far.open(there := Collector())
        near.open(here := Collector())
        for n in range(100):
            far.send(b"%d" % n)
        await far.close(PATIENCE)
        await here.end()
        assert here.lines == [b"%d" % n for n in range(100)]
        await near.close(PATIENCE)
        assert len(here.ends) == 1
        assert there.ends == []


async def test_an_end_that_came_before_opening_is_told_too(link: Link) -> None:
    async with link() as (near, far):
        far.open(Collector())
        far.send(b"last")
        far.flush()
        near_opened = Collector()
        await far.close(0.1)
        near.open(near_opened)
        await near_opened.end()
        assert near_opened.lines in ([b"last"], [])  # in memory nobody had taken it when the end came
        assert len(near_opened.ends) == 1


async def test_an_end_that_came_while_paused_is_told_after_resuming(link: Link) -> None:
    async with link() as (near, far):
        near.open(here := Collector())
        far.open(Collector())
        near.pause()
        far.send(b"last")
        await far.close(0.1)
        near.resume()
        await here.end()
        assert len(here.ends) == 1


async def test_sending_to_an_end_that_is_gone_goes_nowhere(link: Link) -> None:
    async with link() as (near, far):
        near.open(here := Collector())
        await far.close(0)
        for _ in range(100):
            near.send(b"x" * 1_000)
            near.flush()
        await here.end()
        near.send(b"x")
        async with asyncio.timeout(PATIENCE):
            await near.drain(1)


async def test_sending_after_closing_goes_nowhere(link: Link) -> None:
    async with link() as (near, far):
        far.open(there := Collector())
        await near.close(PATIENCE)
        near.send(b"x")
        near.flush()
        near.pause()
        near.resume()
        await there.end()
        assert there.lines == []


async def test_closing_sends_what_is_unsent_to_a_reader_that_reads(link: Link) -> None:
    async with link() as (near, far):
        far.open(there := Collector())
        for _ in range(16):
            near.send(b"x" * MIB)
        await near.close(PATIENCE)
        await there.end()
        assert there.lines == [b"x" * MIB] * 16


@pytest.mark.requirement("A11")
async def test_closing_does_not_wait_longer_than_told_for_a_reader_that_does_not(link: Link) -> None:
    async with link() as (near, _far):
        near.open(Collector())
        for _ in range(16):
            near.send(b"x" * MIB)
        async with asyncio.timeout(PATIENCE):
            await near.close(0.01)


async def test_closing_twice_is_closing_once(link: Link) -> None:
    async with link() as (near, far):
        far.open(there := Collector())
        await near.close(0.1)
        await near.close(0.1)
        await there.end()
        assert len(there.ends) == 1


@pytest.mark.requirement("P7")
async def test_a_reader_that_leaves_too_much_unread_is_given_up(link: Link) -> None:
    """Whoever tells and does not drain must not fill the memory: the connection ends instead."""
    async with link() as (near, _far):
        near.open(here := Collector())
        megabyte = b"x" * MIB
        for _ in range(100):
            near.send(megabyte)
        reason = await here.end()
        assert isinstance(reason, ConnectionLost)
        assert near.unsent < MIB
        near.send(megabyte)
        near.flush()
        assert near.unsent < 2 * MIB
        async with asyncio.timeout(PATIENCE):
            await near.drain(1)
        assert len(here.ends) == 1
