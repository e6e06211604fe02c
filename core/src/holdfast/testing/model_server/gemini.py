"""Gemini's generateContent and streamGenerateContent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.testing.model_server.conversation import Conversation, Message, Tool, member, members, text_of
from holdfast.testing.model_server.events import event, new_id, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.testing.model_server.replies import Say

_USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}


def read(body: Mapping[str, Any]) -> Conversation:
    """Return the conversation in a request."""
    declared = [it for tool in members(body, "tools") for it in members(tool, "functionDeclarations")]
    config: Any = body.get("generationConfig")
    return Conversation(
        body.get("model", ""),
        text_of(member(body, "systemInstruction", "parts")),
        tuple(message for given in members(body, "contents") for message in _messages(given)),
        tuple(Tool(it["name"], it.get("parametersJsonSchema") or it.get("parameters") or {}) for it in declared),
        member(config, "responseJsonSchema") or member(config, "responseSchema"),
    )


def _messages(given: Mapping[str, Any]) -> Iterator[Message]:
    parts = members(given, "parts")
    results = [it["functionResponse"] for it in parts if "functionResponse" in it]
    yield from (Message("tool", text_of(it.get("response"))) for it in results)
    if any("functionResponse" not in it for it in parts):
        yield Message("assistant" if given.get("role") == "model" else "user", text_of(parts))


def stream(reply: Say, model: str) -> Iterator[bytes]:
    """Return the events of a reply."""
    for part in _parts(reply):
        yield event(_response(model, [part]))
    if reply.then == "end":
        yield event(_response(model, [{"text": ""}], _finish(reply)))


def whole(reply: Say, model: str) -> dict[str, Any]:
    """Return a reply as one object."""
    return _response(model, list(_parts(reply)), _finish(reply))


def _parts(reply: Say) -> Iterator[dict[str, Any]]:
    yield from ({"text": piece, "thought": True} for piece in pieces(reply, reply.thought))
    yield from ({"text": piece} for piece in pieces(reply, reply.text))
    yield from ({"functionCall": {"name": name, "args": dict(arguments)}} for name, arguments in reply.calls)


def _response(model: str, parts: list[dict[str, Any]], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish is not None:
        candidate["finishReason"] = finish
    about = {"modelVersion": model, "responseId": new_id("response")}
    return {"candidates": [candidate], "usageMetadata": _USAGE, **about}


def _finish(reply: Say) -> str:
    return reply.finish or "STOP"
