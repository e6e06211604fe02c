"""Segments: how lines are cut into them, how damage in them is noticed, where an entry ends in them."""

from __future__ import annotations

import sys
import zlib

import msgspec
import pytest

from holdfast.format import Line, fold, lines_of, updates_in, with_texts
from holdfast.format.segments import (
    LARGE_BYTES,
    SEGMENT_BYTES,
    Cut,
    checksum,
    damaged_line,
    end_of_entry,
    fast_crc32,
    is_whole,
    runs,
    some_lines,
)


def message(key: str, text: str = "x") -> dict[str, object]:
    return {"sessionUpdate": "agent_message", "messageId": key, "content": [{"type": "text", "text": text}]}


def stored(*updates: object) -> list[bytes]:
    return [line.body for line in lines_of(fold(msgspec.json.encode(update) for update in updates))]


@pytest.mark.parametrize(
    "sizes",
    [[1], [SEGMENT_BYTES], [SEGMENT_BYTES * 3], [10] * 20_000, [SEGMENT_BYTES // 2] * 5, [1, SEGMENT_BYTES, 1]],
)
def test_runs_are_all_lines_in_order_and_none_is_too_large_unless_it_is_one_line(sizes: list[int]) -> None:
    lines = [Line(b"x" * size, "") for size in sizes]
    cut = list(runs(lines))
    assert [line for run in cut for line in run] == lines
    assert all(len(run) == 1 or sum(len(line.body) + 1 for line in run) <= SEGMENT_BYTES for run in cut)
    assert len(cut) <= 2 * sum(sizes) // SEGMENT_BYTES + 8


def test_any_flipped_bit_is_noticed() -> None:
    body = b"\n".join(stored(message("a"), message("b", "some text")))
    known = checksum(body)
    assert is_whole(body, 2, known)
    for at in range(len(body)):
        for bit in range(8):
            assert not is_whole(body[:at] + bytes([body[at] ^ 1 << bit]) + body[at + 1 :], 2, known)


@pytest.mark.parametrize("has_zlib_ng", [True, False])
def test_a_large_segment_is_checked_the_same_with_zlib_ng_and_without(
    monkeypatch: pytest.MonkeyPatch, has_zlib_ng: bool
) -> None:
    monkeypatch.setattr("holdfast.format.segments.fast_crc32", fast_crc32.__wrapped__)
    if has_zlib_ng:
        pytest.importorskip("zlib_ng.zlib_ng", reason="zlib-ng is not installed")
    else:
        monkeypatch.setitem(sys.modules, "zlib_ng", None)
    for size in (LARGE_BYTES - 1, LARGE_BYTES, SEGMENT_BYTES, 3 * SEGMENT_BYTES + 1):
        body = bytes(at * at % 251 for at in range(size))
        assert checksum(body) == zlib.crc32(body)
        assert is_whole(body, 1, checksum(body))
        for at in (0, size // 2, size - 1):
            assert not is_whole(body[:at] + bytes([body[at] ^ 4]) + body[at + 1 :], 1, checksum(body))
        assert not is_whole(body[:-1], 1, checksum(body))


@pytest.mark.parametrize(
    ("body", "lines", "expected"),
    [
        (b"\n".join(stored(message("a"), message("b"))), 2, True),
        (b"\n".join(stored(message("a"), message("b"))), 1, False),
        (b"\n".join(stored(message("a"), message("b")))[:-1], 2, False),
        (b'\x04{"a":1}\n\x04{"b":2}', 2, True),
        (b'\x04{"a":1}\n\x04{"b":2', 2, False),
        (b'\x04{"a":1}\n\x04{"b":"\xff"}', 2, False),
        (b"", 1, False),
    ],
)
def test_what_has_no_checksum_must_at_least_be_so_many_lines_of_json(body: bytes, lines: int, expected: bool) -> None:
    assert is_whole(body, lines, None) == expected


def test_a_mark_stands_for_lines_that_cannot_be_read() -> None:
    update = msgspec.json.decode(updates_in(damaged_line(7, 10)))
    assert update == {"sessionUpdate": "_holdfast/damaged", "lines": 3, "firstLine": 7}
    assert len(fold([damaged_line(7, 10)])) == 1


def test_some_lines_of_a_segment_are_those_lines() -> None:
    assert some_lines(b"a\nb\nc\nd", 1, 3) == b"b\nc"
    assert some_lines(b"a\nb\nc\nd", 3, 9) == b"d"


def test_an_entry_ends_with_the_last_of_the_lines_that_stand_together() -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "_meta": {"x": 1}}
    parts = stored(*[{**chunk, "content": {"type": "text", "text": str(n)}} for n in range(4)])
    first, last = stored(message("a")), stored(message("z"))
    segments = [(0, first + parts[:2]), (3, parts[2:]), (3 + len(parts) - 2, last)]
    found = end_of_entry([(position, b"\n".join(lines)) for position, lines in segments], "m")
    assert found == Cut(3, parts[2:])
    assert found is not None and found.end == len(parts) + 1
    assert end_of_entry([(0, b"\n".join(first))], "m") is None


def test_stored_lines_get_the_texts_they_were_stored_with() -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "_meta": {"x": 1}}
    lines = lines_of(
        fold(
            msgspec.json.encode(update)
            for update in (
                message("a", "first"),
                {**chunk, "content": {"type": "text", "text": "one "}},
                {**chunk, "content": {"type": "text", "text": "two"}, "_meta": {"x": 2}},
                {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Read"},
                {"sessionUpdate": "_mine", "x": 1},
                {"sessionUpdate": "_mine", "x": 2},
            )
        )
    )
    assert with_texts([line.body for line in lines]) == lines
    assert with_texts([]) == []
