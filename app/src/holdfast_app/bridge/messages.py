"""As much of a message as a bridge has to know, and messages of its own."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from holdfast.errors import InternalError
from holdfast.jsonrpc import ErrorObject, Id, encode_error

OPENING = frozenset({"session/new", "session/fork", "session/load", "session/resume"})
CLOSING = frozenset({"session/close", "session/delete", "session/archive"})

AT = "holdfast/at"

UPDATE = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"'
_MARK = b',"_meta":{"holdfast/at":"'
_SESSION_END = re.compile(rb'[^"\\]*')


class Message(msgspec.Struct):
    """A message, read as far as it must be."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(Message)


def read_message(line: bytes | bytearray | memoryview | str) -> Message:
    """Parse a message; raise `msgspec.DecodeError` for what is none."""
    return _decoder.decode(line)


def params_of(message: Message) -> dict[str, Any]:
    """Return the parameters of a message; nothing where it has none that make sense."""
    return _object(message.params)


def result_of(message: Message) -> dict[str, Any]:
    """Return the result of an answer."""
    return _object(message.result)


def meta_of(holder: dict[str, Any]) -> dict[str, Any]:
    """Return the `_meta` of parameters or of a result."""
    meta: Any = holder.get("_meta")
    return cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}


def _object(raw: msgspec.Raw) -> dict[str, Any]:
    try:
        return {} if not bytes(raw) else msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def split_update(line: bytes) -> tuple[str, str | None, bytes]:
    """Return the session of an update, its position if it has one, and the update without it."""
    end = _SESSION_END.match(line, len(UPDATE))
    session_id = line[len(UPDATE) : end.end() if end else len(UPDATE)].decode(errors="replace")
    at = line.rfind(_MARK, len(line) - 120)
    if at < 0:
        return session_id, None, line
    return session_id, line[at + len(_MARK) : -4].decode(errors="replace"), line[:at] + b"}}"


def request(id_: Id, method: str, params: dict[str, Any]) -> bytes:
    """Return a request."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})


def with_id(message: Message, id_: Id) -> bytes:
    """Return a message of the same kind with another id."""
    members: dict[str, Any] = {"jsonrpc": "2.0", "id": id_}
    if message.method is not None:
        members["method"] = message.method
    for name in ("params", "result", "error"):
        if bytes(member := getattr(message, name)):
            members[name] = member
    return msgspec.json.encode(members)


def failed(id_: Id, why: str) -> bytes:
    """Return an answer that says that something went wrong."""
    return encode_error(id_, ErrorObject(InternalError.code, why))
