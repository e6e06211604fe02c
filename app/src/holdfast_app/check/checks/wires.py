"""Connecting, and what holds for everything an agent sends."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from holdfast_app.check.checks.registry import check, observation
from holdfast_app.check.outcomes import CheckFailed, NotTested, Refused
from holdfast_app.check.schemas import MessageReader
from holdfast_app.check.trial import fail, initialize_params
from holdfast_app.check.wire import members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast_app.check.settings import CheckSettings
    from holdfast_app.check.trial import Trial
    from holdfast_app.check.wire import Frame, Json, Wire

NOBODY_KNOWS = 65_000
ENOUGH = 500
"""Of a kind of update so many are read by the schema in each conversation: some agents stream a hundred thousand."""


@check("initialize")
async def initialize(trial: Trial) -> None:
    """Say hello."""
    wire = await trial.start()
    answer = await wire.request("initialize", initialize_params(trial.version))
    match answer:
        case {"protocolVersion": int()}:
            return
        case _:
            fail("an object with a protocolVersion", answer)


@check("version-asked")
async def version_asked(trial: Trial) -> None:
    """Ask for the version that the agent is known to speak."""
    wire = await trial.start()
    answer = await wire.request("initialize", initialize_params(trial.version))
    if answer.get("protocolVersion") != trial.version:
        fail(f"protocolVersion {trial.version}", answer.get("protocolVersion"))


@check("version-unknown")
async def version_unknown(trial: Trial) -> None:
    """Ask for a version that nobody speaks: the answer names one of those there are, or refuses by naming them."""
    wire = await trial.start()
    try:
        answer = await wire.request("initialize", {**initialize_params(trial.version), "protocolVersion": NOBODY_KNOWS})
    except Refused as e:
        if e.code != -32022:
            fail("a version, or -32022", e)
        return
    if answer.get("protocolVersion") not in (1, 2):
        fail("a version that exists", answer.get("protocolVersion"))


@check("version-body")
async def version_body(trial: Trial) -> None:
    """Look whether an answer of version 2 is one."""
    wire = await trial.start()
    answer: dict[str, Any] = await wire.request("initialize", initialize_params(2))
    if "info" not in answer and "capabilities" not in answer:
        fail("the members info and capabilities", sorted(answer))


@check("named")
async def named(trial: Trial) -> None:
    """Look for a name."""
    wire = await trial.start()
    answer: dict[str, Any] = await wire.request("initialize", initialize_params(trial.version))
    match answer.get("agentInfo" if trial.version == 1 else "info"):
        case {"name": str(name), "version": str()} if name:
            return
        case other:
            fail("a name and a version", other)


@check("initialize-twice")
async def initialize_twice(trial: Trial) -> None:
    """Say hello twice."""
    connected = await trial.connect()
    await connected.wire.request("initialize", initialize_params(trial.version))


@check("before-initialize")
async def before_initialize(trial: Trial) -> None:
    """Ask for something else first."""
    wire = await trial.start()
    try:
        await wire.request("session/new", {"cwd": trial.cwd, "mcpServers": []})
    except Refused:
        return
    fail("an error", "a session, without initialize")


@check("pipelined")
async def pipelined(trial: Trial) -> None:
    """Send two requests in one write."""
    wire = await trial.start()
    first = {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": initialize_params(trial.version)}
    second: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": "b",
        "method": "session/new",
        "params": {"cwd": trial.cwd, "mcpServers": []},
    }
    wire.send(json.dumps(first).encode() + b"\n" + json.dumps(second).encode())

    def order() -> list[str]:
        values = [members(frame.value) for frame in wire.received()]
        return [f"{value['id']}{' refused' * ('error' in value)}" for value in values if value.get("id") in ("a", "b")]

    await wire.until(lambda: len(order()) >= 2 or wire.ended, trial.settings.deadline)
    if list(dict.fromkeys(order())) != ["a", "b"]:
        fail("a and b answered, in order", order())


# Methods and ids


@check("unknown-method")
async def unknown_method(trial: Trial) -> None:
    """Ask for a method there is not."""
    await _expect_unknown(trial, "holdfast/no_such_method")


@check("extension-method")
async def extension_method(trial: Trial) -> None:
    """Ask for an extension there is not."""
    await _expect_unknown(trial, "_holdfast/no_such_extension")


async def _expect_unknown(trial: Trial, method: str) -> None:
    connected = await trial.connect()
    try:
        answer = await connected.wire.request(method, {})
    except Refused as e:
        if e.code != -32601:
            fail("-32601", e)
        return
    fail("-32601", f"success: {answer}")


@check("unknown-notification")
async def unknown_notification(trial: Trial) -> None:
    """Send notifications that nobody knows; no answer may come, and the next request is served."""
    connected = await trial.connect()
    wire = connected.wire
    before = len(wire.frames)
    wire.notify("holdfast/no_such_notification", {})
    wire.notify("_holdfast/no_such_notification", {"x": 1})
    await connected.new()
    answers = [members(frame.value) for frame in wire.frames[before:] if not frame.sent]
    errors = [answer for answer in answers if "error" in answer]
    if errors:
        fail("no answer to a notification", errors[0])


@check("ids-unchanged")
async def ids_unchanged(trial: Trial) -> None:
    """Use ids of every kind."""
    await _expect_ids(trial, 0, "a string", "", (1 << 53) - 1, "Ünïcode ✓")


@check("ids-64-bit")
async def ids_64_bit(trial: Trial) -> None:
    """Use an id that is no exact number in JavaScript."""
    await _expect_ids(trial, (1 << 62) + 1)


async def _expect_ids(trial: Trial, *ids: str | int) -> None:
    connected = await trial.connect()
    wire = connected.wire
    for id_ in ids:
        future = wire.begin("holdfast/no_such_method", {}, id_)
        await connected.heard(future.done)
        if not future.done():
            fail(f"an answer with the id {id_!r}", "none")


# What holds for everything that is sent


@observation("frames-valid")
def frames_valid(wires: Sequence[Wire], settings: CheckSettings, version: int) -> None:
    """Read every frame by the official schema."""
    if settings.schemas is None:
        raise NotTested("the official schemas are not installed: pip install 'holdfast[check]'")
    for wire in wires:
        reader = MessageReader(settings.schemas, version, "agent")
        kinds: Counter[str] = Counter()
        for at, frame in enumerate(wire.frames, 1):
            value: Json = frame.value
            if not isinstance(value, dict | list):  # what is no message at all is another matter
                continue
            kind = members(members(members(value).get("params")).get("update")).get("sessionUpdate")
            kinds[str(kind)] += 1
            if kind is not None and kinds[str(kind)] > ENOUGH:
                continue
            faults = reader.faults(cast("Json", value), sent_by="client" if frame.sent else "agent")
            if faults:
                raise CheckFailed("frames that are valid", faults[0][:500], (wire, at))


@observation("only-frames")
def only_frames(wires: Sequence[Wire], _settings: CheckSettings, _version: int) -> None:
    """Look for lines that are no message."""
    for wire in wires:
        for at, frame in enumerate(wire.frames, 1):
            if not frame.sent and not isinstance(frame.value, dict | list):
                line = frame.line[:200].decode(errors="replace")
                raise CheckFailed("JSON-RPC messages on stdout", line, (wire, at))


@observation("answered-once")
def answered_once(wires: Sequence[Wire], _settings: CheckSettings, _version: int) -> None:
    """Count the answers to each request."""
    for wire in wires:
        for key, count in wire.answers.items():
            if count > 1 and key != "null":
                last = max(at for at, frame in enumerate(wire.frames, 1) if not frame.sent and key in _answered(frame))
                seen = f"{count} answers to the request with the id {key}"
                raise CheckFailed("one answer to each request", seen, (wire, last))


def _answered(frame: Frame) -> set[str]:
    """Return the ids of the requests that a frame answers, as JSON."""
    values: list[Json] = cast("list[Json]", frame.value) if isinstance(frame.value, list) else [frame.value]
    return {json.dumps(message.get("id")) for message in map(members, values) if "method" not in message}


@observation("named-first")
def named_first(wires: Sequence[Wire], _settings: CheckSettings, _version: int) -> None:
    """Look for updates of sessions that no answer had named yet."""
    for wire in wires:
        named: set[str] = set()
        for at, frame in enumerate(wire.frames, 1):
            message = members(frame.value)
            holder = members(message.get("params") if "method" in message else message.get("result"))
            session_id = holder.get("sessionId")
            if not isinstance(session_id, str):
                continue
            if not frame.sent and message.get("method") == "session/update" and session_id not in named:
                kind = members(holder.get("update")).get("sessionUpdate")
                expected = "nothing about a session before the answer that names it"
                raise CheckFailed(expected, f"{kind} for {session_id}", (wire, at))
            named.add(session_id)
