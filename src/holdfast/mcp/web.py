"""A server elsewhere, reached over HTTP, as the pair of streams the SDK wants.

The SDK does the talking. Here are the things it does not see to: that an answer is bounded, with which status a server
refuses us, and that a stream of events has ended.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError

from holdfast.mcp.servers import SseServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from holdfast.mcp.pipes import ProcessWatch
    from holdfast.mcp.servers import HttpServer
    from holdfast.mcp.values import Limits

HTTP_SECONDS = 30.0

SSE_SECONDS = 3600.0
"""A stream of events that is silent for so long is taken for dead; most servers send a sign of life now and then."""

# They log addresses and whole messages, in which there may be secrets (P10). What went wrong is said by us, without.
for _name in ("mcp", "httpx2", "httpcore2"):
    if (_logger := logging.getLogger(_name)).level == logging.NOTSET:
        _logger.setLevel(logging.CRITICAL + 1)


@asynccontextmanager
async def open_web(
    server: HttpServer | SseServer, limits: Limits, watch: ProcessWatch
) -> AsyncGenerator[tuple[Any, Any]]:
    """Be connected to a server elsewhere."""
    answers = _Answers(limits.line)

    def client(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        # What we did not ask to be packed we need not unpack: a little may hold a lot.
        plain = {"Accept-Encoding": "identity", **(headers or {})}
        hooks: dict[str, list[Callable[..., Any]]] = {"response": [answers.look]}
        return httpx2.AsyncClient(headers=plain, timeout=timeout, auth=auth, event_hooks=hooks)

    if isinstance(server, SseServer):
        opened = sse_client(
            server.url, dict(server.headers), HTTP_SECONDS, sse_read_timeout=SSE_SECONDS, httpx_client_factory=client
        )
        async with opened as (read, write):
            # The SDK keeps it to itself until somebody calls.
            yield _Overheard(read, ended=lambda: watch.process_ended("the server ended the connection")), write
    else:
        timeout = httpx2.Timeout(HTTP_SECONDS, read=None)  # how long a call may take is not for it to say
        async with client(dict(server.headers), timeout) as http:
            opened = streamable_http_client(server.url, http_client=http, max_sse_event_size=limits.line)
            async with opened as (read, write):
                yield _Overheard(read, heard=answers.explain), write


class _Answers:
    """What a server answers, before the SDK sees it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._refusal = ""

    async def look(self, response: httpx2.Response) -> None:
        """Note a refusal; see to it that a body is bounded. The SDK bounds the events of a stream itself."""
        if response.status_code >= 400:
            self._refusal = f"{response.status_code} {response.reason_phrase}".strip()
        response.headers["content-encoding"] = "identity"
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = _Bounded(response.stream, self._limit)

    def explain(self, item: Any) -> Any:
        """Put the status into the SDK's message about a refusal, which says only that there was one."""
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCError) and message.error.message == "Server returned an error response":
            error = message.error.model_copy(update={"message": f"the server answered: {self._refusal}"})
            return SessionMessage(message.model_copy(update={"error": error}))
        return item


class _Bounded(httpx2.AsyncByteStream):
    """A body that may not be longer than a message."""

    def __init__(self, stream: Any, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise httpx2.StreamError(f"it sent a message of more than {self._limit} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Overheard:
    """A stream to read from, somebody listening who knows more about it than the SDK tells."""

    def __init__(
        self, stream: Any, *, heard: Callable[[Any], Any] = lambda it: it, ended: Callable[[], None] = lambda: None
    ) -> None:
        self._stream = stream
        self._heard = heard
        self._ended = ended

    @property
    def last_context(self) -> Any:
        """In which context the last item was sent; the SDK looks for it."""
        return self._stream.last_context

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return self._heard(await anext(self._stream))
        except StopAsyncIteration:
            self._ended()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *about: object) -> bool | None:
        return await self._stream.__aexit__(*about)
