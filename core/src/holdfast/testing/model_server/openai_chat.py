"""OpenAI's chat completions, which many providers speak too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.testing.model_server.conversation import Conversation, Message, Tool, member, members, text_of
from holdfast.testing.model_server.events import event, new_id, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.testing.model_server.replies import Say

_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def read(body: Mapping[str, Any]) -> Conversation:
    """Return the conversation in a request."""
    instructions = [text_of(it["content"]) for it in body["messages"] if it["role"] in ("system", "developer")]
    told = [it for it in body["messages"] if it["role"] in ("user", "assistant", "tool")]
    functions = [it["function"] for it in members(body, "tools") if it.get("type") == "function"]
    return Conversation(
        body.get("model", ""),
        "\n".join(instructions),
        tuple(Message(it["role"], text_of(it.get("content"))) for it in told),
        tuple(Tool(it["name"], it.get("parameters") or {}) for it in functions),
        member(body, "response_format", "json_schema", "schema"),
    )


def stream(reply: Say, model: str) -> Iterator[bytes]:
    """Return the events of a reply."""
    about = {"id": new_id("chatcmpl"), "object": "chat.completion.chunk", "created": 0, "model": model}

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        return event({**about, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"reasoning_content": piece}) for piece in pieces(reply, reply.thought))
    yield from (chunk({"content": piece}) for piece in pieces(reply, reply.text))
    for index, call in enumerate(_calls(reply)):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield chunk({"tool_calls": [{**call, "index": index, "function": function}]})
        for piece in pieces(reply, call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if reply.then == "end":
        yield chunk({}, _finish(reply))
        yield event({**about, "choices": [], "usage": _USAGE})
        yield b"data: [DONE]\n\n"


def whole(reply: Say, model: str) -> dict[str, Any]:
    """Return a reply as one object."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    about = {"id": new_id("chatcmpl"), "object": "chat.completion", "created": 0, "model": model}
    return {**about, "choices": [choice], "usage": _USAGE}


def _calls(reply: Say) -> list[dict[str, Any]]:
    return [
        {"id": new_id("call"), "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for name, arguments in reply.calls
    ]


def _finish(reply: Say) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")
