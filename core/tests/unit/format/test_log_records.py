"""Records of a log: what comes back whole, what is torn, what is damaged, what belongs to another turn."""

from __future__ import annotations

import pytest

from holdfast.format.log_records import (
    Beginning,
    LoggedTurn,
    decode_log,
    decode_old_log,
    encode_beginning,
    encode_record,
)

LINES = [b'{"n":%d,"text":"%s"}' % (n, b"\xf0\x9f\x98\x80" * n) for n in range(4)]
RECORDS = [encode_record(5, line + b"\n") for line in LINES]
LOG = b"".join(RECORDS)


def test_all_that_was_appended_comes_back_in_order() -> None:
    assert decode_log(LOG, 5) == LoggedTurn(LINES, is_damaged=False)
    together = encode_record(5, b"\n".join(LINES) + b"\n")
    assert decode_log(together + RECORDS[0], 5) == LoggedTurn([*LINES, LINES[0]], is_damaged=False)
    assert decode_log(b"", 5) == LoggedTurn([], is_damaged=False)


def test_what_belongs_to_another_turn_is_passed_over() -> None:
    log = encode_record(4, b"{}\n") + RECORDS[0] + encode_record(6, b"[]\n") + RECORDS[1]
    assert decode_log(log, 5) == LoggedTurn(LINES[:2], is_damaged=False)
    assert decode_log(encode_record((1 << 32) + 5, b"{}\n"), (1 << 32) + 5).lines == [b"{}"]


def test_a_log_that_was_cut_off_anywhere_gives_the_records_that_are_whole() -> None:
    ends = [sum(map(len, RECORDS[:count])) for count in range(5)]
    for size in range(len(LOG) + 1):
        whole = sum(end <= size for end in ends[1:])
        assert decode_log(LOG[:size], 5) == LoggedTurn(LINES[:whole], is_damaged=False)


def test_any_flipped_bit_is_noticed_and_behind_it_nothing_is_believed() -> None:
    ends = [sum(map(len, RECORDS[: count + 1])) for count in range(4)]
    for at in range(len(LOG) - 1):  # a last byte that is no newline was not written
        whole = sum(end <= at for end in ends)
        for bit in range(8):
            flipped = LOG[:at] + bytes([LOG[at] ^ 1 << bit]) + LOG[at + 1 :]
            assert decode_log(flipped, 5) == LoggedTurn(LINES[:whole], is_damaged=True), (at, bit)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 5_000])
def test_room_that_was_made_and_not_written_is_no_damage(count: int) -> None:
    assert decode_log(LOG + bytes(count), 5) == LoggedTurn(LINES, is_damaged=False)
    cut = len(LOG) - 5
    assert decode_log(LOG[:cut] + bytes(5), 5) == LoggedTurn(LINES[:3], is_damaged=False)


@pytest.mark.parametrize("garbage", [b"x" * 16, b"{}\n" * 100, bytes(20) + b"x"])
def test_what_was_never_a_record_is_damage(garbage: bytes) -> None:
    assert decode_log(LOG + garbage, 5) == LoggedTurn(LINES, is_damaged=True)


# A turn that begins in its log

BEGINNING = Beginning(123, b"\n".join(LINES[:2]))
BEGUN = encode_beginning(5, BEGINNING)


def test_how_a_turn_began_comes_back_apart_from_what_was_said() -> None:
    assert decode_log(BEGUN + LOG + bytes(100), 5) == LoggedTurn(LINES, is_damaged=False, beginning=BEGINNING)
    assert decode_log(encode_record(4, b"{}\n") + BEGUN, 5) == LoggedTurn([], is_damaged=False, beginning=BEGINNING)
    assert decode_log(BEGUN + LOG, 6) == LoggedTurn([], is_damaged=False)


def test_a_beginning_that_was_not_written_to_its_end_is_none() -> None:
    for size in range(len(BEGUN)):
        assert decode_log(BEGUN[:size], 5) == LoggedTurn([], is_damaged=False)
    for size in range(16, len(BEGUN)):  # sectors are written whole, so its header is
        assert decode_log(BEGUN[:size] + bytes(100), 5) == LoggedTurn([], is_damaged=False)


def test_a_beginning_that_is_damaged_is_one_all_the_same() -> None:
    for at in range(16, len(BEGUN) - 1):
        flipped = BEGUN[:at] + bytes([BEGUN[at] ^ 1]) + BEGUN[at + 1 :] + LOG
        assert decode_log(flipped, 5) == LoggedTurn([], is_damaged=True, beginning=Beginning(0, b""))


# Logs of format 1


def test_cut_off_anywhere_an_old_log_gives_the_lines_that_are_whole() -> None:
    whole = b"".join(line + b"\n" for line in LINES)
    for size in range(len(whole) + 1):
        assert decode_old_log(whole[:size]) == LINES[: whole[:size].count(b"\n")]


@pytest.mark.parametrize(
    "damage",
    [
        b"\0" * 100,
        b"\0\n\0\n",
        b"{\n",
        b"[]\n",
        b"null\n",
        b'"x"\n',
        b"1\n",
        b"\n",
        b"\xff\n",
        b'{"a":"\xff"}\n',
        b"{}}\n",
    ],
)
def test_behind_the_first_damage_nothing_of_an_old_log_is_believed(damage: bytes) -> None:
    assert decode_old_log(LINES[0] + b"\n" + damage + LINES[1] + b"\n") == LINES[:1]
