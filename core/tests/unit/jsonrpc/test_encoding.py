"""What messages look like as bytes."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from holdfast.jsonrpc import (
    ErrorObject,
    Id,
    Notification,
    Request,
    Response,
    decode,
    encode_batch,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)


@pytest.mark.parametrize("id_", [0, -1, 2**53 + 1, 2**63 - 1, 2**64, "", "1", "é😀\u2028", 'q"\\\n'])
def test_what_is_encoded_decodes_to_the_same(id_: Id) -> None:
    """A5."""
    assert decode(encode_request(id_, "m", {"a": 1})) == Request(id_, "m", Raw(b'{"a":1}'))
    assert decode(encode_request(id_, "m")) == Request(id_, "m", None)
    assert decode(encode_notification("m", [1])) == Notification("m", Raw(b"[1]"))
    assert decode(encode_notification("m")) == Notification("m", None)
    assert decode(encode_result(id_, None)) == Response(id_, Raw(b"null"))
    error = ErrorObject(-32000, "no", Raw(b'{"a":1}'))
    assert decode(encode_error(id_, error)) == Response(id_, error)


def test_an_error_without_an_id_says_null() -> None:
    """A2."""
    assert json.loads(encode_error(None, ErrorObject(-32700, "no"))) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32700, "message": "no"},
    }


def test_a_result_that_is_null_is_written() -> None:
    assert json.loads(encode_result(1, None)) == {"jsonrpc": "2.0", "id": 1, "result": None}


def test_the_version_comes_first_where_readers_look_for_it() -> None:
    for line in (
        encode_request(1, "m"),
        encode_notification("m"),
        encode_result(1, 2),
        encode_error(1, ErrorObject(1, "")),
    ):
        assert line.startswith(b'{"jsonrpc":"2.0",')


def test_a_batch_is_an_array_of_messages() -> None:
    batch = encode_batch([encode_result(1, "a"), encode_result(2, "b")])
    assert [message["result"] for message in json.loads(batch)] == ["a", "b"]


def test_an_encoded_message_holds_no_newline() -> None:
    """A1: a message is a line."""
    assert b"\n" not in encode_request("a\nb", "m\n", {"k\n": ["\r\n\x00\x1f"]})
