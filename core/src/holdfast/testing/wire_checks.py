"""`assert_valid_wire`: whether all that went over a connection keeps the rules of JSON-RPC and of the protocol.

It looks at whole conversations: every request has exactly one answer, nothing is said of a session before the answer
that names it (P5), every update is what its kind says. With the official JSON schemas it checks each message by them.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import msgspec

from holdfast.errors import InvalidParams, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from holdfast.client.dialect import Lifting

OPENING = frozenset({"session/new", "session/fork"})
"""Requests whose answer names a session."""
REOPENING = frozenset({"session/load", "session/resume"})
SHOWN = 10
"""So many mistakes are told."""


class Recorded(Protocol):
    """Something that has the lines of a connection, as `ScriptedClient` has them."""

    wire: list[tuple[Literal["in", "out"], bytes]]


def assert_valid_wire(recorded: Recorded | Sequence[tuple[str, bytes]], *, schemas: Path | None = None) -> None:
    """Raise `AssertionError` that names all messages which break a rule.

    Args:
        recorded: a `ScriptedClient`, or lines with their direction as `connect(on_frame=…)` gives them: "in" is what
            the agent has sent.
        schemas: a directory with the official schemas, `v1/schema.json` and `v2/schema.json`, as the official
            TypeScript SDK has them in `schema/`; needs `jsonschema`.

    """
    lines = recorded if isinstance(recorded, list | tuple) else cast("Recorded", recorded).wire
    faults = list(_Conversation(schemas).faults(cast("Any", lines)))
    shown = "\n".join(f"- {fault}" for fault in faults[:SHOWN])
    more = f"\n… and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
    assert not faults, f"{len(faults)} messages break a rule:\n{shown}{more}"


class _Conversation:
    """Follows a conversation, and says what is wrong with it."""

    def __init__(self, schemas: Path | None) -> None:
        self._schemas = schemas
        self._version = 0
        self._open: dict[tuple[str, str], tuple[str, Any]] = {}
        self._sessions: dict[str, Lifting | None] = {}

    def faults(self, lines: Iterable[tuple[str, bytes]]) -> Iterator[str]:
        """Yield every mistake."""
        for direction, line in lines:
            sender = "agent" if direction == "in" else "client"
            try:
                message: Any = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as e:
                yield f"the {sender} sent no JSON ({e}): {line[:200]!r}"
                continue
            for one in cast("list[Any]", message) if isinstance(message, list) else [message]:
                yield from (f"the {sender} sent {fault}: {_quoted(one)}" for fault in self._message(sender, one))
        yield from (
            f"{method} of the {asker} (id {id_}) has no answer" for (asker, id_), (method, _) in self._open.items()
        )

    def _message(self, sender: str, message: Any) -> Iterator[str]:
        match message:
            case {"jsonrpc": "2.0", "method": str(method), "id": int() | str() as id_, **rest}:
                if (sender, repr(id_)) in self._open:
                    yield f"a second request with the id {id_!r}"
                self._open[sender, repr(id_)] = (method, rest.get("params"))
                yield from self._request(sender, method, rest.get("params"))
            case {"jsonrpc": "2.0", "method": str(method), **rest} if "id" not in rest:
                yield from self._notification(sender, method, rest.get("params"))
            case {"jsonrpc": "2.0", "id": id_, "result": result, **rest} if not rest:
                yield from self._answer(sender, id_, result)
            case {"jsonrpc": "2.0", "id": id_, "error": {"code": int(), "message": str()}, **rest} if not rest:
                self._open.pop((_other(sender), repr(id_)), None)
            case _:
                yield "what is no message of JSON-RPC 2.0"

    def _request(self, sender: str, method: str, params: Any) -> Iterator[str]:
        if sender == "client" and method in REOPENING and isinstance(params, dict):
            self._sessions.setdefault(str(cast("Any", params).get("sessionId")), None)
        if sender == "agent":
            yield from self._about_session(params)
        yield from self._by_schema(_other(sender), method, "Request", params)

    def _notification(self, sender: str, method: str, params: Any) -> Iterator[str]:
        if sender == "agent" and method == "session/update":
            yield from self._about_session(params) or self._update(params)
        if not method.startswith("$/"):
            yield from self._by_schema(_other(sender), method, "Notification", params)

    def _answer(self, sender: str, id_: object, result: Any) -> Iterator[str]:
        method, params = self._open.pop((_other(sender), repr(id_)), ("", None))
        if not method:
            yield "an answer to nothing that was asked, or a second one"
            return
        del params
        match result:
            case {"protocolVersion": int(version)} if method == "initialize":
                self._version = version
            case {"sessionId": str(session)} if method in OPENING:
                self._sessions[session] = None
            case _:
                pass
        yield from self._by_schema(sender, method, "Response", result)

    def _about_session(self, params: Any) -> list[str]:
        match params:
            case {"sessionId": str(session)} if session not in self._sessions:
                return [f"something about the session {session!r}, which no answer has named"]
            case _:
                return []

    def _update(self, params: Any) -> Iterator[str]:
        match params:
            case {"sessionId": str(session), "update": {"sessionUpdate": str(kind)} as update}:
                lifting = self._sessions[session] = self._sessions.get(session) or _lifting(self._version)
                try:
                    lifting.lift(msgspec.json.encode(update))
                except InvalidParams as e:
                    yield f"an update of kind {kind} that is none ({e})"
            case _:
                yield "an update without session or kind"

    def _by_schema(self, side: str, method: str, ending: str, body: Any) -> Iterator[str]:
        if self._schemas is None or method.startswith("_") or not self._version:
            return
        for place, what in _schema_faults(self._schemas, self._version, side, method, ending, body):
            yield f"a {ending.lower()} of {method} that the schema refuses at {place} ({what})"


def _lifting(version: int) -> Lifting:
    if version == 1:
        from holdfast.surface.v1.lift import Lifting as LiftingV1  # noqa: PLC0415

        return LiftingV1()
    from holdfast.surface.v2.lift import Lifting as LiftingV2  # noqa: PLC0415

    return LiftingV2()


def _schema_faults(
    schemas: Path, version: int, side: str, method: str, ending: str, body: Any
) -> Iterator[tuple[str, str]]:
    validator = _validator(schemas, version, side, method, ending)
    if validator is None:
        return
    for error in validator.iter_errors({} if body is None and ending != "Response" else body):
        yield error.json_path, error.message[:200]


@cache
def _validator(schemas: Path, version: int, side: str, method: str, ending: str) -> Any:
    try:
        from jsonschema import Draft202012Validator  # noqa: PLC0415  (only tests that bring schemas need it)
    except ImportError:
        raise UsageError("to check messages by the schemas, install jsonschema") from None
    file = schemas / f"v{version}" / "schema.json"
    if not file.is_file():
        raise UsageError(f"there is no schema {file}")
    definitions: dict[str, Any] = json.loads(file.read_bytes())["$defs"]
    for name, about in definitions.items():
        if about.get("x-method") == method and about.get("x-side") == side and name.endswith(ending):
            return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})
    return None  # unstable methods are in no stable schema


def _other(side: str) -> str:
    return "client" if side == "agent" else "agent"


def _quoted(message: Any) -> str:
    text = msgspec.json.encode(message).decode()
    return text if len(text) <= 400 else f"{text[:400]}…"
