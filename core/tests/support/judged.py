"""A peer whose every answer the oracle can foretell, and the comparison of what it said with what it owed."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from core.tests.support.oracle import CANCELLED, RESULT, Answer, Id, Owed, Verdict, answer, in_order
from holdfast.errors import InvalidParams
from holdfast.peer import Routes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from msgspec import Raw

UNCERTAIN = 1
"""Stands for the code of an answer that may be a cancellation or not."""


def judged_routes() -> Routes:
    """Answer the methods of `oracle.METHODS`, and be told of some notifications, good and bad."""
    routes = Routes()
    routes.request("echo", _echo)
    routes.request("later", _later)
    routes.request("refuse", _refuse)
    routes.request("fail", _fail)
    routes.notification("told", _told)
    routes.notification("failing", _fail)
    return routes


async def _echo(params: Raw) -> object:
    return params


async def _later(params: Raw) -> object:
    await asyncio.sleep(0)
    return params


async def _refuse(_params: Raw) -> object:
    raise InvalidParams("no")


async def _fail(_params: Raw) -> None:
    raise RuntimeError("it failed")


async def _told(_params: Raw) -> None: ...


def read_answer(line: bytes) -> Owed:
    """Read what a peer sent; complain unless it is exactly a JSON-RPC response or an array of them."""
    value: object = json.loads(line.decode())
    if isinstance(value, list):
        entries = cast("list[object]", value)
        assert entries, "an empty array was sent"
        return in_order([_read_one(entry) for entry in entries])
    return _read_one(value)


def _read_one(value: object) -> Answer:
    assert isinstance(value, dict), f"no object: {value!r}"
    message = cast("dict[str, Any]", value)
    assert message["jsonrpc"] == "2.0"
    id_ = message["id"]
    assert type(id_) in (int, str, type(None)), f"no id: {id_!r}"
    if "result" in message:
        assert message.keys() == {"jsonrpc", "id", "result"}
        return answer(id_, RESULT)
    assert message.keys() == {"jsonrpc", "id", "error"}
    error = message["error"]
    assert type(error["code"]) is int
    assert type(error["message"]) is str
    return answer(id_, error["code"])


def compare(verdicts: Iterable[Verdict], sent: Iterable[bytes]) -> str:
    """Say how what was sent differs from what was owed; nothing where it does not."""
    verdicts = list(verdicts)
    cancelled = {(type(id_).__name__, id_) for verdict in verdicts for id_ in _hashable(verdict.cancels)}
    owed = Counter(_settle(verdict.owed, cancelled) for verdict in verdicts if verdict.owed is not None)
    got = Counter(_settle(read_answer(line), cancelled) for line in sent)
    if owed == got:
        return ""
    return f"owed and not sent: {list((owed - got).elements())}; sent and not owed: {list((got - owed).elements())}"


def _hashable(ids: Iterable[object]) -> list[Id]:
    return [id_ for id_ in ids if isinstance(id_, int | str) and not isinstance(id_, bool)]


def _settle(owed: Owed, cancelled: set[tuple[str, Id]]) -> Owed:
    """Leave open whether a request that was cancelled along the way was answered before."""
    if not cancelled or owed is None:
        return owed
    if isinstance(owed, Answer):
        return owed._replace(code=UNCERTAIN) if owed[:2] in cancelled and owed.code in _UNCERTAIN else owed
    return in_order([cast("Answer", _settle(each, cancelled)) for each in owed])


_UNCERTAIN = {RESULT, CANCELLED, -32601, -32602, -32603}
