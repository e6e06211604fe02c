"""Feeds: what a tab is told as it happens, over a WebSocket. `holdfast_app.web` says what goes over one."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.errors import HoldfastError
from holdfast.view.commands import claimed_terminals
from holdfast.view.entries import terminals_in
from holdfast_app.web.articles import frame, frames, view_in
from holdfast_app.web.history_pages import entry_key, read_page
from holdfast_app.web.questions import draw_question
from holdfast_app.web.session_page import draw_options, usage_line

if TYPE_CHECKING:
    from holdfast.store import SessionStore
    from holdfast_app.web.listening import Listener
    from holdfast_app.web.requests import Receive, Send
    from holdfast_app.web.watching import WatchedSession

log: logging.Logger = logging.getLogger(__name__)

_TERMINAL = "terminal_update/"

PAUSE_SECONDS = 0.08
"""Between two messages of a feed there is at least so much time: what happens meanwhile comes together."""

PAUSE_FACTOR = 4
"""…and so many times what the last message took to draw: a long entry that grows must not take all the time."""

ALIVE_SECONDS = 15.0
"""After so long without a message there is an empty one."""

MOST_LINES = 300
"""A tab that is further behind than this loads the end of the session anew."""

CHUNK_LINES = 100


class Feed(Protocol):
    """What a tab is told."""

    async def send_all(self, send: Send) -> None:
        """Send what has changed, again and again; return when there is nothing more to come."""
        ...


async def serve_feed(receive: Receive, send: Send, feed: Feed) -> None:
    """Accept a WebSocket and send what a feed has, until the tab is gone."""
    await receive()
    await send({"type": "websocket.accept"})
    loop = asyncio.get_running_loop()
    leaving = loop.create_task(_until_gone(receive), name="a tab that listens")
    sending = loop.create_task(feed.send_all(send), name="feed a tab")
    try:
        await asyncio.wait({leaving, sending}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (leaving, sending):
            task.cancel()
        await asyncio.wait({leaving, sending})
    if not sending.cancelled() and (error := sending.exception()) is not None and leaving.cancelled():
        log.error("A feed has failed", exc_info=error)
    if leaving.cancelled():
        with suppress(Exception):  # the tab may be gone by now
            await send({"type": "websocket.close", "code": 1001})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def send_json(send: Send, message: object) -> None:
    """Send a message of a feed."""
    await send({"type": "websocket.send", "text": msgspec.json.encode(message, enc_hook=str).decode()})


class SessionFeed:
    """The feed of one tab on one session."""

    def __init__(self, watched: WatchedSession, library: SessionStore, lines: int, listener: Listener) -> None:
        """Begin behind so many lines, which the tab has."""
        self._watched = watched
        self._library = library
        self._lines = lines
        self._listener = listener
        self._said: dict[str, Any] = {}  # what the tab was told last, by the kind of message
        self._asked: set[str] = set()

    async def send_all(self, send: Send) -> None:
        """Send what has changed, again and again."""
        await self._watched.ready.wait()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(ALIVE_SECONDS):
                    await self._listener.changed.wait()
            if not self._listener.changed.is_set():
                await send_json(send, {})
                continue
            self._listener.changed.clear()
            began = time.perf_counter()
            messages = await self._messages()
            took = time.perf_counter() - began
            for message in messages:
                await send_json(send, message)
            if self._watched.gone:
                return
            await asyncio.sleep(max(PAUSE_SECONDS, PAUSE_FACTOR * took))

    async def _messages(self) -> list[dict[str, Any]]:
        if self._watched.gone:
            return [{"type": "gone", "text": self._watched.gone}]
        messages: list[dict[str, Any]] = []
        try:
            messages += await self._stored()
        except HoldfastError as e:
            messages.append({"type": "notice", "severity": "error", "text": str(e)})
        messages += self._live()
        messages += self._state()
        messages += self._questions()
        notices, self._listener.notices = self._listener.notices, []
        messages += ({"type": "notice", "severity": severity, "text": text} for severity, text in notices)
        return messages

    async def _stored(self) -> list[dict[str, Any]]:
        """Return the entries that are stored for good and that the tab does not have as such."""
        lines = self._watched.lines
        if lines - self._lines > MOST_LINES:
            self._lines = lines
            return [{"type": "reset"}]
        self._lines = min(self._lines, lines)  # a page that was made just now may know of more than was looked up here
        messages: list[dict[str, Any]] = []
        while self._lines < lines:
            end = min(lines, self._lines + CHUNK_LINES)
            page = await read_page(self._library, self._watched.session_id, self._lines, end)
            claimed = frozenset(self._watched.calls_of_terminals())
            html = await asyncio.to_thread(frames, page, claimed)  # long changes take long (P7)
            messages.append({"type": "entries", "html": html, "lines": end})
            for call in (it.entry for it in page.entries if it.entry.entity == "tool_call_update"):
                if any(page.history.get("terminal_update", key) is None for key in terminals_in(call.content())):
                    self._listener.dirty[entry_key(call.entity, call.key)] = None  # its terminal is in another part
            self._lines = end
        return messages

    def _live(self) -> list[dict[str, Any]]:
        """Return the entries that have changed, as they are now."""
        listener = self._listener
        dirty, listener.dirty = listener.dirty, {}
        removed, listener.removed = listener.removed, {}
        changed: list[tuple[str, str]] = []
        history = self._watched.history
        calls = self._watched.calls_of_terminals() if any(key.startswith(_TERMINAL) for key in dirty) else {}
        keys = dict.fromkeys(calls.get(key.removeprefix(_TERMINAL), key) for key in dirty)
        gone = [key for key in removed if self._watched.entry(key) is None]
        for key in keys:
            placed = self._watched.entry(key)
            if placed is not None:
                changed.append((key, frame(placed, view_in(placed.entry, history))))
                gone += (f"{_TERMINAL}{terminal}" for terminal in claimed_terminals([placed.entry]))
        return [{"type": "live", "entries": changed, "removed": gone}] if changed or gone else []

    def _state(self) -> list[dict[str, Any]]:
        watched = self._watched
        parts = {"usage": usage_line(watched.latest.get("usage_update")), "options": draw_options(watched.options)}
        known: dict[str, str] = self._said.get("parts", {})
        changed = {name: html for name, html in parts.items() if known.get(name) != html}
        state = {
            "state": watched.state,
            "title": watched.title,
            "program": watched.program,
            "waiting": watched.line.texts(),
        }
        messages: list[dict[str, Any]] = []
        if changed or self._said.get("state") != state:
            messages.append({"type": "state", **state, "html": changed})
        if self._said.get("commands") != watched.commands:
            messages.append({"type": "commands", "commands": watched.commands})
        self._said = {"parts": parts, "state": state, "commands": watched.commands}
        return messages

    def _questions(self) -> list[dict[str, Any]]:
        now = self._watched.questions
        messages: list[dict[str, Any]] = [{"type": "answered", "id": name} for name in self._asked - now.keys()]
        for name, asked in now.items():
            if name not in self._asked:
                messages.append(
                    {"type": "question", "id": name, "html": draw_question(name, asked, self._watched.roots[0])}
                )
        self._asked = set(now)
        return messages
