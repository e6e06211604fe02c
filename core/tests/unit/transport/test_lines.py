"""`LineSplitter`: chunks to lines, in bounded memory."""

from __future__ import annotations

import tracemalloc

import pytest

from holdfast.transport.lines import EDGE_BYTES, LineSplitter, Oversized


def split(*chunks: bytes, limit: int = 100) -> list[bytes | Oversized]:
    splitter = LineSplitter(limit)
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.end()


def test_a_line_is_given_when_its_newline_arrives() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"a") == []
    assert splitter.feed(b"b") == []
    assert splitter.feed(b"c\nd") == [b"abc"]
    assert splitter.feed(b"\n") == [b"d"]


def test_a_chunk_may_hold_many_lines_and_empty_ones() -> None:
    assert split(b"a\n\nb\n\n") == [b"a", b"", b"b", b""]


def test_a_last_line_may_lack_its_newline() -> None:
    assert split(b"a\nb") == [b"a", b"b"]


def test_nothing_is_left_at_the_end_of_a_complete_line() -> None:
    assert split(b"a\n") == [b"a"]
    assert split(b"") == []


def test_a_line_may_be_as_long_as_the_limit_and_no_longer() -> None:
    """A4."""
    assert split(b"x" * 10 + b"\n", limit=10) == [b"x" * 10]
    assert split(b"x" * 11 + b"\n", limit=10) == [Oversized(b"x" * 10, b"x" * 10, 10, 11)]
    assert split(b"x" * 11, limit=10) == [Oversized(b"x" * 10, b"x" * 10, 10, 11)]


def test_the_lines_after_one_that_was_too_long_are_whole() -> None:
    """A4: the rest of the line is skipped, nothing else."""
    for size in (1, 7, 1_000):
        stream = b"a\n" + b"x" * 500 + b"\nb\n"
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
        before, between, *after = split(*chunks, limit=100)
        assert before == b"a"
        assert isinstance(between, Oversized)
        assert after == [b"b"]


def test_both_ends_of_a_line_that_was_too_long_are_kept() -> None:
    """A4."""
    line = b"HEAD" + b"x" * 50_000 + b"TAIL"
    for size in (3, 100, 4_096, 100_000):
        chunks = [line[at : at + size] for at in range(0, len(line), size)]
        (kept,) = split(*chunks, limit=10_000)
        assert kept == Oversized(line[:EDGE_BYTES], line[-EDGE_BYTES:], 10_000, len(line))


@pytest.mark.parametrize("size", [2, 100, 64 << 10])
def test_a_line_costs_little_more_memory_than_its_bytes_whatever_its_pieces(size: int) -> None:
    """A4: pieces of two bytes, kept apart, would cost twenty times as much."""
    length = 64 << 10
    splitter = LineSplitter(2 * length)
    tracemalloc.start()
    try:
        for _ in range(0, length, size):
            splitter.feed(bytes(size))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * length


def test_a_line_that_is_too_long_costs_no_more_memory_than_the_limit() -> None:
    """A4."""
    splitter = LineSplitter(1 << 20)
    tracemalloc.start()
    try:
        for _ in range(1_000):
            splitter.feed(bytes(64 << 10))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 << 20
