"""What arrives in frames is the same, whatever chunks the network makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.transport.websocket_frames import CONTINUATION, PING, TEXT, Control, FrameReader, frame, text_frames

if TYPE_CHECKING:
    from holdfast.transport.websocket_frames import Received

LIMIT = 1_000
payloads = st.binary(max_size=300).map(lambda data: data.replace(b"\n", b" "))


def read(chunks: list[bytes], *, masked: bool) -> list[Received]:
    reader = FrameReader(LIMIT, masked=masked)
    return [each for chunk in chunks for each in reader.feed(chunk)]


def cut(data: bytes, *at: int) -> list[bytes]:
    places = sorted({min(place, len(data)) for place in at})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@pytest.mark.requirement("H1")
@given(st.lists(payloads, min_size=1, max_size=6), st.lists(st.integers(0, 2_000), max_size=12), st.booleans())
@example([b"first", b"next"], [2], False)  # a chunk that ends with a head once broke the connection at the next frame
@example([b"first", b"next"], [6], True)
def test_lines_are_the_same_however_their_frames_are_cut(lines: list[bytes], at: list[int], masked: bool) -> None:
    assert read(cut(text_frames(lines, masked=masked), *at), masked=masked) == lines


@pytest.mark.requirement("H1")
@pytest.mark.parametrize("masked", [False, True])
def test_a_message_in_parts_with_a_ping_between_them_may_be_cut_anywhere(masked: bool) -> None:
    first = bytearray(frame(TEXT, b"in ", masked=masked))
    first[0] &= 0x7F  # not the last of its message
    rest = (frame(PING, b"?", masked=masked), frame(CONTINUATION, b"parts", masked=masked))
    data = bytes(first) + b"".join(rest) + text_frames([b"", b"x" * 200, b"end"], masked=masked)
    expected = [Control(PING, b"?"), b"in parts", b"", b"x" * 200, b"end"]
    for place in range(len(data) + 1):
        assert read(cut(data, place), masked=masked) == expected, place
    assert read([data[at : at + 1] for at in range(len(data))], masked=masked) == expected
