"""A provider of models on loopback, which says what a script tells it to: OpenAI's protocol, and Anthropic's for text.

Requests are answered in order, one reply each, streamed as the real ones are; a reply may also be an error, stop in the
middle, or never end.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType


@dataclass(frozen=True, slots=True)
class Say:
    """The model says something, and may call tools: names and arguments."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    thought: str = ""
    finish: str | None = None
    then: str = "end"
    """What follows what was said: ``end``; ``break``, the connection is lost before; ``hang``, nothing ever comes."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The provider refuses."""

    status: int
    message: str = "it failed"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Reply: TypeAlias = Say | Fail


def calls(*of: tuple[str, Mapping[str, Any]], text: str = "") -> Say:
    """Make a reply that calls tools."""
    return Say(text, of)


class ModelServer:
    """Answers requests by a script."""

    def __init__(self, script: Sequence[Reply]) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        """The bodies of all requests."""
        self.keys: list[str] = []
        """The keys that came with them."""
        self.hung_up = asyncio.Event()
        """Set when somebody left while we had more to say."""
        self._server: asyncio.Server
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where OpenAI's protocol is spoken."""
        return f"{self.root}/v1"

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def told(self, request: int = -1) -> list[dict[str, Any]]:
        """The messages of a request, but for the instructions."""
        return [it for it in self.requests[request]["messages"] if it["role"] not in ("system", "developer")]

    def tools(self, request: int = -1) -> set[str]:
        """The tools a request offered."""
        return {it["function"]["name"] for it in self.requests[request].get("tools", ())}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        if kind is None:
            assert not self.script, f"nobody asked for: {self.script}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        except asyncio.IncompleteReadError:
            return False
        headers = {name.lower(): value for name, _, value in (it.partition(": ") for it in head[1:] if it)}
        body: dict[str, Any] = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))) or b"{}")
        self.requests.append(body)
        self.keys.append(headers.get("authorization", headers.get("x-api-key", "")).removeprefix("Bearer "))
        reply = self.script.pop(0) if self.script else Fail(500, "the script is over", {"x-should-retry": "false"})
        if isinstance(reply, Fail):
            return await _refuse(writer, reply)
        assert body.get("stream"), "only streams are spoken here"
        wire = _anthropic if head[0].split()[1].endswith("/messages") else _openai
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for event in wire(reply, body["model"]):
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()
        if reply.then == "hang":
            await reader.read()  # until the other side has enough
            self.hung_up.set()
        if reply.then != "end":
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


async def _refuse(writer: asyncio.StreamWriter, reply: Fail) -> bool:
    body = json.dumps({"error": {"message": reply.message, "type": "scripted", "code": None}}).encode()
    lines = [f"HTTP/1.1 {reply.status} No", "content-type: application/json", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    await writer.drain()
    return True


def _pieces(text: str, size: int = 7) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def _openai(reply: Say, model: str) -> Iterator[bytes]:
    def event(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event(
            {"id": "chat", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": [choice]}
        )

    yield event({"role": "assistant", "content": ""})
    yield from (event({"reasoning_content": it}) for it in _pieces(reply.thought))
    yield from (event({"content": it}) for it in _pieces(reply.text))
    for index, (name, arguments) in enumerate(reply.calls):
        function = {"name": name, "arguments": ""}
        yield event({"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function}]})
        for piece in _pieces(json.dumps(arguments)):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if reply.then != "end":
        return
    yield event({}, reply.finish or ("tool_calls" if reply.calls else "stop"))
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    yield _event(
        {"id": "chat", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": [], "usage": usage}
    )
    yield b"data: [DONE]\n\n"


def _anthropic(reply: Say, model: str) -> Iterator[bytes]:
    def event(kind: str, **members: object) -> bytes:
        return f"event: {kind}\n".encode() + _event({"type": kind, **members})

    usage = {"input_tokens": 100, "output_tokens": 1}
    about: dict[str, Any] = {"id": "msg", "type": "message", "role": "assistant", "content": [], "model": model}
    yield event("message_start", message={**about, "usage": usage, "stop_reason": None, "stop_sequence": None})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for piece in _pieces(reply.text):
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    if reply.then != "end":
        return
    yield event("content_block_stop", index=0)
    stop = {"stop_reason": reply.finish or "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": 10})
    yield event("message_stop")


def _event(data: object) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"
