"""A stream of events over HTTP, read by a client that knows nothing else, and cut when a test wants it."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from core.tests.support.links import PATIENCE
from holdfast.transport.event_stream import EventReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable


class Stream:
    """What came on a stream."""

    def __init__(self, reader: asyncio.StreamReader, at_most: int | None) -> None:
        self.messages: list[Any] = []
        self.ids: list[str | None] = []
        self.ended = False
        self._reader = reader
        self._at_most = at_most
        self._news = asyncio.Event()

    async def read(self) -> None:
        events = EventReader(1 << 24)
        try:
            while not self.full and (size := int((await self._reader.readline()).strip() or b"0", 16)):
                chunk = await self._reader.readexactly(size)
                await self._reader.readline()
                for event in events.feed(chunk):
                    assert isinstance(event.line, bytes)
                    if not self.full:
                        self.messages.append(json.loads(event.line))
                        self.ids.append(event.id)
                self._news.set()
        except (OSError, asyncio.IncompleteReadError):
            pass
        self.ended = True
        self._news.set()

    @property
    def full(self) -> bool:
        """Whether it has as much as it wanted."""
        return self._at_most is not None and len(self.messages) >= self._at_most

    async def until(self, happened: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE * 3):
            while not happened():
                self._news.clear()
                await self._news.wait()

    async def answer(self, id_: object) -> Any:
        await self.until(lambda: any(it.get("id") == id_ and "method" not in it for it in self.messages))
        return next(it for it in self.messages if it.get("id") == id_ and "method" not in it)

    def said(self) -> str:
        """The agent's text."""
        return said(self.messages)


def said(messages: list[Any]) -> str:
    """Return the agent's text in the updates among messages."""
    updates = [it["params"]["update"] for it in messages if it.get("method") == "session/update"]
    return "".join(it["content"].get("text", "") for it in updates if it["sessionUpdate"] == "agent_message_chunk")


@asynccontextmanager
async def stream(
    port: int, connection: str, *, token: str = "ada", at_most: int | None = None, status: int = 200, **headers: str
) -> AsyncGenerator[Stream]:
    """Open a stream; it is cut when the block is left, or has `at_most` messages."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    fields = {"host": f"127.0.0.1:{port}", "authorization": f"Bearer {token}", "accept": "text/event-stream"}
    fields["acp-connection-id"] = connection
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    writer.write(f"GET /acp HTTP/1.1\r\n{head}\r\n".encode())
    async with asyncio.timeout(PATIENCE * 3):
        answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(f"HTTP/1.1 {status}".encode()), answer + await reader.read(500)
    opened = Stream(reader, at_most)
    reading = asyncio.ensure_future(opened.read())
    try:
        yield opened
    finally:
        reading.cancel()
        writer.transport.abort()
        await asyncio.wait({reading})
