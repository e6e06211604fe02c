"""What a prompt may hold: always text and links, the rest as the agent has said."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InvalidParams
from holdfast.model import checked_prompt

pytestmark = pytest.mark.requirement("C1")

TEXT = {"type": "text", "text": ""}
LINK = {"type": "resource_link", "name": "a", "uri": "file:///a"}
IMAGE = {"type": "image", "data": "", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "", "mimeType": "audio/wav"}
RESOURCE = {"type": "resource", "resource": {"uri": "file:///a", "text": ""}}
BLOB = {"type": "resource", "resource": {"uri": "file:///a", "blob": "", "mimeType": "x/y"}}


def test_text_and_links_are_always_accepted_and_come_through_as_they_are() -> None:
    prompt = [{**TEXT, "annotations": {"priority": 1}, "_meta": {"x": None}}, {**LINK, "future": [1]}]
    assert checked_prompt(prompt, ()) is prompt


@pytest.mark.parametrize(
    ("block", "kind"), [(IMAGE, "image"), (AUDIO, "audio"), (RESOURCE, "resource"), (BLOB, "resource")]
)
def test_the_rest_is_accepted_only_where_the_agent_says_so(block: dict[str, Any], kind: str) -> None:
    assert checked_prompt([TEXT, block], {kind}) == [TEXT, block]
    with pytest.raises(InvalidParams, match=kind):
        checked_prompt([TEXT, block], {"image", "audio", "resource"} - {kind})


@pytest.mark.parametrize(
    "block",
    [
        {}, {"type": None}, {"type": "text"}, {"type": "text", "text": None}, {"type": "text", "text": 1},
        {"text": "x"}, {"type": "video", "data": ""}, {"type": "_mine"}, {"type": ["text"], "text": "x"},
        {"type": "resource_link", "name": "a"}, {"type": "image", "data": ""}, {"type": "image", "data": b"x"},
        {"type": "resource", "resource": {"uri": "a"}}, {"type": "resource", "resource": None},
        {"type": "resource", "resource": {"uri": "a", "text": "x", "blob": "x"}},
    ],
)  # fmt: skip
def test_a_block_that_is_not_what_it_says_it_is_is_refused(block: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        checked_prompt([TEXT, block], {"image", "audio", "resource"})


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(InvalidParams, match="empty"):
        checked_prompt([], ())
