"""What a link shows: the session as the exported page, as it is now, written piece by piece."""

from __future__ import annotations

import logging
import time
import zlib
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.errors import HoldfastError, SessionNotFound
from holdfast.redaction.redact import Redactor
from holdfast.store.entries import read_entries
from holdfast_app.export.page import PageWriter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping

    from holdfast.store import Library, Snapshot
    from holdfast_app.share_links.links import ShareLink, ShareLinks

Scope: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, Any]]]"
Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"

log: logging.Logger = logging.getLogger(__name__)

PREFIX = "/share/"
"""The path of links; their secret stands behind it."""

BURST, PACE = 20.0, 1.0
"""A link may be opened so many times at once, and so many times a second: to write a long session costs time."""

PIECE = 64 << 10
"""About so many characters are sent at once."""

_HEADERS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", b"frame-ancestors 'none'"),  # the page has a policy of its own
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-robots-tag", b"noindex, nofollow"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def _page(title: str, text: str) -> bytes:
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"></head>\n'
        f"<body><main><h1>{title}</h1><p>{text}</p></main></body>\n</html>\n"
    ).encode()


_NOTHING = _page(
    "There is nothing here",
    "The link has expired, was revoked, or is not complete. Ask whoever sent it for a new one.",
)
_TOO_OFTEN = _page(
    "Too many at once", "This session is being read very often. Wait a moment, then load the page again."
)


class SharedPages:
    """Shows sessions to whoever has a link, signed in or not."""

    def __init__(self, library: Callable[[], Awaitable[Library]], links: ShareLinks) -> None:
        """Show sessions of a store, which `library` returns once it is open."""
        self._library = library
        self._links = links
        self._left: dict[str, tuple[float, float]] = {}  # by link, how often it may be opened, and when that was said

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        del receive
        path = scope["path"].removeprefix(scope.get("root_path") or "")
        link = self._links.find(path.removeprefix(PREFIX)) if path.startswith(PREFIX) else None
        if scope["method"] not in ("GET", "HEAD") or (link is not None and not _holds(link, scope)):
            link = None
        try:
            found = None if link is None else await self._snapshot(link)
        except HoldfastError:
            log.exception("A shared session cannot be read")
            found = None
        if link is None or found is None:
            await _send_page(send, 404, _NOTHING)
            return
        if not self._may_open(link):
            await _send_page(send, 429, _TOO_OFTEN)
            return
        bound = scope.get("holdfast.bound")
        async with nullcontext() if bound is None else bound(link.id, lambda: self._leads_on(link, scope)):
            await self._show(link, found, scope, send)

    async def _show(self, link: ShareLink, found: tuple[Library, Snapshot], scope: Scope, send: Send) -> None:
        library, snapshot = found
        encodings = dict(scope["headers"]).get(b"accept-encoding", b"")
        pieces = _pieces(library, snapshot, redacts=link.redacts) if scope["method"] == "GET" else _nothing()
        await _send_pieces(send, pieces, packs=b"gzip" in encodings)

    def _leads_on(self, link: ShareLink, scope: Scope) -> bool:
        """Return whether a link that is being read was not revoked meanwhile."""
        return self._links.still(link) and _holds(link, scope)

    def _may_open(self, link: ShareLink) -> bool:
        now = time.monotonic()
        left, before = self._left.get(link.id, (BURST, now))
        left = min(BURST, left + (now - before) * PACE)
        self._left[link.id] = (max(0.0, left - 1.0), now)
        return left >= 1.0

    async def _snapshot(self, link: ShareLink) -> tuple[Library, Snapshot] | None:
        library = await self._library()
        try:
            snapshot = await library.snapshot(link.session)
        except SessionNotFound:
            return None
        return (library, snapshot) if snapshot.record.info.principal == link.principal else None


def _holds(link: ShareLink, scope: Scope) -> bool:
    """Return whether that with which a link was made still holds, as far as the server can tell."""
    holds = scope.get("holdfast.holds")
    return not link.credential or holds is None or holds(link.principal, link.credential)


async def _pieces(library: Library, snapshot: Snapshot, *, redacts: bool) -> AsyncIterator[str]:
    """Yield the page, piece by piece: a long session needs little memory."""
    writer, redactor = PageWriter(), Redactor()
    about = snapshot.record.info, snapshot.record.state
    gathered = [writer.opening(*(redactor.session(*about) if redacts else about))]
    size = len(gathered[0])
    async for _, entry in read_entries(library, snapshot):
        gathered.append(writer.entry(redactor.entry(entry) if redacts else entry))
        size += len(gathered[-1])
        if size >= PIECE:
            yield "".join(gathered)
            gathered, size = [], 0
    yield "".join((*gathered, writer.closing(redactor.count)))


async def _nothing() -> AsyncIterator[str]:
    """Yield nothing: what HEAD is answered with."""
    for piece in ():
        yield piece


async def _send_pieces(send: Send, pieces: AsyncIterator[str], *, packs: bool) -> None:
    headers = [*_HEADERS, (b"vary", b"accept-encoding")]
    headers += [(b"content-encoding", b"gzip")] if packs else []
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    packer = zlib.compressobj(5, wbits=31)
    async for piece in pieces:
        body = piece.encode(errors="replace")
        await send(_body(packer.compress(body) if packs else body, more=True))
    await send(_body(packer.flush() if packs else b"", more=False))


async def _send_page(send: Send, status: int, page: bytes) -> None:
    headers = [*_HEADERS, (b"content-length", str(len(page)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send(_body(page, more=False))


def _body(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}
