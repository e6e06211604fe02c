"""The web page for tests, without a network: requests to the application and feeds of it, in this process."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from core.tests.support.links import PATIENCE
from holdfast.agent.port import AuthorAgent
from holdfast.engine import EngineLimits
from holdfast.format import stored, with_texts
from holdfast.model import LOCAL, SessionInfo, SessionState, new_session_id
from holdfast.server import Host
from holdfast.server.access import Access
from holdfast.store import EventWindow
from holdfast.testing.demo_agent import agent as demo
from holdfast_app.web import OneAgent, WebPages

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence

    from holdfast import Agent
    from holdfast.store import SessionStore


class PageAnswer(NamedTuple):
    """An answer of the application."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class Tab:
    """A tab that listens to a feed, and keeps what it was told."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._arrived = asyncio.Event()
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._incoming.put_nowait({"type": "websocket.connect"})
        self.closed: int | None = None

    async def receive(self) -> Any:
        return await self._incoming.get()

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.send":
            self.messages.append(json.loads(message["text"]))
        elif message["type"] == "websocket.close":
            self.closed = message["code"]
        self._arrived.set()

    def leave(self) -> None:
        self._incoming.put_nowait({"type": "websocket.disconnect", "code": 1001})

    async def until(self, kind: str, **members: Any) -> dict[str, Any]:
        """Wait for a message of a kind with certain members; return the first."""

        def found() -> dict[str, Any] | None:
            those = (message for message in self.messages if message.get("type") == kind)
            return next((message for message in those if members.items() <= message.items()), None)

        await self.until_true(lambda: found() is not None)
        return found() or {}

    async def until_closed(self) -> None:
        """Wait until the server has ended the feed."""
        await self.until_true(lambda: self.closed is not None)

    async def until_shown(self, text: str) -> None:
        """Wait until an entry with a text has come."""
        await self.until_true(lambda: text in self.shown())

    async def until_true(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds for what has come."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._arrived.clear()
                await self._arrived.wait()

    def shown(self) -> str:
        """Return all entries as they would be in the page: the last of each, in the order in which they came."""
        entries: dict[str, str] = {}
        for message in self.messages:
            if message.get("type") == "live":
                entries.update(dict(message["entries"]))
            elif message.get("type") == "entries":
                entries = {key: html for key, html in entries.items() if "data-provisional" not in html}
                for frame in re.findall(r'<section class="placed".*?</section>', message["html"], re.DOTALL):
                    entries[cast("Any", re.search(r'data-key="([^"]*)"', frame))[1]] = frame
        return "\n".join(entries.values())


class Pages:
    """The application, and whoever asks."""

    def __init__(self, pages: WebPages, store: SessionStore, access: Access | None = None) -> None:
        self.pages = pages
        self.store = store
        self.access: Access = access or Access()

    def _scope(self, kind: str, address: str, principal: str, headers: Mapping[str, str]) -> dict[str, Any]:
        parts = urlsplit(address)
        fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        return {
            "type": kind, "path": parts.path, "query_string": parts.query.encode(), "headers": fields,
            "holdfast.principal": principal, "holdfast.access": self.access,
        }  # fmt: skip

    async def ask(
        self, method: str, address: str, body: bytes = b"", *, principal: str = LOCAL, **headers: str
    ) -> PageAnswer:
        scope = {**self._scope("http", address, principal, headers), "method": method}
        sent: list[dict[str, Any]] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        async with asyncio.timeout(PATIENCE):
            await self.pages(scope, receive, send)
        found = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
        data = b"".join(message.get("body", b"") for message in sent[1:])
        packed = found.get("content-encoding") == "gzip"
        return PageAnswer(sent[0]["status"], found, gzip.decompress(data) if packed else data)

    async def get(self, address: str, *, principal: str = LOCAL, **headers: str) -> PageAnswer:
        return await self.ask("GET", address, b"", principal=principal, **headers)

    async def post(self, address: str, body: object = None, *, principal: str = LOCAL) -> PageAnswer:
        data = json.dumps(body or {}).encode()
        return await self.ask("POST", address, data, principal=principal, content_type="application/json")

    @asynccontextmanager
    async def feed(self, address: str, *, principal: str = LOCAL) -> AsyncGenerator[Tab]:
        """Listen to a feed while the block runs."""
        tab = Tab()
        serving = asyncio.create_task(
            self.pages(self._scope("websocket", address, principal, {}), tab.receive, tab.send)
        )
        try:
            yield tab
        finally:
            tab.leave()
            async with asyncio.timeout(PATIENCE):
                await serving

    async def add_session(
        self,
        updates: Sequence[dict[str, Any]],
        *,
        title: str = "A session",
        cwd: str = "/work",
        agent: str = "holdfast-demo",
        principal: str = LOCAL,
        at: int = 1_700_000_000_000_000,
    ) -> str:
        """Put a session into the store, as if an agent had made it."""
        session = new_session_id()
        info = SessionInfo(
            session, cwd, (), title, at, at, archived=False, messages=2, principal=principal, agent=agent
        )
        await self.store.add(info, SessionState(), with_texts([stored(update) for update in updates]))
        return session


def said(kind: str, key: str, text: str) -> dict[str, Any]:
    """Return the update of a message."""
    return {"sessionUpdate": kind, "messageId": key, "content": [{"type": "text", "text": text}]}


def conversation(turns: int) -> list[dict[str, Any]]:
    """Return a conversation of so many prompts, each with its answer."""
    return [
        update
        for n in range(turns)
        for update in (said("user_message", f"u{n}", f"prompt {n}"), said("agent_message", f"a{n}", f"answer {n}"))
    ]


@asynccontextmanager
async def opened_pages(agent: Agent = demo, *, access: Access | None = None) -> AsyncGenerator[Pages]:
    """Serve the page of an agent, in memory."""
    host = Host(AuthorAgent(agent), store=":memory:", limits=EngineLimits(keep_events=EventWindow()))
    store = cast("SessionStore", (await host.engine()).store)
    agents = OneAgent(host)
    await agents.ready(LOCAL)

    async def library() -> SessionStore:
        return store

    pages = WebPages(library, agents)
    try:
        yield Pages(pages, store, access)
    finally:
        async with asyncio.timeout(PATIENCE):
            await pages.close()
            await host.shut_down(1.0)


def on_pages(test: Callable[[Pages], Awaitable[None]]) -> Callable[[], Coroutine[Any, Any, None]]:
    """Give a test the page of the demo agent."""

    async def run() -> None:
        async with opened_pages() as pages:
            await test(pages)

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    return run
