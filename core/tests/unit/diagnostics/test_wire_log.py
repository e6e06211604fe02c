"""Messages as people read them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.diagnostics.wire_log import MAX_TEXT, WireLog


def lines_of(side: Any, *frames: tuple[Any, Any]) -> list[str]:
    written: list[str] = []
    log = WireLog(side, written.append)
    for direction, message in frames:
        log.observe_frame(direction, message if isinstance(message, bytes) else json.dumps(message).encode())
    return [line.partition(" ")[2] for line in written]


def test_an_answer_names_what_it_answers() -> None:
    request = {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": "s"}}
    asked, answered = lines_of("agent", ("in", request), ("out", {"jsonrpc": "2.0", "id": 3, "result": {"ok": True}}))
    assert asked == 'client → agent  session/prompt #3  {"sessionId":"s"}'
    assert answered.startswith("agent → client  answer to session/prompt #3 (0.0")
    assert answered.endswith('  {"ok":true}')


def test_both_sides_may_use_the_same_id() -> None:
    mine = {"jsonrpc": "2.0", "id": 1, "method": "session/new"}
    theirs = {"jsonrpc": "2.0", "id": 1, "method": "session/request_permission"}
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}}
    lines = lines_of("client", ("out", mine), ("in", theirs), ("out", {"id": 1, "result": None}), ("in", error))
    assert "agent → client  session/request_permission #1" in lines[1]
    assert "client → agent  answer to session/request_permission #1" in lines[2]
    assert "agent → client  error to session/new #1" in lines[3] and '"code":-32603' in lines[3]


def test_batches_and_nonsense_are_shown_too() -> None:
    batch = [{"method": "a"}, {"method": "b"}]
    lines = lines_of("client", ("in", batch), ("in", b"Hello \xff"), ("in", b"17"), ("in", b"[" * 100_000))
    assert [line.split("  ")[1] for line in lines[:2]] == ["a", "b"]
    assert "not JSON: 'Hello" in lines[2] and lines[3].endswith("no message: 17") and "not JSON" in lines[4]


@pytest.mark.requirement("P10")
def test_keys_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "value-of-my-key")
    servers = [
        {"name": "git", "command": "git", "env": [{"name": "HOME_PAGE", "value": "private-one"}]},
        {"name": "web", "url": "u", "headers": {"X-Any": "private-two"}},
    ]
    text = "the key is value-of-my-key or ghp_0123456789abcdefghijABCDEFGHIJ0123"
    (line,) = lines_of("client", ("out", {"method": "m", "params": {"mcpServers": servers, "text": text}}))
    for secret in ("private-one", "private-two", "value-of-my-key", "ghp_0123456789"):
        assert secret not in line
    assert "HOME_PAGE" in line and "X-Any" in line


@pytest.mark.requirement("P13")
def test_nothing_on_the_wire_steers_a_terminal() -> None:
    hostile = "\x1b[2J\x9b31m\u202e\x7f"
    sent = {"method": f"m{hostile}", "id": hostile, "params": {hostile: hostile}}
    for line in lines_of("client", ("in", sent), ("in", {"result": hostile, "id": hostile}), ("in", hostile.encode())):
        assert not {"\x1b", "\x9b", "\u202e", "\x7f"} & set(line)


def test_long_texts_are_cut() -> None:
    (line,) = lines_of("client", ("out", {"method": "m", "params": {"data": ["x" * 5000]}}))
    assert f"… (+{5000 - MAX_TEXT:,})" in line and len(line) < MAX_TEXT + 100
