"""What `decode` makes of a line, and what `oversized` makes of the ends of one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec import Raw

from holdfast.jsonrpc import (
    MAX_BATCH_BYTES,
    MAX_BATCH_ENTRIES,
    MAX_DEPTH,
    Batch,
    ErrorObject,
    Frame,
    Invalid,
    Malformed,
    Notification,
    Request,
    Response,
    decode,
    oversized,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PARSE_ERROR, INVALID_REQUEST = -32700, -32600


def request(id_: bytes = b"1", params: bytes = b"{}") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"m","params":%b}' % (id_, params)


def nested(depth: int) -> bytes:
    """Write a request whose parameters make it nest that deep."""
    inside = depth - 1
    return request(params=b"[" * inside + b"]" * inside)


def refusal(frame: Frame) -> tuple[int, object]:
    assert isinstance(frame, Malformed | Invalid)
    return frame.error.code, None if isinstance(frame, Malformed) else frame.id


# Messages


def test_a_request_has_its_id_its_method_and_its_parameters_as_they_were_written() -> None:
    frame = decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params": {"a" : [1,  2.50] } }')
    assert isinstance(frame, Request)
    assert (frame.id, frame.method) == (1, "m")
    assert frame.params == Raw(b'{"a" : [1,  2.50] }')


def test_a_notification_has_no_id() -> None:
    assert decode(b'{"jsonrpc":"2.0","method":"m"}') == Notification("m", None)


def test_parameters_that_are_null_count_as_none() -> None:
    assert decode(request(params=b"null")) == Request(1, "m", None)


def test_a_response_is_a_result_or_an_error() -> None:
    assert decode(b'{"jsonrpc":"2.0","id":1,"result":null}') == Response(1, Raw(b"null"))
    error = decode(b'{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"no","data":[1]}}')
    assert error == Response("a", ErrorObject(-1, "no", Raw(b"[1]")))


def test_an_error_response_may_have_no_id() -> None:
    """A5: Toad answers notifications with an error whose id is null."""
    for id_ in (b"", b'"id":null,'):
        frame = decode(b'{"jsonrpc":"2.0",%b"error":{"code":-1,"message":"no"}}' % id_)
        assert frame == Response(None, ErrorObject(-1, "no"))


def test_a_response_without_a_version_is_let_through() -> None:
    assert decode(b'{"id":1,"result":2}') == Response(1, Raw(b"2"))


@pytest.mark.parametrize(
    "id_", [0, -1, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 10**30, "", "a", "1", "é\u2028😀", 'q"\\/', "\x00"]
)
def test_an_id_is_any_string_or_integer_exactly(id_: int | str) -> None:
    """A5."""
    import json

    frame = decode(request(json.dumps(id_).encode()))
    assert isinstance(frame, Request)
    assert (type(frame.id), frame.id) == (type(id_), id_)


@pytest.mark.parametrize("id_", [b"1.5", b"1.0", b"1e3", b"null", b"true", b"false", b"[]", b"{}", b"9" * 5_000])
def test_no_other_value_is_an_id(id_: bytes) -> None:
    """A3."""
    assert refusal(decode(request(id_))) == (INVALID_REQUEST, None)


def test_of_a_name_written_twice_the_last_one_counts() -> None:
    twice = b'{"jsonrpc":1,"id":1.5,"method":2,"params":3,"jsonrpc":"2.0","id":7,"method":"m","params":{}}'
    assert decode(twice) == Request(7, "m", Raw(b"{}"))
    error = b'"error":{"code":"c","message":1,"code":-1,"message":"no"}'
    assert decode(b'{"jsonrpc":"2.0","id":7,%s}' % error) == Response(7, ErrorObject(-1, "no"))
    assert decode(b'{"jsonrpc":"2.0","id":7,"method":"m",%s}' % error) == Request(7, "m", None)
    assert refusal(decode(b'{"jsonrpc":"2.0","method":"m","id":7,"id":1.5}')) == (INVALID_REQUEST, None)


def test_names_may_be_written_with_escapes() -> None:
    assert decode(rb'{"\u006asonrpc":"\u0032.0","\u0069d":1,"metho\u0064":"m"}') == Request(1, "m", None)


def test_unknown_members_are_ignored() -> None:
    assert decode(b'{"jsonrpc":"2.0","id":1,"method":"m","x":[{"y":null}],"":1}') == Request(1, "m", None)


def test_space_around_a_message_does_not_matter() -> None:
    assert decode(b' \t{"jsonrpc": "2.0" ,"id":1, "method":"m"}\r') == Request(1, "m", None)


# What is no JSON


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"}",
        b'{"jsonrpc":"2.0","id":1,"method":"m"',
        b'{"jsonrpc":"2.0","id":1,"method":"m"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m"} {}',
        b'{"jsonrpc":"2.0","id":1,"method":"m",}',
        b"{'jsonrpc':'2.0'}",
        b'{"id":1.5, garbage',
        b'{"jsonrpc": 3, }',
        b"42 x",
        b"nul",
        b"nulll",
        b"[1,",
        b"[1,]",
        b"[1 2]",
        rb'[{"jsonrpc":"2.0","method":"\q"}]',
        b"\xef\xbb\xbf{}",
        b"\x00",
        b"\x0b",
        b'{"a":1}\x0c',
    ],
)
def test_what_is_no_json_is_malformed(line: bytes) -> None:
    """A2: also where the mistake comes after something that would have been refused anyway."""
    assert refusal(decode(line)) == (PARSE_ERROR, None)


@pytest.mark.parametrize(
    "value",
    [
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"01",
        b"1.",
        b".5",
        b"+1",
        b"-",
        b"1e",
        b"0x1",
        b"tru",
        b'"\t"',
        b'"\x1f"',
        rb'"\x41"',
        rb'"\u12"',
        rb'"\u12g4"',
        rb'"\ud80"',
        rb'"\ud800\u12"',
        rb'"\ud800\q"',
        b'"',
        rb'"\"',
        b"'a'",
        b'{"a"}',
        b'{"a":}',
        b"{1:2}",
        b'{"a":1,}',
        b"[,]",
        b"[}",
        b"/**/1",
    ],
)
@pytest.mark.parametrize("place", [b'{"jsonrpc":"2.0","id":1,"method":"m","params":[%b]}', b'{"x":%b}', b"[%b]", b"%b"])
def test_a_value_that_is_no_json_is_malformed_wherever_it_stands(place: bytes, value: bytes) -> None:
    """A2."""
    assert refusal(decode(place % value)) == (PARSE_ERROR, None)


@pytest.mark.parametrize(
    "junk",
    [b"\xff", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\xaf", b"\xf0\x80\x80\xaf"],
)
@pytest.mark.parametrize(
    "place",
    [
        b"%b",
        b'"%b"',
        b'{"jsonrpc":"2.0","id":1,"method":"%b"}',
        b'{"jsonrpc":"2.0","id":"%b","method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":["%b"]}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","%b":0}',
        b'[{"jsonrpc":"2.0","id":1,"method":"m","params":["%b"]}]',
    ],
)
def test_bytes_that_are_no_utf8_are_malformed_wherever_they_stand(place: bytes, junk: bytes) -> None:
    """A2."""
    assert refusal(decode(place % junk)) == (PARSE_ERROR, None)


# Lone surrogates


@pytest.mark.requirement("A2")
@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"\ud83d", "\ufffd"),
        (rb"\uDE00", "\ufffd"),
        (rb"\ud83d\ud83d", "\ufffd\ufffd"),
        (rb"\ude00\ud83d", "\ufffd\ufffd"),
        (rb"a\ud83d", "a\ufffd"),
        (rb"\ud83dA\ude00", "\ufffdA\ufffd"),
        (rb"\ud83d\u0041", "\ufffdA"),
        (rb"\ud83d\n", "\ufffd\n"),
        (rb"\ud83d\\", "\ufffd\\"),
        (rb"\ud83d\\ude00", "\ufffd\\ude00"),
        (rb"\\\ud83d", "\\\ufffd"),
        (rb"\\ud83d\ude00", "\\ud83d\ufffd"),
        (rb"\ud83d\ude00\ud83d", "\U0001f600\ufffd"),
        (rb"\ud83d\ud83d\uDe00\ude00", "\ufffd\U0001f600\ufffd"),
        (b"\xf0\x9f\x98\x80\\udc00", "\U0001f600\ufffd"),
    ],
)
def test_a_lone_surrogate_is_replaced_and_the_message_is_read(written: bytes, read: str) -> None:
    r"""JavaScript writes `"\ud83d"` for an emoji it cut in two; that is no reason to lose the message."""
    request_ = decode(request(params=b'["%b"]' % written))
    assert isinstance(request_, Request)
    assert request_.id == 1
    assert request_.params is not None
    assert msgspec.json.decode(request_.params) == [read]
    notification = decode(b'{"jsonrpc":"2.0","method":"m","params":{"%b":"%b"}}' % (written, written))
    assert isinstance(notification, Notification)
    assert notification.params is not None
    assert msgspec.json.decode(notification.params) == {read: read}
    response = decode(b'{"jsonrpc":"2.0","id":1,"result":"%b"}' % written)
    assert isinstance(response, Response)
    assert isinstance(response.outcome, Raw)
    assert msgspec.json.decode(response.outcome) == read
    error = decode(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"%b"}}' % written)
    assert error == Response(1, ErrorObject(1, read))


@pytest.mark.requirement("A2")
def test_a_lone_surrogate_in_a_batch_or_an_unknown_member_is_replaced_too() -> None:
    batch = decode(rb'[{"jsonrpc":"2.0","id":1,"method":"m","params":["\ud83d"]},"\ud83d"]')
    assert isinstance(batch, Batch)
    good, bad = batch.messages
    assert good == Request(1, "m", Raw(rb'["\ufffd"]'))
    assert refusal(bad) == (INVALID_REQUEST, None)
    assert decode(rb'{"jsonrpc":"2.0","id":1,"method":"m","\ud83d":"\ud83d"}') == Request(1, "m", None)
    assert decode(rb'{"jsonrpc":"2.0","id":"\ud83d","method":"\ud83d"}') == Request("\ufffd", "\ufffd", None)


@pytest.mark.requirement("A2")
@pytest.mark.parametrize(
    "line",
    [
        rb'{"jsonrpc":"2.0","id":1,"method":"m","params":["\ud83d"]',
        rb'{"jsonrpc":"2.0","id":1,"method":"m","params":["\ud83d",NaN]}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":["\\ud83d\xff"]}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":["\\ud83d\0"]}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":["\\ud83d",%b]}' % (b"[" * 128 + b"]" * 128),
        rb"\ud83d",
        rb'"\ud83d',
    ],
)
def test_a_line_with_a_lone_surrogate_and_another_mistake_is_malformed(line: bytes) -> None:
    assert refusal(decode(line)) == (PARSE_ERROR, None)


@pytest.mark.requirement("P7")
@pytest.mark.parametrize("unit", [rb"\ud83d", rb"\ude00", rb"\ud83d\ude00", rb"\ud83d\\", rb"\\", rb"\ud", rb"\u"])
def test_repairing_a_hostile_line_costs_time_linear_in_its_length(unit: bytes) -> None:
    def seconds(size: int) -> float:
        line = b'{"x":"' + unit * (size // len(unit)) + rb'\ud83d"'  # malformed: its last brace is missing
        return min(_time(lambda: decode(line)) for _ in range(3))

    assert seconds(1 << 21) < 8 * 4 * seconds(1 << 18)


# Depth


def test_a_message_may_nest_as_deep_as_the_limit() -> None:
    """A2."""
    assert isinstance(decode(nested(MAX_DEPTH)), Request)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, MAX_DEPTH + 2, 1_000, 10_000, 1_000_000])
def test_a_message_that_nests_deeper_than_the_limit_is_malformed(depth: int) -> None:
    """A2."""
    assert refusal(decode(nested(depth))) == (PARSE_ERROR, None)
    assert refusal(decode(b'{"a":' * depth + b"1" + b"}" * depth)) == (PARSE_ERROR, None)
    assert refusal(decode(b"[" * depth)) == (PARSE_ERROR, None)


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 1_000,
        rb"\"" + b"[" * 1_000,
        rb"\\",
        rb"\\\"" + b"{" * 1_000,
        b"]" * 1_000,
        rb"\\\\\"[" * 500,
        rb"\u005b" * 1_000,
    ],
)
def test_brackets_inside_strings_do_not_nest(text: bytes) -> None:
    params = b'{"' + text + b'":["' + text + b'"]}' + b" " * 300
    assert isinstance(decode(request(params=params)), Request)
    too_deep = b'["%b",%b]' % (text, b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert refusal(decode(request(params=too_deep))) == (PARSE_ERROR, None)


def test_many_containers_beside_each_other_do_not_nest() -> None:
    assert isinstance(decode(request(params=b"[" + b",".join([b'[{"a":[]}]'] * 50_000) + b"]")), Request)
    peak = b"[" * 100 + b"]" * 100
    assert isinstance(decode(request(params=b"[" + b",".join([peak] * 1_000) + b"]")), Request)


@pytest.mark.parametrize(
    "line",
    [
        b"[" * (2 << 20),
        b"[" * (1 << 20) + b"]" * (1 << 20),
        b"[]" * (1 << 20) + b"[" * 200,
        b'""' * (1 << 20) + b"[" * 200,
        b'"["[' * (1 << 19),
        b"\\" * (2 << 20) + b"[" * 200,
        (b"[" * 120 + b"]" * 120) * (2 << 20 >> 8),
    ],
    ids=["open", "nested", "beside", "strings", "mixed", "escapes", "peaks"],
)
def test_judging_the_depth_of_a_hostile_line_costs_as_much_as_reading_it_a_few_times(line: bytes) -> None:
    """One line that blocks the loop for seconds would stall every connection (P7).

    Compared, in processor time, with looking for a bracket pair all through as many bytes; a pass for each of the 128
    levels is what it must not cost.
    """
    brackets = b"[" * len(line)
    once = min(_time(lambda: brackets.count(b"[]")) for _ in range(3))
    assert min(_time(lambda: refusal(decode(line))) for _ in range(3)) < 64 * once


def _time(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


# What is JSON, but no message


@pytest.mark.parametrize("line", [b"null", b"42", b"-0", b"1e999", b"true", b'"x"', b"9" * 5_000])
def test_a_value_that_is_no_object_is_refused(line: bytes) -> None:
    """A3."""
    assert refusal(decode(line)) == (INVALID_REQUEST, None)


@pytest.mark.parametrize(
    "members",
    [
        b'"method":"m"',
        b'"jsonrpc":"1.0","method":"m"',
        b'"jsonrpc":2.0,"method":"m"',
        b'"jsonrpc":null,"method":"m"',
        b'"jsonrpc":"2.0"',
        b'"jsonrpc":"2.0","method":null',
        b'"jsonrpc":"2.0","method":["m"]',
        b'"jsonrpc":"2.0","method":"m","params":3',
        b'"jsonrpc":"2.0","method":"m","params":"p"',
        b'"jsonrpc":"2.0","method":"m","params":true',
        b'"jsonrpc":"2.0","method":"m","error":3',
        b'"jsonrpc":"2.0","method":3,"result":1',
        b'"x":1e999,"jsonrpc":"1.0"',
        b'"x":' + b"9" * 5_000 + b',"jsonrpc":"1.0"',
    ],
)
@pytest.mark.parametrize(("id_", "seen"), [(b"7", 7), (b'"a"', "a"), (b"1.5", None), (b"null", None), (b"[]", None)])
def test_an_object_that_is_no_message_is_refused_with_its_id_where_one_is_readable(
    members: bytes, id_: bytes, seen: object
) -> None:
    """A3."""
    for line in (b'{"id":%b,%b}' % (id_, members), b'{%b,"id":%b}' % (members, id_)):
        assert refusal(decode(line)) == (INVALID_REQUEST, seen)
    assert refusal(decode(b"{%b}" % members)) == (INVALID_REQUEST, None)


@pytest.mark.parametrize(
    "members",
    [
        b'"result":1,"error":{"code":1,"message":"m"}',
        b'"error":null',
        b'"error":{"code":1}',
        b'"error":{"code":"1","message":"m"}',
        b'"error":{"code":1.5,"message":"m"}',
        b'"error":"no"',
        b'"jsonrpc":"1.0","result":1',
    ],
)
def test_a_broken_response_names_the_request_of_ours_that_it_was_meant_for(members: bytes) -> None:
    """Nobody answers it: that could go back and forth for ever."""
    frame = decode(b'{"id":7,%b}' % members)
    assert isinstance(frame, Invalid)
    assert frame.to_us
    assert frame.id == 7


@pytest.mark.parametrize("id_", [b'"id":null,', b'"id":1.5,', b""])
def test_a_result_for_nobody_is_a_broken_response(id_: bytes) -> None:
    frame = decode(b'{"jsonrpc":"2.0",%b"result":1}' % id_)
    assert isinstance(frame, Invalid)
    assert frame.to_us
    assert frame.id is None


# Batches


def test_a_batch_has_each_of_its_entries_good_or_bad() -> None:
    """A3."""
    frame = decode(b' [{"jsonrpc":"2.0","id":1,"method":"m"}, null ,42,"x",[],[1],{"id":2}]')
    assert isinstance(frame, Batch)
    good, *bad = frame.messages
    assert good == Request(1, "m", None)
    assert [refusal(entry) for entry in bad] == [(INVALID_REQUEST, None)] * 5 + [(INVALID_REQUEST, 2)]


def test_an_empty_batch_is_refused() -> None:
    """A3."""
    assert refusal(decode(b"[]")) == (INVALID_REQUEST, None)
    assert refusal(decode(b" [ ] ")) == (INVALID_REQUEST, None)


def test_a_batch_may_have_as_many_entries_as_the_limit_and_no_more() -> None:
    frame = decode(b"[" + b",".join([b"{}"] * MAX_BATCH_ENTRIES) + b"]")
    assert isinstance(frame, Batch)
    assert len(frame.messages) == MAX_BATCH_ENTRIES
    assert refusal(decode(b"[" + b",".join([b"{}"] * (MAX_BATCH_ENTRIES + 1)) + b"]")) == (INVALID_REQUEST, None)


def test_a_batch_may_be_as_long_as_the_limit_and_no_longer() -> None:
    longest = b"[{}" + b" " * (MAX_BATCH_BYTES - 4) + b"]"
    assert isinstance(decode(longest), Batch)
    assert refusal(decode(longest + b" ")) == (INVALID_REQUEST, None)


def test_a_batch_that_is_too_long_and_no_json_is_malformed() -> None:
    assert refusal(decode(b"[{}" + b" " * MAX_BATCH_BYTES)) == (PARSE_ERROR, None)


# Lines that are too long


@pytest.mark.parametrize(
    ("head", "tail", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"xx', b'xx"}}', 7),
        (b'{"id":"7","jsonrpc":"2.0","method":"m","params":{"a":"xx', b'xx"}}', "7"),
        (b' { "method" : "m" ,\t"id" : -7 , "params" : [', b"]}\r", -7),
        (rb'{"id":"a\"b\\","method":"m","params":[', b"]}", 'a"b\\'),
        (b'{"id":9223372036854775807,"x":[', b"]}", 2**63 - 1),
        (b'{"method":"m","params":{"a":"xx', b'xx"},"id":7}', 7),
        (b'{"params":{"a":"xx', b'xx"}, "method":"m", "id":"a" ,"jsonrpc":"2.0"} ', "a"),
        (b'{"method":"m","params":{"id":5,"a":"xx', b'xx","id":6}}', None),
        (b'{"method":"m","params":"xx', rb'\",\"id\":7}"}', None),
        (b'{"id":1.5,"method":"m","params":[', b"]}", None),
        (b'{"id":01,"method":"m","params":[', b"]}", None),
        (rb'{"id":"\ud800","method":"m","params":[', b"]}", None),
        (b'[{"id":7,"method":"m","params":[', b"]}]", None),
        (b'"xxxx', b'xxxx"', None),
        (b"\xff\xfe\x00", b"\x00", None),
        (b"", b"", None),
    ],
)
def test_an_oversized_request_is_refused_with_its_id_where_either_end_of_it_says_so(
    head: bytes, tail: bytes, id_: object
) -> None:
    """A4."""
    frame = oversized(head, tail, 1_000)
    assert refusal(frame) == (INVALID_REQUEST, id_)
    assert not frame.to_us
    assert "1000" in frame.error.message


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"a":"xx', b'xx"}}'),
        (b'{"id":7,"error":{"code":1,"message":"xx', b'xx"}}'),
        (b'{"result":"xx', b'xx","id":7}'),
        (b'{"jsonrpc":"2.0","result":["xx', b'xx"] , "id":7 }'),
    ],
)
def test_an_oversized_response_names_the_request_of_ours_that_it_was_meant_for(head: bytes, tail: bytes) -> None:
    """A4."""
    frame = oversized(head, tail, 1_000)
    assert frame.to_us
    assert frame.id == 7


@pytest.mark.parametrize("filler", [b" ", b"\\", b"1", b",", b',"id":1', b',"id":"a","id":"a"', b'{"id":"', b"[{"])
def test_reading_the_ends_of_a_hostile_line_is_quick(filler: bytes) -> None:
    """No input makes the patterns try again and again: bounded in steps, so far below the bound of any test."""
    edge = (filler * 4_096)[:4_096]
    for head in (edge, b"{" + edge, b'{"id":"' + edge, b'{"result":'):
        oversized(head, edge, 1_000)
