"""A request for a page as a value, and answers to it."""

from __future__ import annotations

import gzip
import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import parse_qsl

import msgspec

from holdfast_app.web.security import HEADERS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping

    from holdfast.server.access import Access

T = TypeVar("T")

Scope: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, Any]]]"
Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"

BODY_BYTES = 24 << 20
"""The longest body of a request: a prompt with a few pictures."""

WORTH_PACKING = 1_400
"""Shorter answers fit into one packet as they are."""


class PageError(Exception):
    """Ends a request with a status; the message is for the person at the page."""

    def __init__(self, status: int, message: str, more: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.more: Mapping[str, object] = more or {}
        """Further members of the answer, for the page's scripts."""


class PageRequest(NamedTuple):
    """What a browser asks for."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    principal: str
    access: Access
    """What the principal may use of this machine (H10)."""
    credential: str = ""
    """Names that with which the principal was let in (F3)."""

    def number(self, name: str) -> int | None:
        """Return a number of the query; None where there is none."""
        value = self.query.get(name, "")
        return int(value) if value.isdecimal() and len(value) < 16 else None


class Answer(NamedTuple):
    """An answer to a request."""

    body: bytes
    content_type: str
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    cache: str = "no-cache"


def html_answer(markup: str, status: int = 200) -> Answer:
    """Return HTML as an answer."""
    return Answer(markup.encode(errors="replace"), "text/html; charset=utf-8", status)


def json_answer(value: object, status: int = 200) -> Answer:
    """Return a value as JSON."""
    return Answer(msgspec.json.encode(value), "application/json", status)


def page_request(scope: Scope) -> PageRequest:
    """Read a request from an ASGI scope."""
    root, path = scope.get("root_path") or "", scope["path"]
    query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), max_num_fields=32, errors="replace")
    return PageRequest(
        scope.get("method", "WEBSOCKET"),
        path[len(root) :] if root and path.startswith(root) else path,
        dict(query),
        {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]},
        scope["holdfast.principal"],
        scope["holdfast.access"],
        scope.get("holdfast.credential", ""),
    )


async def read_json(receive: Receive, request: PageRequest, shape: type[T]) -> T:
    """Read the body of a request; raise `PageError` for one that is not what is expected.

    A form of another page cannot send this content type, whatever cookie its browser has.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise PageError(415, "Send application/json")
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise PageError(400, "The request ended before its body was complete")
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > BODY_BYTES:
            raise PageError(413, f"That is too much at once; at most {BODY_BYTES >> 20} MB")
        if not message.get("more_body", False):
            break
    try:
        return msgspec.json.decode(b"".join(pieces) or b"{}", type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise PageError(400, f"This is not what was expected: {e}") from None


async def send_answer(send: Send, request: PageRequest, answer: Answer) -> None:
    """Send an answer, packed where that helps; where the browser has it already, only say so."""
    etag = f'"{hashlib.blake2b(answer.body, digest_size=16).hexdigest()}"'
    headers = [("content-type", answer.content_type), ("cache-control", answer.cache), ("etag", etag)]
    headers += [("vary", "accept-encoding"), *HEADERS, *answer.headers]
    status, body = answer.status, answer.body
    if status == 200 and etag in request.headers.get("if-none-match", ""):
        status, body = 304, b""
    elif len(body) > WORTH_PACKING and "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, 5, mtime=0)
        headers.append(("content-encoding", "gzip"))
    headers.append(("content-length", str(len(body))))
    encoded = [(name.encode(), value.encode("latin-1", errors="replace")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else body})
