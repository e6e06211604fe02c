"""Exceptions to errors: nothing leaks, and what is sent can be encoded (P6)."""

from __future__ import annotations

import asyncio
import json

import pytest

from holdfast.errors import InternalError, InvalidParams, MethodNotFound, RequestError
from holdfast.jsonrpc import encode_error
from holdfast.peer.faults import error_for


@pytest.mark.parametrize("kind", [InvalidParams, InternalError, MethodNotFound])
def test_a_request_error_is_sent_as_it_is(kind: type[RequestError]) -> None:
    error = json.loads(encode_error(1, error_for(kind("why", {"a": [1]}), "Testing")))["error"]
    assert error == {"code": kind.code, "message": "why", "data": {"a": [1]}}


def test_a_cancellation_is_said_to_be_one() -> None:
    assert error_for(asyncio.CancelledError("secret"), "Testing").code == -32800


@pytest.mark.parametrize(
    "exception", [ValueError("secret"), OSError(2, "secret", "/secret"), KeyboardInterrupt("secret")]
)
def test_any_other_exception_is_logged_whole_and_sent_as_a_reference(
    exception: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    line = encode_error(1, error_for(exception, "Testing"))
    assert b"secret" not in line
    error = json.loads(line)["error"]
    assert error["code"] == -32603
    assert error["data"]["reference"] in caplog.text
    assert "secret" in caplog.text


def test_two_failures_have_two_references() -> None:
    assert error_for(ValueError(), "a").data != error_for(ValueError(), "b").data


@pytest.mark.parametrize("message", ["\ud800", "a\udcffb", "\x00\n\u2028😀"])
def test_a_message_that_is_no_text_can_be_sent(message: str) -> None:
    line = encode_error(1, error_for(InvalidParams(message), "Testing"))
    assert b"\n" not in line
    assert json.loads(line)["error"]["message"]
