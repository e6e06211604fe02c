"""The server: HTTP on loopback, as much of it as clients of models use."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from holdfast.testing.model_server import anthropic, gemini, openai_chat, openai_responses
from holdfast.testing.model_server.conversation import Conversation
from holdfast.testing.model_server.replies import Fail, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType, TracebackType

    from holdfast.testing.model_server.replies import Say

Script: TypeAlias = Callable[[Conversation], Reply]
"""What to reply to a conversation."""

_ROUTES: tuple[tuple[re.Pattern[str], ModuleType], ...] = (
    (re.compile(r"/chat/completions$"), openai_chat),
    (re.compile(r"/responses$"), openai_responses),
    (re.compile(r"/messages$"), anthropic),
    (re.compile(r"/models/[^/]+:(stream)?[gG]enerateContent$"), gemini),
)
_MODEL = re.compile(r"/models/([^/:]+):")
_OVER = Fail(500, "the script is over", {"x-should-retry": "false"})


class _Request(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class ModelServer:
    """Answers requests by a script: replies in order, or a function of the conversation.

    Where replies are given in order, leaving the server raises `AssertionError` if some were not asked for.

    Attributes:
        script: the replies that are still to come.

    Args:
        script: the replies, or a function that returns one.
        port: where to listen on loopback; 0 is any free port.
        log: a file for the bodies of all requests.

    """

    def __init__(self, script: Sequence[Reply] | Script, *, port: int = 0, log: Path | None = None) -> None:
        self.script: list[Reply] = [] if callable(script) else list(script)
        self.requests: list[dict[str, Any]] = []
        """The bodies of all requests for a reply."""
        self.keys: list[str] = []
        """The keys that came with them."""
        self.hung_up: asyncio.Event = asyncio.Event()
        """Set when a client left while there was more to say."""
        self._decide = script if callable(script) else self._next
        self._port = port
        self._log = log
        self._server: asyncio.Server
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where OpenAI's protocols are spoken."""
        return f"{self.root}/v1"

    @property
    def root(self) -> str:
        """Where all protocols are spoken."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def told(self, request: int = -1) -> list[dict[str, Any]]:
        """Return the messages of a request for a chat completion, but for the instructions.

        Args:
            request: which request; the last by default.

        Returns:
            The messages as they were sent.

        """
        return [it for it in self.requests[request]["messages"] if it["role"] not in ("system", "developer")]

    def tools(self, request: int = -1) -> set[str]:
        """Return the names of the tools that a request for a chat completion offered.

        Args:
            request: which request; the last by default.

        Returns:
            The names.

        """
        return {it["function"]["name"] for it in self.requests[request].get("tools", ())}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        if kind is None and self.script:
            raise AssertionError(f"nobody asked for: {self.script}")

    def _next(self, _: Conversation) -> Reply:
        return self.script.pop(0) if self.script else _OVER

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (request := await _read(reader)) is not None:
                if not await self._answer(request, reader, writer):
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer a request; return whether the connection can be used again."""
        self._note(request)
        protocol = next((module for pattern, module in _ROUTES if pattern.search(request.path.partition("?")[0])), None)
        if protocol is None or request.method != "POST":
            return await _send_json(writer, *_aside(request))
        self.requests.append(request.body)
        self.keys.append(_key(request.headers))
        named = _MODEL.search(request.path)
        body = {"model": named[1], **request.body} if named else request.body
        reply = self._decide(protocol.read(body))
        if isinstance(reply, Fail):
            error = {"error": {"message": reply.message, "type": "scripted", "code": None}}
            return await _send_json(writer, reply.status, error, reply.headers)
        if not (body.get("stream") or "streamGenerate" in request.path):
            return await _send_json(writer, 200, protocol.whole(reply, body["model"]))
        return await self._stream(reply, protocol.stream(reply, body["model"]), reader, writer)

    async def _stream(
        self, reply: Say, events: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        try:
            for event in events:
                writer.write(b"%x\r\n%s\r\n" % (len(event), event))
                await writer.drain()
                if reply.pace:
                    await asyncio.sleep(reply.pace)
        except ConnectionError:
            self.hung_up.set()
            raise
        if reply.then == "hang":
            await reader.read()  # until the other side has enough
            self.hung_up.set()
        if reply.then != "end":
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _note(self, request: _Request) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"method": request.method, "path": request.path, "body": request.body}) + "\n")


def _aside(request: _Request) -> tuple[int, dict[str, Any]]:
    """Return status and body for what clients ask besides replies: which models there are, how long a text is."""
    path = request.path.partition("?")[0]
    if request.method == "GET" and path.endswith("/models"):
        model = {"id": "scripted", "object": "model", "created": 0, "owned_by": "holdfast"}
        return 200, {"object": "list", "data": [model]}
    if path.endswith("/count_tokens"):
        return 200, {"input_tokens": 100}
    if path.endswith(":countTokens"):
        return 200, {"totalTokens": 100}
    return 404, {"error": {"message": f"{request.method} {path} is not spoken here", "type": "not_found"}}


def _key(headers: Mapping[str, str]) -> str:
    names = ("authorization", "x-api-key", "x-goog-api-key")
    return next((headers[name] for name in names if name in headers), "").removeprefix("Bearer ")


async def _read(reader: asyncio.StreamReader) -> _Request | None:
    """Read a request; return None at the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    method, path, _ = head[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    if headers.get("transfer-encoding") == "chunked":
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return _Request(method, path, headers, json.loads(body) if body[:1] == b"{" else {})


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readline()).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


async def _send_json(
    writer: asyncio.StreamWriter, status: int, body: object, headers: Mapping[str, str] | None = None
) -> bool:
    encoded = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Scripted", "content-type: application/json", f"content-length: {len(encoded)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + encoded)
    await writer.drain()
    return True
