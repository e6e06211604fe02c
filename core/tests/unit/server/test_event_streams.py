"""Streams of server-sent events: runs of text among single lines, and readers that go back into the middle of one."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.server.remote.event_streams import EventStream
from holdfast.transport.event_stream import EventReader


async def read(stream: EventStream) -> list[tuple[str | None, bytes]]:
    """Take all that waits; return ids and lines."""
    reader = stream.attach()
    batch = await asyncio.wait_for(stream.take(reader), 30)
    assert batch is not None
    received = EventReader(1 << 20).feed(batch)
    assert all(isinstance(each.line, bytes) for each in received)
    return [(each.id, each.line) for each in received if isinstance(each.line, bytes)]


def filled(*, in_runs: bool) -> EventStream:
    """Return a stream of an answer, eight pieces of text, a question, and two more pieces."""
    stream = EventStream()
    stream.stand_at((1, 2, 3))
    stream.append(b"answer", lasting=True)
    put_pieces(stream, 3, 8, in_runs=in_runs)
    stream.append(b"question", lasting=True)
    put_pieces(stream, 11, 2, in_runs=in_runs)
    return stream


def put_pieces(stream: EventStream, before: int, count: int, *, in_runs: bool) -> None:
    lines = [b"piece %d" % (before + n) for n in range(1, count + 1)]
    if in_runs:
        stream.append_run((1, 2, before), lines)
    else:
        for number, line in enumerate(lines, before + 1):
            stream.stand_at((1, 2, number))
            stream.append(line)


@pytest.mark.requirement("H4")
async def test_a_run_of_pieces_is_the_same_stream_as_the_pieces_one_by_one() -> None:
    runs, single = filled(in_runs=True), filled(in_runs=False)
    assert runs.unsent == single.unsent
    said = await read(runs)
    assert said == await read(single)
    assert [line for _, line in said][8:10] == [b"piece 11", b"question"]
    assert runs.unsent == single.unsent == 0


@pytest.mark.requirement("H4")
async def test_a_reader_goes_on_behind_any_event_also_in_the_middle_of_a_run() -> None:
    whole = await read(filled(in_runs=True))
    for index, (id_, _) in enumerate(whole[:-1]):
        stream = filled(in_runs=True)
        await read(stream)
        assert stream.read_from(id_)
        assert await read(stream) == whole[index + 1 :]
        assert stream.read_from(whole[0][0])  # and once more, from further back
        assert await read(stream) == whole[1:]


@pytest.mark.requirement("H4")
@pytest.mark.parametrize(
    "id_",
    ["", "1.2", "1.2.4", "1.2.04.1", "1.2.4.2", "1.2.99.1", "1.2.-4.1", "1.2.٤.1", "x", "1.2." + "9" * 5_000 + ".1"],
)
async def test_an_id_that_was_never_given_is_not_gone_back_to(id_: str) -> None:
    stream = filled(in_runs=True)
    whole = await read(stream)
    assert not stream.read_from(id_)
    assert stream.read_from(whole[-1][0]) and stream.unsent == 0


@pytest.mark.requirement("H4")
async def test_what_lasts_comes_at_its_place_when_pieces_are_put_on_the_stream_again() -> None:
    stream = filled(in_runs=True)
    whole = await read(stream)
    stream.rewind((1, 2, 5, 1))
    put_pieces(stream, 5, 8, in_runs=True)
    stream.rewound()
    assert await read(stream) == whole[3:]
