"""Bytes that are no message, and messages that are no request: the agent answers, and lives on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from holdfast_app.check.checks.prompts import ALLOWING
from holdfast_app.check.checks.registry import check
from holdfast_app.check.outcomes import Refused
from holdfast_app.check.trial import fail
from holdfast_app.check.wire import members

if TYPE_CHECKING:
    from holdfast_app.check.trial import Trial

LONG_LINE = 17 << 20


async def _answered(trial: Trial, line: bytes, *codes: int) -> None:
    """Send a line; an error without an id has to come back, with one of these codes if any are given."""
    connected = await trial.connect()
    wire = connected.wire
    wire.send(line)
    await connected.heard(lambda: bool(wire.errors_without_id()))
    seen = wire.errors_without_id()
    if not seen:
        fail("an error with the id null", "no answer")
    if codes and seen[0] not in codes:
        fail(f"the code {' or '.join(map(str, codes))}", seen[0])


@check("bad-json")
async def bad_json(trial: Trial) -> None:
    """Send half an object."""
    await _answered(trial, b'{"jsonrpc": "2.0", "id": 7, "method"', -32700)


@check("bad-utf8")
async def bad_utf8(trial: Trial) -> None:
    """Send a request with bytes that are no text: who refuses it cannot read its id, who is lenient can."""
    connected = await trial.connect()
    wire = connected.wire
    wire.send(b'{"jsonrpc": "2.0", "id": "bad-utf8", "method": "holdfast/no_such_method", "params": {"x": "\xff\xfe"}}')

    def answered() -> bool:
        return bool(wire.answers_to("bad-utf8") or wire.errors_without_id())

    await connected.heard(answered)
    if not answered():
        fail("an answer", "none")


@check("bad-value")
async def bad_value(trial: Trial) -> None:
    """Send JSON that is no object."""
    for line in (b"null", b"42", b'"hello"'):
        await _answered(trial, line, -32600)


@check("bad-request")
async def bad_request(trial: Trial) -> None:
    """Send an object that is no request, with an id."""
    connected = await trial.connect()
    wire = connected.wire
    wire.send(b'{"jsonrpc": "2.0", "id": "bad-request", "method": 5}')
    await connected.heard(lambda: '"bad-request"' in wire.answers)
    codes = [members(answer.get("error")).get("code") for answer in wire.answers_to("bad-request")]
    if codes[:1] != [-32600]:
        fail("-32600 with the id of the request", codes or "no answer")


@check("lone-surrogate")
async def lone_surrogate(trial: Trial) -> None:
    """Prompt with half an emoji, as JavaScript writes one that was cut."""
    session = await (await trial.connect(ALLOWING)).new()
    text = json.dumps(trial.prompts.talk + " ")[:-1] + '\\ud83d"'
    params = f'{{"sessionId":{json.dumps(session.id)},"prompt":[{{"type":"text","text":{text}}}]}}'
    session.wire.send(f'{{"jsonrpc":"2.0","id":"surrogate","method":"session/prompt","params":{params}}}'.encode())
    wire = session.wire
    await wire.until(lambda: '"surrogate"' in wire.answers or wire.ended, trial.settings.deadline)
    answers = wire.answers_to("surrogate")
    if not answers or "result" not in answers[0]:
        fail("a turn", answers[0].get("error") if answers else "no answer")


@check("deep-nesting")
async def deep_nesting(trial: Trial) -> None:
    """Send very many brackets."""
    await _answered(trial, b"[" * 100_000 + b"]" * 100_000)


@check("long-line")
async def long_line(trial: Trial) -> None:
    """Send a line that is too long for many; it is answered, with an error or not, and the connection lives."""
    connected = await trial.connect()
    wire = connected.wire
    future = wire.begin("holdfast/long", {"x": "y" * LONG_LINE})
    await connected.heard(lambda: future.done() or bool(wire.errors_without_id()))
    if not future.done() and not wire.errors_without_id():
        fail("an answer to a line of 17 MiB", "none")


@check("batch")
async def batch(trial: Trial) -> None:
    """Send two requests as a batch: an array of answers, or an error, comes back."""
    connected = await trial.connect()
    wire = connected.wire
    request = '{"jsonrpc":"2.0","id":"%s","method":"holdfast/no_such_method","params":{}}'
    wire.send(f"[{request % 'one'},{request % 'two'}]".encode())

    def answered() -> bool:
        arrays = [cast("list[Any]", frame.value) for frame in wire.received() if isinstance(frame.value, list)]
        return any(len(array) == 2 for array in arrays) or bool(wire.errors_without_id())

    await connected.heard(answered)
    if not answered():
        fail("an array of two answers, or one error", "neither")


@check("empty-batch")
async def empty_batch(trial: Trial) -> None:
    """Send an empty batch."""
    await _answered(trial, b"[]", -32600)


@check("foreign-answer")
async def foreign_answer(trial: Trial) -> None:
    """Answer what nobody asked."""
    connected = await trial.connect()
    wire = connected.wire
    before = len(wire.errors_without_id())
    wire.send(b'{"jsonrpc":"2.0","id":"never-asked","result":{}}')
    wire.send(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}')
    await connected.heard()
    if len(wire.errors_without_id()) > before:
        fail("no answer to an answer", wire.errors_without_id())


@check("meta-apart")
async def meta_apart(trial: Trial) -> None:
    """Put parameters into `_meta`: a session must not be created with them."""
    connected = await trial.connect()
    try:
        await connected.wire.request("session/new", {"mcpServers": [], "_meta": {"cwd": trial.cwd}})
    except Refused:
        return
    fail("an error, as there is no cwd", "a session, with the cwd of _meta")
