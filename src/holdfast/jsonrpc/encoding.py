"""Messages to bytes, one function a kind. Anything `msgspec` can encode may be a parameter or a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.jsonrpc.messages import ErrorObject, Id

if TYPE_CHECKING:
    from collections.abc import Iterable

# The tag writes `"jsonrpc":"2.0"` first, where readers look for it.


class _Request(msgspec.Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True, gc=False):
    id: Id
    method: str
    params: object | UnsetType = UNSET


class _Notification(msgspec.Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True, gc=False):
    method: str
    params: object | UnsetType = UNSET


class _Result(msgspec.Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: Id
    result: object


class _Error(msgspec.Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: Id | None
    error: ErrorObject


_encode = msgspec.json.Encoder().encode


def encode_request(id_: Id, method: str, params: object = UNSET) -> bytes:
    """Encode a request."""
    return _encode(_Request(id_, method, params))


def encode_notification(method: str, params: object = UNSET) -> bytes:
    """Encode a notification."""
    return _encode(_Notification(method, params))


def encode_result(id_: Id, result: object) -> bytes:
    """Encode the answer to a request that went well."""
    return _encode(_Result(id_, result))


def encode_error(id_: Id | None, error: ErrorObject) -> bytes:
    """Encode the answer to a request that did not; the id is `None` where none could be read."""
    return _encode(_Error(id_, error))


def encode_batch(messages: Iterable[bytes]) -> bytes:
    """Join encoded messages into one array."""
    return b"[" + b",".join(messages) + b"]"


def encode_raw(value: object) -> Raw:
    """Encode a value on its own, to be carried inside a message."""
    return Raw(_encode(value))
