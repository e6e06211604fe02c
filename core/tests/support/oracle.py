"""An independent judgement of what a line must be answered with, made with the standard library's `json` alone.

It knows the rules (REQUIREMENTS A2, A3, A5) and the methods of the peer under test, and shares no code with
`holdfast.jsonrpc`: where the two disagree, one of them is wrong.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, TypeAlias, cast

MAX_DEPTH = 128
MAX_BATCH_ENTRIES = 1_024
MAX_BATCH_BYTES = 1 << 20
MAX_ID_DIGITS = 4_300

RESULT = 0
"""Stands for a result where otherwise an error code stands."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR, CANCELLED = -32602, -32603, -32800

CANCEL_METHOD = "$/cancel_request"

METHODS = {"echo": RESULT, "later": RESULT, "refuse": INVALID_PARAMS, "fail": INTERNAL_ERROR}
"""The methods of the peer under test, and what each answers."""

Id: TypeAlias = "int | str | None"


class Answer(NamedTuple):
    """What is owed for one request, or for something in its place: an id and a code.

    The kind of the id is part of it, because 1 and "1" are different ids, and Python takes True for 1.
    """

    kind: str
    id: Id
    code: int


Owed: TypeAlias = "Answer | tuple[Answer, ...] | None"
"""Nothing, an answer, or an array of answers (sorted)."""


class Verdict(NamedTuple):
    """What must follow a line."""

    owed: Owed
    cancels: tuple[Id, ...] = ()
    """The ids of requests that this line cancels: they may be answered with `CANCELLED` instead."""


def answer(id_: Id, code: int) -> Answer:
    return Answer(type(id_).__name__, id_, code)


def judge(line: bytes) -> Verdict:
    """Say what a line must be answered with."""
    if not line.strip(b" \t\r\n"):
        return Verdict(None)
    try:
        value = parse(line)
    except ValueError:
        return Verdict(answer(None, PARSE_ERROR))
    if not isinstance(value, list):
        return _judge_message(value)
    entries = cast("list[object]", value)
    if not 0 < len(entries) <= MAX_BATCH_ENTRIES or len(line) > MAX_BATCH_BYTES:
        return Verdict(answer(None, INVALID_REQUEST))
    verdicts = [_judge_message(entry) for entry in entries]
    owed = [verdict.owed for verdict in verdicts if isinstance(verdict.owed, Answer)]
    cancels = tuple(id_ for verdict in verdicts for id_ in verdict.cancels)
    return Verdict(in_order(owed) if owed else None, cancels)


def in_order(answers: list[Answer]) -> tuple[Answer, ...]:
    """Sort, so that arrays whose order is nobody's business compare equal."""
    return tuple(sorted(answers, key=repr))


def parse(line: bytes) -> object:
    """Read JSON as RFC 8259 has it, nested no deeper than allowed; raise `ValueError` for anything else."""
    text = line.decode()
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise ValueError("too deep")
    if len(text) <= MAX_ID_DIGITS:
        value: object = _DECODER.decode(text)
    else:
        value = _PATIENT_DECODER.decode(text)
    return _without_lone_surrogates(value) if "\\ud" in text or "\\uD" in text else value


class HugeInt:
    """An integer too long to be read."""


def _read_int(digits: str) -> int | HugeInt:
    return int(digits) if len(digits) <= MAX_ID_DIGITS else HugeInt()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_PATIENT_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_int=_read_int)


def _without_lone_surrogates(value: object) -> object:
    """Put U+FFFD for each surrogate left in a string: pairs became one character when they were read (A2)."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_lone_surrogates(part) for part in cast("list[object]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, object]", value).items()
        return {_SURROGATE.sub("\ufffd", name): _without_lone_surrogates(part) for name, part in members}
    return value


_SURROGATE = re.compile("[\ud800-\udfff]")


def _depth(text: str) -> int:
    deepest = depth = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _judge_message(value: object) -> Verdict:
    if not isinstance(value, dict):
        return Verdict(answer(None, INVALID_REQUEST))
    message = cast("dict[str, Any]", value)
    id_ = message.get("id")
    readable: Id = id_ if isinstance(id_, int | str) and not isinstance(id_, bool) else None
    if "method" not in message and ("result" in message or "error" in message):
        return Verdict(None)  # an answer, good or bad, is never answered
    method = message.get("method")
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str) or not _no_answer_inside(message):
        return Verdict(answer(readable, INVALID_REQUEST))
    if not isinstance(message.get("params"), dict | list | None):
        return Verdict(answer(readable, INVALID_REQUEST))
    if "id" in message:
        code = METHOD_NOT_FOUND if readable is not None else INVALID_REQUEST
        return Verdict(answer(readable, METHODS.get(method, code) if readable is not None else code))
    if method == CANCEL_METHOD and isinstance(params := message.get("params"), dict):
        return Verdict(None, (cast("dict[str, Any]", params).get("requestId"),))
    return Verdict(None)


def _no_answer_inside(message: dict[str, Any]) -> bool:
    """Say whether a request's `error` member, which it should not have, is at least an error."""
    if "error" not in message:
        return True
    error = message["error"]
    if not isinstance(error, dict):
        return False
    members = cast("dict[str, Any]", error)
    code = members.get("code")
    return isinstance(code, int) and not isinstance(code, bool) and isinstance(members.get("message"), str)
