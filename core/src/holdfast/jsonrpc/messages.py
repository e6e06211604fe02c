"""What a line of JSON-RPC can be, how it is read and how it is written.

A frame is a `Batch`, a single message, or `Malformed`; a message is one of four things. `Invalid` and `Malformed` are
frames too, not exceptions: the other side's mistakes are ordinary input, and each is owed an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.errors import InvalidRequest, ParseError
from holdfast.jsonrpc.scanning import nests_deeper_than, read_ends, replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_DEPTH = 128
"""Containers may nest this deep; deeper is refused as malformed (A2)."""

MAX_BATCH_ENTRIES = 1_024
"""A batch may have this many entries."""

MAX_BATCH_BYTES = 1 << 20
"""A batch may be this long: a small entry costs twenty times its bytes to hold, so the line limit is no bound."""

Id: TypeAlias = int | str


# Values


@final
class ErrorObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """The `error` member of a response."""

    code: int
    message: str
    data: Raw | UnsetType = UNSET


@final
class Request(msgspec.Struct, frozen=True, gc=False):
    """Asks for an answer. `params` is `None` where there were none."""

    id: Id
    method: str
    params: Raw | None


@final
class Notification(msgspec.Struct, frozen=True, gc=False):
    """Expects no answer."""

    method: str
    params: Raw | None


@final
class Response(msgspec.Struct, frozen=True, gc=False):
    """Answers a request of ours: a `Raw` result or an error. An error whose request was unreadable has no id."""

    id: Id | None
    outcome: Raw | ErrorObject


@final
class Invalid(msgspec.Struct, frozen=True):
    """JSON that is no message: answer `error` to `id` (A3).

    A broken *response* (`to_us`) is not answered, that could go back and forth for ever; the request of ours that
    it was meant for, if `id` says, fails with the error.
    """

    id: Id | None
    error: ErrorObject
    to_us: bool = False


@final
class Malformed(msgspec.Struct, frozen=True):
    """No JSON at all: answer `error` with a null id (A2)."""

    error: ErrorObject


Message: TypeAlias = Request | Notification | Response | Invalid


@final
class Batch(msgspec.Struct, frozen=True):
    """A JSON array of messages, at least one; their answers go back in one array (A3)."""

    messages: tuple[Message, ...]


Frame: TypeAlias = Message | Batch | Malformed


# Writing. Anything `msgspec` can encode may be a parameter or a result.
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


_encode_whole = msgspec.json.Encoder().encode


def _encode(message: object) -> bytes:
    """Encode a message. A lone surrogate, which no encoding of Unicode has, becomes U+FFFD in it (A2)."""
    try:
        return _encode_whole(message)
    except UnicodeEncodeError:
        import json  # noqa: PLC0415  (seldom needed; msgspec writes no escapes)

        written = json.dumps(msgspec.to_builtins(message, enc_hook=_decoded), separators=(",", ":"))
        return replace_lone_surrogates(written.encode())


def _decoded(value: object) -> object:
    """Decode what is encoded already; `msgspec` knows all other kinds of values itself."""
    return msgspec.json.decode(_encode_whole(value))


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


# Reading: one fast path for what is right, one slow path that finds out what is wrong.


class _Envelope(msgspec.Struct, gc=False):
    """All members a valid message may have. What else a message holds is ignored, as JSON-RPC lets others extend it."""

    jsonrpc: Literal["2.0"] | UnsetType = UNSET
    id: Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


_read_envelope = msgspec.json.Decoder(_Envelope).decode
_read_id = msgspec.json.Decoder(Id).decode
_read_value = msgspec.json.Decoder(Raw).decode
_read_entries = msgspec.json.Decoder(list[Raw]).decode
_read_members = msgspec.json.Decoder(dict[str, Raw]).decode

_BRACE = ord("{")


def decode(line: bytes) -> Frame:
    """Read one frame. Never raises: what is wrong with the line comes back as a value."""
    # msgspec passes over strings nobody asked for without looking at their encoding.
    if not line.isascii():
        try:
            line.decode()
        except UnicodeDecodeError as e:
            return _malformed(f"Invalid UTF-8 at byte {e.start}")
    if len(line) > 2 * MAX_DEPTH and line.count(b"[") + line.count(b"{") > MAX_DEPTH:  # noqa: SIM102
        if nests_deeper_than(MAX_DEPTH, line):
            return _malformed(f"Nested deeper than {MAX_DEPTH} levels")
    try:
        envelope = _read_envelope(line)
    except msgspec.ValidationError:
        return _unusual(line)
    except msgspec.DecodeError as e:
        return _repaired(line, e)
    method, params = envelope.method, envelope.params
    if (method is not UNSET and params is not UNSET and envelope.id is UNSET and envelope.jsonrpc is not UNSET) and (
        memoryview(params)[0] == _BRACE
    ):
        return Notification(method, params)  # what arrives most: it is spared the other questions
    return _message(envelope)


def _message(envelope: _Envelope) -> Message:
    id_, method, result, error = envelope.id, envelope.method, envelope.result, envelope.error
    if method is not UNSET:
        if envelope.jsonrpc is UNSET:
            return _invalid(id_, 'Not JSON-RPC 2.0: "jsonrpc" must be "2.0"')
        params = None if envelope.params is UNSET else envelope.params
        if params is not None and (first := memoryview(params)[0]) not in b"{[":
            if first != ord("n"):  # some write null for "none"
                return _invalid(id_, '"params" must be an object or an array')
            params = None
        if id_ is UNSET:
            return Notification(method, params)
        if id_ is None:
            return _invalid(None, '"id" must be a string or an integer')
        return Request(id_, method, params)
    # Answers without "jsonrpc" are let through: somebody waits for them, and what they mean is clear.
    if error is not UNSET and result is UNSET:
        return Response(None if id_ is UNSET else id_, error)
    if result is not UNSET and error is UNSET and id_ is not UNSET and id_ is not None:
        return Response(id_, result)
    if result is not UNSET or error is not UNSET:
        return _invalid(id_, "A response has an id and either a result or an error", to_us=True)
    return _invalid(id_, 'Neither a request (no "method") nor a response (no "result", no "error")')


def _repaired(line: bytes, error: msgspec.DecodeError) -> Frame:
    """Decode again a line whose only mistake may be lone surrogates, which are replaced (A2)."""
    repaired = replace_lone_surrogates(line)
    return _malformed(str(error)) if repaired == line else decode(repaired)


def _unusual(line: bytes) -> Frame:
    """Decode what does not fit the envelope: no JSON after all, a batch, or something to refuse."""
    try:
        _read_value(line)  # the envelope was given up where it did not fit; what follows may be no JSON
    except msgspec.DecodeError as e:
        return _repaired(line, e)
    if line.lstrip()[:1] == b"[":
        return _batch(line)
    try:
        members = _read_members(line)
    except msgspec.ValidationError:
        return _invalid(None, "A message must be a JSON object")
    # Of a name written twice the last one counts, in the message and in its error.
    try:
        if "error" in members:
            members["error"] = Raw(_encode(_read_members(members["error"])))
        return _message(_read_envelope(_encode(members)))
    except msgspec.ValidationError:
        return _refused(members)


def _refused(members: dict[str, Raw]) -> Invalid:
    """Return why an object is no message."""
    id_ = _id(members.get("id", b"null"))
    if "method" not in members and ("result" in members or "error" in members):
        return _invalid(id_, "The response is not valid JSON-RPC", to_us=True)
    if members.get("jsonrpc") != Raw(b'"2.0"'):
        return _invalid(id_, 'Not JSON-RPC 2.0: "jsonrpc" must be "2.0"')
    if not bytes(members.get("method", b"null")).startswith(b'"'):
        return _invalid(id_, '"method" must be a string')
    if "id" in members and id_ is None:
        return _invalid(None, '"id" must be a string or an integer')
    return _invalid(id_, "A request has no valid result or error")


def _id(value: bytes | Raw) -> Id | None:
    """Read an id; return `None` where the value is none."""
    try:
        return _read_id(value)
    except msgspec.DecodeError:
        return None


def _batch(line: bytes) -> Frame:
    if len(line) > MAX_BATCH_BYTES:
        return _invalid(None, f"A batch may be {MAX_BATCH_BYTES} bytes long, this one is {len(line)}")
    entries = _read_entries(line)
    if not entries:
        return _invalid(None, "A batch must not be empty")
    if len(entries) > MAX_BATCH_ENTRIES:
        return _invalid(None, f"A batch may have {MAX_BATCH_ENTRIES} entries, this one has {len(entries)}")
    return Batch(tuple(_entry(bytes(entry)) for entry in entries))


def _entry(value: bytes) -> Message:
    if value[:1] == b"[":
        return _invalid(None, "A batch must not hold another batch")
    message = decode(value)
    assert not isinstance(message, Batch | Malformed)  # the array around it was read already
    return message


def oversized(head: bytes, tail: bytes, limit: int) -> Invalid:
    """Return what stands for a line that was longer than `limit`, of which only the ends were kept (A4).

    Whoever waits for the answer is told where either end of the line has the id.
    """
    ends = read_ends(head, tail)
    error = ErrorObject(InvalidRequest.code, f"A message may be {limit} bytes long")
    return Invalid(None if ends.id is None else _id(ends.id), error, ends.is_response)


def salvaged(line: bytes, malformed: Malformed) -> Malformed | Invalid:
    """Return, for a line that is no JSON, the response to a request of ours that it was meant to be, if it was one.

    Whoever waits for that response is told then, instead of waiting for ever.
    """
    ends = read_ends(line[:END_BYTES], line[-END_BYTES:])
    id_ = _id(ends.id) if ends.is_response and ends.id is not None else None
    return malformed if id_ is None else Invalid(id_, malformed.error, to_us=True)


END_BYTES = 4_096


def _malformed(reason: str) -> Malformed:
    return Malformed(ErrorObject(ParseError.code, reason))


def _invalid(id_: Id | UnsetType | None, reason: str, *, to_us: bool = False) -> Invalid:
    return Invalid(None if id_ is UNSET else id_, ErrorObject(InvalidRequest.code, reason), to_us)
