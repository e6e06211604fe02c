"""Messages as version 1 says them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from holdfast.model import event_from
from holdfast.surface.v1.client import Client
from holdfast.surface.v1.lower import SAID_MESSAGES, Lowering

if TYPE_CHECKING:
    from holdfast.model import Update

TEXT = {"type": "text", "text": "x"}
CHUNK: Update = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": TEXT}


def said(*updates: Update) -> list[Any]:
    lowering = Lowering("s", Client({}))
    frames = lowering.live([event_from(it) for it in updates]).splitlines()
    return [msgspec.json.decode(it)["params"]["update"] for it in frames]


@pytest.mark.parametrize("chunk", [CHUNK, {**CHUNK, "_meta": {}}, {**CHUNK, "content": {"type": "image", "data": ""}}])
def test_a_message_that_was_said_in_pieces_is_not_said_again_as_a_whole(chunk: Update) -> None:
    whole = {"sessionUpdate": "agent_message", "messageId": "m", "content": [chunk["content"]]}
    assert said(chunk, whole) == [chunk]
    assert said(whole) == [{**CHUNK, "content": chunk["content"]}]


@pytest.mark.parametrize("members", [{}, {"_meta": {}}])
def test_what_version_1_has_no_word_for_is_not_said(members: Update) -> None:
    assert said({**CHUNK, **members, "sessionUpdate": "session_message_chunk"}) == []


@pytest.mark.parametrize("way", ["live", "shared"])
def test_a_session_of_many_turns_does_not_remember_every_message_it_ever_said(way: str) -> None:
    lowering, turns = Lowering("s", Client({})), 3 * SAID_MESSAGES
    for turn in range(turns):
        chunk = event_from({**CHUNK, "messageId": f"m{turn}"})
        assert getattr(lowering, way)([chunk])
        lowering.live([event_from({"sessionUpdate": "state_update", "state": "idle"})])
        whole = event_from({"sessionUpdate": "agent_message", "messageId": f"m{turn}", "content": [TEXT]})
        assert lowering.live([whole]) == b"", "the latest is known"
    assert len(lowering._messages) <= SAID_MESSAGES  # pyright: ignore[reportPrivateUsage]
