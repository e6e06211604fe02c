"""OpenAI's responses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.testing.model_server.conversation import Conversation, Message, Tool, member, members, text_of
from holdfast.testing.model_server.events import event, new_id, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.testing.model_server.conversation import Role
    from holdfast.testing.model_server.replies import Say

_USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 110,
}


def read(body: Mapping[str, Any]) -> Conversation:
    """Return the conversation in a request."""
    given = members(body, "input")
    items: list[dict[str, Any]] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    functions = [it for it in members(body, "tools") if it.get("type") == "function"]
    return Conversation(
        body.get("model", ""),
        body.get("instructions") or "",
        tuple(message for item in items if (message := _message(item)) is not None),
        tuple(Tool(it["name"], it.get("parameters") or {}) for it in functions),
        member(body, "text", "format", "schema"),
    )


def _message(item: Mapping[str, Any]) -> Message | None:
    if item.get("type", "").endswith("_output"):
        return Message("tool", text_of(item.get("output")))
    roles: dict[str, Role] = {"user": "user", "assistant": "assistant"}
    role = roles.get(item.get("role", ""))
    return None if role is None else Message(role, text_of(item.get("content")))


def stream(reply: Say, model: str) -> Iterator[bytes]:
    """Return the events of a reply."""
    response: dict[str, Any] = {"id": new_id("resp"), "object": "response", "created_at": 0, "model": model}

    def of(kind: str, **members: object) -> bytes:
        return event({"type": kind, **members}, kind)

    yield of("response.created", response={**response, "status": "in_progress", "output": []})
    items = _items(reply)
    for index, item in enumerate(items):
        yield of("response.output_item.added", output_index=index, item={**item, **_EMPTY[item["type"]]})
        at = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            part = {**at, "content_index": 0}
            yield of("response.content_part.added", **part, part={"type": "output_text", "text": "", "annotations": []})
            yield from (of("response.output_text.delta", **part, delta=it) for it in pieces(reply, reply.text))
            if reply.then != "end":
                return
            yield of("response.output_text.done", **part, text=reply.text)
        elif item["type"] == "reasoning":
            part = {**at, "summary_index": 0}
            yield of("response.reasoning_summary_part.added", **part, part={"type": "summary_text", "text": ""})
            deltas = pieces(reply, reply.thought)
            yield from (of("response.reasoning_summary_text.delta", **part, delta=it) for it in deltas)
        else:
            deltas = pieces(reply, item["arguments"])
            yield from (of("response.function_call_arguments.delta", **at, delta=it) for it in deltas)
        yield of("response.output_item.done", output_index=index, item=item)
    if reply.then == "end":
        yield of("response.completed", response=_response(response, reply, items))


_EMPTY: dict[str, dict[str, Any]] = {
    "message": {"content": [], "status": "in_progress"},
    "reasoning": {"summary": []},
    "function_call": {"arguments": "", "status": "in_progress"},
}
"""How an item begins."""


def whole(reply: Say, model: str) -> dict[str, Any]:
    """Return a reply as one object."""
    response: dict[str, Any] = {"id": new_id("resp"), "object": "response", "created_at": 0, "model": model}
    return _response(response, reply, _items(reply))


def _response(response: Mapping[str, Any], reply: Say, items: list[dict[str, Any]]) -> dict[str, Any]:
    status = "incomplete" if reply.finish else "completed"
    details = {"reason": reply.finish} if reply.finish else None
    return {**response, "status": status, "incomplete_details": details, "output": items, "usage": _USAGE}


def _items(reply: Say) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.thought:
        summary = [{"type": "summary_text", "text": reply.thought}]
        items.append({"type": "reasoning", "id": new_id("rs"), "summary": summary})
    if reply.text:
        content: list[Any] = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append(
            {"type": "message", "id": new_id("msg"), "role": "assistant", "status": "completed", "content": content}
        )
    for name, arguments in reply.calls:
        ids = {"id": new_id("fc"), "call_id": new_id("call")}
        call = {"name": name, "arguments": json.dumps(arguments), "status": "completed"}
        items.append({"type": "function_call", **ids, **call})
    return items
