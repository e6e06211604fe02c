"""Anthropic's messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from holdfast.testing.model_server.conversation import Conversation, Message, Tool, member, members, text_of
from holdfast.testing.model_server.events import event, new_id, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.testing.model_server.replies import Say


def read(body: Mapping[str, Any]) -> Conversation:
    """Return the conversation in a request."""
    return Conversation(
        body.get("model", ""),
        text_of(body.get("system") or ""),
        tuple(message for given in body["messages"] for message in _messages(given)),
        tuple(Tool(it["name"], it.get("input_schema") or {}) for it in members(body, "tools")),
        member(body, "output_config", "format", "schema") or member(body, "output_format", "schema"),
    )


def _messages(given: Mapping[str, Any]) -> Iterator[Message]:
    """Return the results of tools as messages of their own: on the wire they are parts of what the user says."""
    content = given["content"]
    parts = cast("list[Any]", content if isinstance(content, list) else [content])
    results: list[Any] = [it for it in parts if isinstance(it, dict) and it["type"] == "tool_result"]
    others = [it for it in parts if it not in results]
    yield from (Message("tool", text_of(it.get("content"))) for it in results)
    if others:
        yield Message("assistant" if given["role"] == "assistant" else "user", text_of(others))


def stream(reply: Say, model: str) -> Iterator[bytes]:
    """Return the events of a reply."""

    def of(kind: str, **members: object) -> bytes:
        return event({"type": kind, **members}, kind)

    yield of("message_start", message={**whole(reply, model), "content": [], "stop_reason": None})
    blocks = _blocks(reply)
    for index, block in enumerate(blocks):
        yield of("content_block_start", index=index, content_block={**block, **_EMPTY[block["type"]]})
        yield from (of("content_block_delta", index=index, delta=delta) for delta in _deltas(reply, block))
        if reply.then != "end" and index == len(blocks) - 1:
            return
        yield of("content_block_stop", index=index)
    if reply.then == "end":
        stop = {"stop_reason": _stop(reply), "stop_sequence": None}
        yield of("message_delta", delta=stop, usage={"output_tokens": 10})
        yield of("message_stop")


def whole(reply: Say, model: str) -> dict[str, Any]:
    """Return a reply as one object."""
    about: dict[str, Any] = {"id": new_id("msg"), "type": "message", "role": "assistant", "model": model}
    usage = {
        "input_tokens": 100,
        "output_tokens": 10,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    return {**about, "content": _blocks(reply), "stop_reason": _stop(reply), "stop_sequence": None, "usage": usage}


_EMPTY: dict[str, dict[str, Any]] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
}
"""How a block begins."""


def _blocks(reply: Say) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.thought:
        blocks.append({"type": "thinking", "thinking": reply.thought, "signature": "scripted"})
    if reply.text or not reply.calls:
        blocks.append({"type": "text", "text": reply.text})
    for name, arguments in reply.calls:
        blocks.append({"type": "tool_use", "id": new_id("toolu"), "name": name, "input": dict(arguments)})
    return blocks


def _deltas(reply: Say, block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(reply, block["text"]))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(reply, block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        arguments = json.dumps(block["input"])
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(reply, arguments))


def _stop(reply: Say) -> str:
    return reply.finish or ("tool_use" if reply.calls else "end_turn")
