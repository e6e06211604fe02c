"""`WebPages`: the ASGI application. `holdfast_app.web` lists what it answers."""

from __future__ import annotations

import asyncio
import logging
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.errors import HoldfastError
from holdfast_app.html import draw_time
from holdfast_app.share_links import SharedPages
from holdfast_app.web import export_file, files_in_roots, finding, library_page, session_page
from holdfast_app.web.actions import Actions
from holdfast_app.web.articles import page_of_entries
from holdfast_app.web.assets import all_assets, tree
from holdfast_app.web.elements import Markup, element, join
from holdfast_app.web.feeds import SessionFeed, serve_feed
from holdfast_app.web.history_pages import PAGE_LINES, read_page
from holdfast_app.web.layout import error_page, nothing_here
from holdfast_app.web.library_feed import LibraryFeed
from holdfast_app.web.listening import Listener
from holdfast_app.web.principal import Desk
from holdfast_app.web.requests import Answer, PageError, html_answer, json_answer, page_request, send_answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from holdfast.cluster import NodeSecret
    from holdfast.model import SessionInfo
    from holdfast.store import Record, SessionStore
    from holdfast_app.share_links import ShareLinks
    from holdfast_app.web.agents import PageAgents
    from holdfast_app.web.history_pages import HistoryPage
    from holdfast_app.web.library_page import Filters
    from holdfast_app.web.requests import PageRequest, Receive, Scope, Send

log: logging.Logger = logging.getLogger(__name__)

_SESSION = re.compile(r"/sessions/([A-Za-z0-9_-]{1,80})(?:/([a-z-]{1,20}))?")
_ASSET = re.compile(r"/assets/([0-9a-f]{16})/([a-z0-9-]+\.[a-z]+)")
_AT_THE_ROOT: dict[str, str] = {
    "/manifest.webmanifest": "manifest.webmanifest",
    "/worker.js": "worker.js",  # a worker looks after what lies below its address
    **{f"/icons/{name}": name for name in ("icon.svg", "icon-192.png", "icon-512.png")},
}
_FOR_EVER = "public, max-age=31536000, immutable"


class WebPages:
    """The page for people, as an application for `RemoteServer`."""

    def __init__(
        self,
        library: Callable[[], Awaitable[SessionStore]],
        agents: PageAgents,
        *,
        directory: Path | None = None,
        shares: ShareLinks | None = None,
        secret: NodeSecret | None = None,
    ) -> None:
        """Show the sessions of a store, which `library` returns once it is open.

        In `directory` is kept what a principal has read, in `shares` the links with which others read sessions. With
        the `secret` of the nodes, sessions that are open on other machines are followed there.
        """
        self._library = library
        self._agents = agents
        self._directory = directory
        self._shares = shares
        self._secret = secret
        self._desk: Desk | None = None
        self._parts: dict[str, Callable[[SessionInfo, PageRequest], Awaitable[Answer]]] = {
            "": self._session,
            "entries": self._entries,
            "prompts": self._prompts,
            "find": self._find,
            "files": self._files,
            "export": self._export,
        }

    async def desk(self) -> Desk:
        """Return what all requests share; the first to ask opens it."""
        if self._desk is None:
            library = await self._library()
            if self._desk is None:
                self._desk = Desk(library, self._agents, self._directory, self._shares, self._secret)
        return self._desk

    @property
    def shared(self) -> SharedPages | None:
        """The application for ``/share/…``, where sessions can be shared."""

        async def library() -> SessionStore:
            return (await self.desk()).library

        return None if self._shares is None else SharedPages(library, self._shares)

    async def close(self) -> None:
        """Leave all sessions."""
        if self._desk is not None:
            await self._desk.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or feed a tab."""
        request = page_request(scope)
        self._agents.visited_by(request.principal)
        if scope["type"] == "websocket":
            await self._feed(request, receive, send)
            return
        try:
            answer = await self._answer(request, receive)
        except PageError as e:
            answer = _refusal(request, e)
        except HoldfastError as e:
            answer = _refusal(request, PageError(409, str(e)))
        except Exception:
            log.exception("A page could not be made")
            answer = _refusal(request, PageError(500, "Something went wrong here; the log of the server says what"))
        await send_answer(send, request, answer)

    async def _answer(self, request: PageRequest, receive: Receive) -> Answer:
        if request.method in ("GET", "HEAD"):
            return await self._get(request)
        if request.method == "POST":
            return await self._post(request, receive)
        raise PageError(405, "Use GET or POST")

    async def _get(self, request: PageRequest) -> Answer:
        if (found := _ASSET.fullmatch(request.path)) is not None:
            return _asset(found[1], found[2])
        if (name := _AT_THE_ROOT.get(request.path)) is not None:
            return _asset(tree(), name)._replace(cache="no-cache")
        match request.path:
            case "/":
                return await self._list(request)
            case "/rows":
                return await self._rows(request)
            case "/search":
                return await self._search(request)
            case _:
                pass
        found = _SESSION.fullmatch(request.path)
        part = None if found is None else self._parts.get(found[2] or "")
        if found is None or part is None:
            raise PageError(404, "There is nothing here")
        return await part(await self._find_session(found[1], request), request)

    async def _post(self, request: PageRequest, receive: Receive) -> Answer:
        actions = Actions(await self.desk(), request.credential)
        if request.path == "/sessions":
            return await actions.create(request, receive)
        if request.path == "/login":
            return await actions.log_in(request, receive)
        found = _SESSION.fullmatch(request.path)
        if found is None or not found[2]:
            raise PageError(404, "There is nothing here")
        return await actions.do(found[2], found[1], request, receive)

    async def _find_session(self, session: str, request: PageRequest) -> SessionInfo:
        return await (await self.desk()).find(session, request.principal)

    # The library

    async def _list(self, request: PageRequest) -> Answer:
        desk = await self.desk()
        filters = library_page.filters_of(request)
        await desk.activity.look()
        rows, directories = await self._session_rows(desk, request, filters)
        agents = await desk.library.agents(request.principal)
        can_start = sorted(desk.agents.known())
        return html_answer(library_page.library_page(rows, filters, agents, directories, can_start=can_start))

    async def _rows(self, request: PageRequest) -> Answer:
        filters = library_page.filters_of(request)
        return html_answer((await self._session_rows(await self.desk(), request, filters))[0])

    async def _session_rows(self, desk: Desk, request: PageRequest, filters: Filters) -> tuple[Any, list[str]]:
        """Return a page of rows, and the directories in it."""
        page = await desk.library.list(
            library_page.scope_of(request, filters),
            cwd=filters.cwd,
            archived=filters.archived,
            cursor=request.query.get("cursor"),
            limit=library_page.ROWS,
        )
        shown = [info for info in page.sessions if info.id not in desk.deletions]
        listed = await asyncio.gather(*map(desk.listed, shown))
        if not listed and "cursor" not in request.query:
            return element("li", _no_sessions(filters, can_start=bool(desk.agents.known()))), []
        rows = library_page.session_rows(listed, filters, page.cursor)
        return rows, list(dict.fromkeys(info.cwd for info in shown))

    async def _search(self, request: PageRequest) -> Answer:
        desk = await self.desk()
        filters = library_page.filters_of(request)
        words = request.query.get("q", "")[:200]
        scope = library_page.scope_of(request, filters)
        limit = request.number("places") or 0
        return html_answer(await library_page.search_rows(desk.library, scope, filters, words, limit))

    # A session

    async def _session(self, info: SessionInfo, request: PageRequest) -> Answer:
        desk = await self.desk()
        record = await desk.library.get(info.id)
        at = request.number("at")
        if at is None and (key := request.query.get("key")) is not None:
            at = await finding.line_of(desk.library, record, key)
        shown = await self._page(desk, record, request, at)
        desk.marks.mark(info.principal, info)
        agents = {*desk.agents.known(), *await desk.library.agents(info.principal)} - {info.agent, ""}
        draw = partial(
            session_page.session_page,
            info,
            shown,
            record.lines,
            state=record.state,
            can_talk=desk.agent_of(info) is not None,
            trouble=desk.agents.trouble(info.agent),
            how_to_add=desk.agents.how_to_add(info.agent),
            others=sorted(agents),
            at=at,
        )
        return html_answer(await asyncio.to_thread(draw))  # long changes take long, and others must not wait (P7)

    async def _entries(self, info: SessionInfo, request: PageRequest) -> Answer:
        desk = await self.desk()
        record = await desk.library.get(info.id)
        shown = await self._page(desk, record, request, request.number("around"))
        answer = html_answer(await asyncio.to_thread(page_of_entries, shown))
        return answer._replace(headers=(("x-lines", str(record.lines)),))

    async def _page(self, desk: Desk, record: Record, request: PageRequest, around: int | None) -> HistoryPage:
        """Return the page of entries that a request names; the last one where it names none."""
        lines = record.lines
        first, end = max(0, lines - PAGE_LINES), lines
        if around is not None:
            first = max(0, min(around, lines) - PAGE_LINES // 3)
            end = min(lines, first + PAGE_LINES)
        elif (before := request.number("before")) is not None:
            end = min(before, lines)
            first = max(0, end - PAGE_LINES)
        elif (after := request.number("after")) is not None:
            first = min(after, lines)
            end = min(lines, first + PAGE_LINES)
        return await read_page(desk.library, record.info.id, first, end)

    async def _prompts(self, info: SessionInfo, _: PageRequest) -> Answer:
        desk = await self.desk()
        record = await desk.library.get(info.id)
        return _places(await finding.prompts_of(desk.library, record), "No prompt is stored yet.")

    async def _find(self, info: SessionInfo, request: PageRequest) -> Answer:
        desk = await self.desk()
        words = request.query.get("q", "")[:200].strip()
        record = await desk.library.get(info.id)
        return _places(await finding.find_words(desk.library, record, words), "Nothing here has that in it.")

    async def _files(self, info: SessionInfo, request: PageRequest) -> Answer:
        request.access.check(info.cwd, info.additional)
        return json_answer(await files_in_roots.find_files(info, request.query.get("q", ""), request.access))

    async def _export(self, info: SessionInfo, request: PageRequest) -> Answer:
        return await export_file.export_session((await self.desk()).library, info, request)

    # Feeds

    async def _feed(self, request: PageRequest, receive: Receive, send: Send) -> None:
        desk = await self.desk()
        if request.path == "/live":
            await serve_feed(receive, send, LibraryFeed(desk, request.principal))
            return
        found = _SESSION.fullmatch(request.path)
        session = found[1] if found is not None and found[2] == "live" else ""
        try:
            info = await desk.find(session, request.principal)
        except PageError:
            await receive()
            await send({"type": "websocket.close", "code": 4404})
            return
        listener = Listener()
        watched = desk.watch(info, listener)
        try:
            await serve_feed(receive, send, SessionFeed(watched, desk.library, request.number("lines") or 0, listener))
        finally:
            desk.unwatch(watched, listener)


def _asset(version: str, name: str) -> Answer:
    asset = all_assets().get(name)
    if asset is None or version != tree():
        raise PageError(404, "There is no such file in this version; load the page again")
    return Answer(asset.body, asset.content_type, cache=_FOR_EVER)


def _refusal(request: PageRequest, error: PageError) -> Answer:
    if request.method in ("GET", "HEAD") and request.headers.get("sec-fetch-dest", "document") == "document":
        return html_answer(error_page(error.status, error.message), error.status)
    return json_answer({"error": error.message, **error.more}, error.status)


def _no_sessions(filters: Filters, *, can_start: bool) -> Any:
    if filters.query:
        return nothing_here("No session is like that.", element("p", element("a", "Show all sessions", href="/")))
    ways = [
        ("in the terminal", "holdfast chat demo"),
        ("in your editor", "holdfast setup"),
        ("for an agent you have", "holdfast wrap -- AGENT"),
    ]
    if not can_start:
        ways.append(("to talk from this page", "holdfast web add -- AGENT"))
    listed = [element("li", element("span", where), " ", element("code", command)) for where, command in ways]
    first = "Begin one with “New session”, or elsewhere:" if can_start else "Begin one:"
    return nothing_here("There are no sessions yet.", element("p", first), element("ul", *listed, class_="ways"))


def _places(found: finding.Places, otherwise: str) -> Answer:
    heading = element("li", data_found=found.heading, hidden=True)
    if not found.listed:
        return html_answer(join(heading, element("li", otherwise, class_="about")))
    rows = [
        element(
            "li",
            element(
                "a",
                library_page.marked(place.text, place.marks) if place.text else "(no text)",
                Markup(draw_time(place.at)),
                href=f"?at={place.line}#l{place.line}",
                data_line=place.line,
            ),
        )
        for place in found.listed
    ]
    return html_answer(join(heading, *rows))
