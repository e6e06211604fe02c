"""An HTTP request or a WebSocket's handshake as a value, and answers to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence

    from holdfast.server.remote.small_pages import SmallPage

Scope: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, Any]]]"
Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"


class Refusal(Exception):
    """Ends a request with a status; the message says what to do instead. Never leaves this package."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers: dict[str, str] = dict(headers or {})


def too_much() -> Refusal:
    """Return the refusal of bytes for which there is no room."""
    why = "Too much is on its way at once; wait until what was sent before has arrived"
    return Refusal(429, why, {"retry-after": "1", "connection": "close"})


class RemoteRequest(NamedTuple):
    """What is known of a request before anything is done: all that an authenticator sees."""

    method: str
    """The HTTP method; ``WEBSOCKET`` for the handshake of a WebSocket."""
    path: str
    """Without what the application is mounted under."""
    headers: Mapping[str, str]
    """By name in small letters."""
    subprotocols: tuple[str, ...]
    """What a WebSocket offers."""
    client: str
    """The address it comes from."""
    secure: bool
    """Whether it came over TLS."""

    @property
    def bearer(self) -> str | None:
        """The token of the request: in `Authorization`, or in a subprotocol ``bearer.…`` (H6)."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return token.strip()
        offered = (name for name in self.subprotocols if name.startswith("bearer."))
        return next((name.removeprefix("bearer.") for name in offered), None) or None  # an empty one is none

    def cookie(self, name: str) -> str | None:
        """Return a cookie."""
        for part in self.headers.get("cookie", "").split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                return value
        return None


def request_from(scope: Scope) -> RemoteRequest:
    """Read a request from an ASGI scope; raise `Refusal` where a header that must be one is there twice."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name in headers and name in ("host", "origin", "authorization", "content-length", "acp-connection-id"):
            raise Refusal(400, f"There is more than one {name} header")
        headers[name] = f"{headers[name]}; {value}" if name in headers and name == "cookie" else value
    root, path = scope.get("root_path") or "", scope["path"]
    return RemoteRequest(
        "WEBSOCKET" if scope["type"] == "websocket" else scope["method"],
        path[len(root) :] if root and path.startswith(root) else path,
        headers,
        tuple(scope.get("subprotocols") or ()),
        (scope.get("client") or ("", 0))[0] or "",
        scope.get("scheme") in ("https", "wss"),
    )


async def respond(
    send: Send, status: int, body: bytes = b"", headers: Sequence[tuple[str, str]] = (), *, websocket: bool = False
) -> None:
    """Answer a request; one for a WebSocket that was not accepted is answered in the same way."""
    fields = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    fields.append((b"content-length", str(len(body)).encode()))
    kind = "websocket.http.response" if websocket else "http.response"
    await send({"type": f"{kind}.start", "status": status, "headers": fields})
    await send({"type": f"{kind}.body", "body": body})


async def refuse(send: Send, refusal: Refusal, *, websocket: bool = False, page: SmallPage | None = None) -> None:
    """Answer with what a refusal says: as JSON, or with a page for a person at a browser."""
    if page is None:
        body = msgspec.json.encode({"error": refusal.message})
        headers = [("content-type", "application/json"), ("cache-control", "no-store")]
    else:
        body, headers = page
    await respond(send, refusal.status, body, [*headers, *refusal.headers.items()], websocket=websocket)


def is_page_wanted(scope: Scope) -> bool:
    """Return whether a browser asks for a page to show."""
    accepts = (value for name, value in scope["headers"] if name == b"accept")
    return scope["type"] == "http" and scope["method"] == "GET" and any(b"text/html" in value for value in accepts)


def declared_length(request: RemoteRequest, limit: int) -> int:
    """Return how long a request says that its body is; raise `Refusal` for one that is too long."""
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > limit:
        raise Refusal(413, f"The body is too long; at most {limit} bytes", {"connection": "close"})
    return int(length)


async def read_body(
    receive: Receive, limit: int, patience: float, hold: Callable[[int], bool] = lambda _: True
) -> bytes:
    """Read the body of a request; raise `Refusal` for one that is too long, or takes too long to come.

    A body must be there within `patience` seconds, and more for a long one: slow ones must not pile up. `hold` is asked
    whether there is room for so many bytes.
    """
    import asyncio  # noqa: PLC0415

    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(patience) as deadline:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "The request ended before its body was complete")
                piece = message.get("body", b"")
                size += len(piece)
                if size > limit:
                    raise Refusal(413, f"The body is too long; at most {limit} bytes", {"connection": "close"})
                if not hold(size):
                    raise too_much()
                pieces.append(piece)
                if not message.get("more_body", False):
                    return b"".join(pieces)
                when = deadline.when()
                assert when is not None
                deadline.reschedule(when + len(piece) / SLOWEST)
    except TimeoutError:
        raise Refusal(408, "The body did not come in time", {"connection": "close"}) from None


SLOWEST = 64 << 10
"""A body may come this slowly, in bytes a second."""
