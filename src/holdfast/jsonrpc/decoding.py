"""Bytes to frames: one fast path for what is right, one slow path that finds out what is wrong."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.errors import InvalidRequest, ParseError
from holdfast.jsonrpc.messages import (
    MAX_BATCH_BYTES,
    MAX_BATCH_ENTRIES,
    MAX_DEPTH,
    Batch,
    ErrorObject,
    Id,
    Invalid,
    Malformed,
    Notification,
    Request,
    Response,
)

if TYPE_CHECKING:
    from holdfast.jsonrpc.messages import Frame, Message


class _Envelope(msgspec.Struct, gc=False):
    """All members a valid message may have. What else it holds is ignored, as JSON-RPC lets others extend it."""

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
    if len(line) > 2 * MAX_DEPTH < 2 * (line.count(b"[") + line.count(b"{")) and _deeper_than(MAX_DEPTH, line):
        return _malformed(f"Nested deeper than {MAX_DEPTH} levels")
    try:
        it = _read_envelope(line)
    except msgspec.ValidationError:
        return _unusual(line)
    except msgspec.DecodeError as e:
        return _malformed(str(e))
    method, params = it.method, it.params
    if (method is not UNSET and params is not UNSET and it.id is UNSET and it.jsonrpc is not UNSET) and (
        memoryview(params)[0] == _BRACE
    ):
        return Notification(method, params)  # what arrives most: it is spared the other questions
    return _message(it)


def _message(it: _Envelope) -> Message:
    if it.method is not UNSET:
        if it.jsonrpc is UNSET:
            return _invalid(it.id, 'Not JSON-RPC 2.0: "jsonrpc" must be "2.0"')
        params = None if it.params is UNSET else it.params
        if params is not None and (first := memoryview(params)[0]) not in b"{[":
            if first != ord("n"):  # some write null for "none"
                return _invalid(it.id, '"params" must be an object or an array')
            params = None
        if it.id is UNSET:
            return Notification(it.method, params)
        if it.id is None:
            return _invalid(None, '"id" must be a string or an integer')
        return Request(it.id, it.method, params)
    # Answers without "jsonrpc" are let through: somebody waits for them, and what they mean is clear.
    if it.error is not UNSET and it.result is UNSET:
        return Response(None if it.id is UNSET else it.id, it.error)
    if it.result is not UNSET and it.error is UNSET and it.id is not UNSET and it.id is not None:
        return Response(it.id, it.result)
    if it.result is not UNSET or it.error is not UNSET:
        return _invalid(it.id, "A response has an id and either a result or an error", to_us=True)
    return _invalid(it.id, 'Neither a request (no "method") nor a response (no "result", no "error")')


def _unusual(line: bytes) -> Frame:
    """Tell what does not fit the envelope: no JSON after all, a batch, or something to refuse."""
    try:
        _read_value(line)  # the envelope was given up where it did not fit; what follows may be no JSON
    except msgspec.DecodeError as e:
        return _malformed(str(e))
    if line.lstrip()[:1] == b"[":
        return _batch(line)
    try:
        members = _read_members(line)
    except msgspec.ValidationError:
        return _invalid(None, "A message must be a JSON object")
    try:
        return _message(_read_envelope(msgspec.json.encode(members)))  # of a name written twice the last one counts
    except msgspec.ValidationError:
        return _refused(members)


def _refused(members: dict[str, Raw]) -> Invalid:
    """Say why an object is no message."""
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
    """Read an id, or nothing where it is none."""
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


# Members that serializers write before or after the long one, in whatever order.
_SHORT = rb"""\s*"(?: jsonrpc"\s*:\s*"2\.0"
                  | id"\s*:\s*(?P<id> -?\d{1,40} | "(?:[^"\\]|\\.){0,512}")
                  | method"\s*:\s*(?P<method>"(?:[^"\\]|\\.){0,512}") )\s*"""
_HEAD = re.compile(rb"\s*\{ (?: %b , ){0,3} \s*\"(?P<next>\w+)\"\s*:" % _SHORT, re.VERBOSE | re.DOTALL)
_TAIL = re.compile(rb"(?: , %b ){1,3} \}\s*\Z" % _SHORT, re.VERBOSE | re.DOTALL)


def oversized(head: bytes, tail: bytes, limit: int) -> Invalid:
    """Stand in for a line that was longer than `limit`, of which only the ends were kept (A4).

    Whoever waits for the answer is told where either end of the line says who that is.
    """
    error = ErrorObject(InvalidRequest.code, f"A message may be {limit} bytes long")
    if (before := _HEAD.match(head)) is None:
        return Invalid(None, error)
    after = _TAIL.search(tail)
    id_ = before["id"] or (after and after["id"])
    method = before["method"] or (after and after["method"])
    answer = method is None and before["next"] in (b"result", b"error")
    return Invalid(_id(id_) if id_ else None, error, to_us=answer)


def salvaged(line: bytes, malformed: Malformed) -> Malformed | Invalid:
    """Return, for a line that is no JSON, the answer to a request of ours that it was meant to be, if it was one.

    Whoever waits for that answer is told then, instead of waiting for ever.
    """
    found = oversized(line[:SALVAGED_BYTES], line[-SALVAGED_BYTES:], 0)
    return Invalid(found.id, malformed.error, to_us=True) if found.to_us and found.id is not None else malformed


SALVAGED_BYTES = 4_096


def _deeper_than(depth: int, line: bytes) -> bool:
    """Say whether containers nest deeper than that, in time linear in the line, most of it in C."""
    bare = line.replace(rb"\\", b"").replace(rb"\"", b"").translate(_BRACKETS, _NEITHER_QUOTES_NOR_BRACKETS)
    brackets = b"".join(bare.replace(b'""', b"").split(b'"')[::2])  # every second piece is outside strings
    for _ in range(_PEELED):  # what is ordinary is gone after peeling off empty brackets a few times
        brackets = brackets.replace(b"[]", b"")
    level = 0
    for at in range(0, len(brackets), _BLOCK):
        levels = list(accumulate(map(_STEPS.__getitem__, brackets[at : at + _BLOCK]), initial=level))
        if max(levels) > depth - _PEELED:
            return True
        level = levels[-1]
    return False


_PEELED = 8
_BLOCK = 4_096
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NEITHER_QUOTES_NOR_BRACKETS = bytes(c for c in range(256) if c not in b'"{}[]')
_STEPS = {ord("["): 1, ord("]"): -1}


def _malformed(reason: str) -> Malformed:
    return Malformed(ErrorObject(ParseError.code, reason))


def _invalid(id_: Id | UnsetType | None, reason: str, *, to_us: bool = False) -> Invalid:
    return Invalid(None if id_ is UNSET else id_, ErrorObject(InvalidRequest.code, reason), to_us)
