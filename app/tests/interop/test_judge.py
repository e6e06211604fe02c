"""The judge of the frames is itself judged: it must find what is wrong with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.tests.support.recording import judge
from core.tests.support.schemas import SDK, lacking

TEXT = {"type": "text", "text": "Hello"}
CHUNK = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": TEXT}
CALL = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Read", "status": "completed"}


def frame(update: dict[str, Any]) -> bytes:
    params = {"sessionId": "s", "update": update}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode()


@pytest.fixture(autouse=True)
def schemas() -> None:
    if not SDK.is_dir():
        lacking("the official schemas are not installed: they come with npm, by `make test`")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("update", [CHUNK, CALL])
def test_a_good_frame_passes(version: int, update: dict[str, Any]) -> None:
    assert judge(version, "session/update", frame(update)) == []


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "update",
    [
        {**CHUNK, "sessionUpdate": "agent_massage_chunk"},
        {**CHUNK, "content": {"type": "text"}},
        {**CHUNK, "content": {**TEXT, "txet": "Hello"}},
        {**CHUNK, "mesageId": "m"},
        {**CALL, "status": "done"},
        {**CALL, "toolCallId": None},
    ],
    ids=["unknown kind", "missing member", "misspelt inside", "misspelt", "unknown status", "null id"],
)
def test_a_bad_frame_does_not(version: int, update: dict[str, Any]) -> None:
    assert judge(version, "session/update", frame(update)) != []


@pytest.mark.parametrize("version", [1, 2])
def test_an_answer_is_judged_by_the_method_it_answers(version: int) -> None:
    answer = b'{"jsonrpc":"2.0","id":1,"result":{"sessions":[]}}'
    assert judge(version, "session/list", answer) == []
    assert judge(version, "session/new", answer) != []
    assert judge(version, "session/unheard_of", answer) != []
